// The documents of views, written by `python -m tfviz.view.documents.generate`.

export type Divider = ["rows" | "columns", number];

export type ByteRange = [number, number];

export type HeadMode = "sheet" | "head" | "links" | "words" | "picture";

export type Arrangement = "choose" | "compare" | "steps";

export type ScaleKind = "sqrt" | "linear" | "diverging" | "diverging-sqrt";

export type Role = "off" | "all" | "any" | "not";

export type DrawingKind = "number" | "bars" | "lines" | "grid" | "arrows" | "dots" | "words" | "graph" | "stack";

export type ControlSpec = SliderSpec | MenuSpec | SwitchSpec | PointsSpec | CellsSpec | SwitchesSpec | TextSpec | OrderSpec | AngleSpec;

export type StudioDocument = WriteDocument | PatchDocument | ClassifyDocument | ClassifyImageDocument | FillDocument | TranslateDocument;

export type ViewDocument = HeadsDocument | MasksDocument | TablesDocument | TokensDocument | PointsDocument | NeuronsDocument | InteractDocument | WriteDocument | PatchDocument | ClassifyDocument | ClassifyImageDocument | FillDocument | TranslateDocument;

/** The index of each token's word. */
export interface TokenGroups {
  /** [query]. */
  rows: number[];
  /** [key]. */
  columns: number[];
}

/** The grid of patches that the tokens of an axis form on a picture. */
export interface Patches {
  /** the index of the first patch's token; earlier tokens are not on the picture. */
  first: number;
  rows: number;
  columns: number;
  /** whether the first row of patches is the lowest, as in a spectrogram. */
  upward: boolean;
}

/** The patch grids of the query axis and the key axis; null for an axis that is not on the picture. */
export interface PatchSides {
  rows: Patches | null;
  columns: Patches | null;
}

/** A tensor in the data, compressed by zlib: float16, or int8 with a scale for each row. */
export interface StoredWeight {
  shape: number[];
  /** the dtype for computations. */
  dtype: "float32";
  /** the dtype in the data. */
  stored: "float16" | "int8";
  /** the byte range of the numbers. */
  byte_range: ByteRange;
  /** the byte range of the float32 scales by which int8 numbers are multiplied, one for each row. */
  scale?: ByteRange;
}

/** The queries and keys from which the heads of a layer are computed. */
export interface QueriesAndKeys {
  /** the factor of the dot products of queries and keys. */
  scale: number;
  /** the queries of each head, [position, dim]. */
  query: StoredWeight[];
  /** the keys of each head, [position, dim]; fewer than heads if heads share keys. */
  key: StoredWeight[];
}

/** A head's codes in the data, deflated; each is 255 times the square root of a weight. */
export interface HeadCodes {
  /** where they begin, in bytes. */
  offset: number;
  /** their deflated size, in bytes. */
  length: number;
  /** the side, in cells, of the square that each code stands for. */
  pool_size: number;
}

/** The attention maps of one capture. */
export interface MapsPart {
  name: string;
  /** a label for each query. */
  rows: string[];
  /** a label for each key. */
  columns: string[];
  /** the site of each layer. */
  sites: string[];
  layers: number;
  heads: number;
  /** the grouping of tokens into words; null if each token is a word. */
  groups: TokenGroups | null;
  /** the codes of each head, layer by layer. */
  head_codes: HeadCodes[];
  /** the index of each head's mask in the document; null: there are no masks. */
  masks: (number | null)[] | null;
  /** the index of each head's key ranges in the document; null: there are masks instead. */
  key_ranges: (number | null)[] | null;
  /** the queries and keys of each layer, if the page computes the weights; null: their maps are stored. */
  computed?: QueriesAndKeys[] | null;
  /** the weights themselves, deflated float32 [layer, head, query, key], where maps are so small that their numbers are written in the cells; if missing, the codes are all there is. */
  values?: ByteRange;
  /** the number of strongest keys stored for each query; if missing, all keys are stored. */
  top?: number;
  patches?: PatchSides;
}

/** The picture that attention is drawn on. */
export interface ImageSpec {
  /** a data URL. */
  src: string;
  /** the width of the original picture, in pixels. */
  width: number;
  /** the height of the original picture, in pixels. */
  height: number;
}

/** The choices of a reader of attention heads; the traits of `view.live`. */
export interface HeadsState {
  /** the mode of display. */
  mode: HeadMode;
  /** the index of the capture. */
  part: number;
  layer: number;
  head: number;
  /** heads that are shown together, [layer, head]. */
  selected_heads: number[][];
  /** how several heads are combined into one. */
  combine_heads: "mean" | "max";
  /** the keys to leave out. */
  hide_keys: "nothing" | "first" | "separators" | "sinks" | "chosen";
  /** the keys to leave out if `hide_keys` is "chosen". */
  hidden_keys: number[];
  /** whether word pieces are merged into words. */
  merge_subwords: boolean;
  /** queries that are locked. */
  locked_rows: number[];
  /** keys that are locked. */
  locked_columns: number[];
  /** the smallest weight that is drawn as a line. */
  min_weight: number;
  /** the maximum number of lines of a token. */
  max_links: number;
  /** whether the weights shown are those "from" a chosen query, or "to" a chosen key. */
  direction: "from" | "to";
}

/** A view of attention heads. */
export interface HeadsDocument {
  /** "heads-computed" if the page computes weights from queries and keys. */
  kind: "heads" | "heads-computed";
  parts: MapsPart[];
  /** a sentence on omitted data and on gaps of the capture. */
  note: string;
  state: HeadsState;
  /** one bit for each cell, [query, key], most significant bit first; 1 where attention is allowed; deflated. */
  masks: ByteRange[];
  /** int32, the first key of each query, then for each query one past its last key; deflated. */
  key_ranges: ByteRange[];
  /** the title; if empty, a description of what is shown. */
  title: string;
  /** the arrangement of several parts. */
  arrange: Arrangement;
  /** names of rows and columns. */
  axes: string[];
  /** cells to outline, (row, column). */
  outlined: number[][];
  /** names of the heads, instead of numbers. */
  head_names: string[];
  /** name of the numbers, if they are no attention weights; empty: the sheet has no scale. */
  unit?: string;
  dividers?: Divider[];
  image?: ImageSpec;
}

/** A rule for which keys a query may attend to, in one or several sizes. */
export interface Predicate {
  name: string;
  /** the label of each size on the slider; [""] if there is no slider. */
  sizes: string[];
  /** the index of each size's mask in the document. */
  masks: number[];
}

/** The combination of predicates that the reader chose. */
export interface MasksState {
  /** the role of each predicate, by name; predicates without an entry are off. */
  roles: Record<string, Role>;
  /** the index of each predicate's size. */
  sizes: Record<string, number>;
  /** queries that are locked. */
  locked_rows: number[];
  /** keys that are locked. */
  locked_columns: number[];
}

/** Masks to combine. */
export interface MasksDocument {
  kind: "masks";
  title: string;
  predicates: Predicate[];
  /** packed as in `HeadsDocument`. */
  masks: ByteRange[];
  /** a label for each query. */
  rows: string[];
  /** a label for each key. */
  columns: string[];
  /** names of rows and columns. */
  axes: string[];
  state: MasksState;
}

/** A table of numbers as a heatmap. */
export interface TablePanel {
  name: string;
  rows: string[];
  columns: string[];
  /** names of rows and columns. */
  axes: string[];
  /** float32, [row, column]; NaN for a cell without a number. */
  data: ByteRange;
  scale: ScaleKind;
  /** the end of the scale. */
  limit: number;
  dividers?: Divider[];
  /** whether the number is written into each cell. */
  numbered?: boolean;
  /** the text of each cell, instead of a number. */
  texts?: string[][];
  /** for each cell, tokens and their numbers, in descending order. */
  details?: [string, number][][][];
}

/** Tables that are shown side by side. */
export interface TableTab {
  name: string;
  panels: TablePanel[];
  /** a sentence above the tables. */
  note?: string;
  /** maximum height of a table, in pixels. */
  height?: number;
}

/** The tab that is shown, and the rows and columns that are locked. */
export interface TablesState {
  tab: number;
  locked_rows: number[];
  locked_columns: number[];
}

/** Tables of numbers, tab by tab. */
export interface TablesDocument {
  kind: "tables";
  title: string;
  tabs: TableTab[];
  state: TablesState;
}

/** The index of the token whose number is shown. */
export interface TokensState {
  token: number;
}

/** A text with a number for each token. */
export interface TokensDocument {
  kind: "tokens";
  title: string;
  tokens: string[];
  /** float32, [token]. */
  data: ByteRange;
  scale: ScaleKind;
  /** the end of the scale. */
  limit: number;
  /** the unit of the numbers. */
  unit: string;
  state: TokensState;
}

/** The choices of a reader of points. */
export interface PointsState {
  /** points whose names are locked. */
  locked_rows: number[];
  /** 1 shows the whole plane. */
  zoom: number;
  /** centre of the visible part, as shares of the width and the height. */
  middle: number[];
}

/** Points in a plane. */
export interface PointsDocument {
  kind: "points";
  title: string;
  /** names of the points. */
  names: string[];
  /** names of the two coordinates. */
  axes: string[];
  /** float32, [point, 2]. */
  data: ByteRange;
  /** float32, [end, point, 2]: the lowest and the highest coordinates of each point over training runs. */
  spread?: ByteRange;
  /** the lowest and the highest number of each axis. */
  range: number[][];
  /** "linear" or "log" for each axis. */
  scales: ("linear" | "log")[];
  /** the largest absolute value. */
  limit: number;
  /** the index of each point's group, -1 for none; empty if there are no groups. */
  labels: number[];
  /** the label and the name of each group. */
  legend: [number, string][];
  /** points to emphasize. */
  marked: number[];
  state: PointsState;
}

/** The head and the query that the reader chose. */
export interface NeuronsState {
  layer: number;
  head: number;
  query: number;
}

/** The queries and keys of one layer's heads. */
export interface NeuronsLayer {
  /** the width of a head's queries and keys. */
  dim: number;
  /** the factor of the dot products of queries and keys. */
  scale: number;
  /** the queries of each head, float32 [query, dim]. */
  queries: ByteRange[];
  /** the keys of each group of heads that share keys, float32 [key, dim]. */
  keys: ByteRange[];
  /** what is added to each head's scaled scores, float32 [query, key]; null: nothing. */
  biases: (ByteRange | null)[];
  /** the index of each head's mask in the document; null: all keys are allowed. */
  masks: (number | null)[];
}

/** The queries and keys of heads, layer by layer. */
export interface NeuronsDocument {
  kind: "neurons";
  title: string;
  /** a label for each query. */
  rows: string[];
  /** a label for each key. */
  columns: string[];
  /** the layers, which have the same number of heads. */
  layers: NeuronsLayer[];
  /** packed as in `HeadsDocument`. */
  masks: ByteRange[];
  state: NeuronsState;
}

/** A slider. */
export interface SliderSpec {
  kind: "slider";
  low: number;
  high: number;
  step: number;
  /** the initial value, as in all other controls. */
  start: number;
  /** whether the function takes Python ints, with a separate program for each value. */
  integer: boolean;
}

/** A list to choose from; its value is an index. */
export interface MenuSpec {
  kind: "menu";
  names: string[];
  start: number;
}

/** A switch; its value is True or False. */
export interface SwitchSpec {
  kind: "switch";
  start: boolean;
}

/** Points to drag. */
export interface PointsSpec {
  kind: "points";
  names: string[];
  /** [point, 2]. */
  start: number[][];
  /** the largest coordinate of the plane. */
  limit: number;
}

/** The axes of an editable table. */
export interface TableAxes {
  rows: string[];
  columns: string[];
  /** whether the function takes the single row as a tensor [column]. */
  flat: boolean;
  /** names of the rows and of the columns. */
  axes?: string[];
}

/** A table of numbers to edit. */
export interface CellsSpec {
  rows: string[];
  columns: string[];
  flat: boolean;
  axes?: string[];
  kind: "cells";
  /** [row, column]. */
  start: number[][];
  /** the change of a number by a key press. */
  step: number;
  /** the smallest and the largest number; if missing, there are none. */
  limits?: number[];
}

/** A table of switches. */
export interface SwitchesSpec {
  rows: string[];
  columns: string[];
  flat: boolean;
  axes?: string[];
  kind: "switches";
  /** [row, column]. */
  start: boolean[][];
}

/** A text to type. */
export interface TextSpec {
  kind: "text";
  start: string;
  /** the tokenizer, as returned by `to_spec` in `tfviz.text`. */
  tokenizer: Record<string, any>;
  /** the minimum length. */
  min_tokens: number;
  /** the maximum length. */
  max_tokens: number;
}

/** Words to put in order; its value is the index of the word at each position. */
export interface OrderSpec {
  kind: "order";
  names: string[];
  start: number[];
}

/** A dial, in radians from -pi to pi. */
export interface AngleSpec {
  kind: "angle";
  start: number;
}

/** The drawing of a result. */
export interface ResultSpec {
  /** the name of the result. */
  result: string;
  kind: DrawingKind;
  title: string;
  /** labels of the rows, or the name of the control that provides them. */
  rows: string | string[];
  /** labels of the columns, or the name of the control that provides them. */
  columns: string | string[];
  /** the scale of the colours; null: linear, or diverging if a number is below 0. */
  scale: ScaleKind | null;
  /** the end of the scale; null: the next round number. */
  limit: number | null;
  /** the smallest possible end of the scale. */
  min_limit: number;
  /** [x, y] of each node of a graph, or the name of the control that provides them. */
  positions: string | number[][];
  /** whether the numbers on the diagonal of a graph fill its nodes. */
  filled: boolean;
  /** the number of bars, largest first; if missing, all in their order. */
  top?: number;
  /** names of the rows and of the columns, or of the two coordinates of a plane. */
  axes?: string[];
  /** labels of points that are drawn in colour, all others in grey; if missing, each has its own colour. */
  mark?: string[];
  /** what the smallest and the largest number of the scale mean; of bars, what numbers below and above 0 mean. */
  ends?: string[];
  /** the sign that the number of each bar should have; if missing, any. */
  expected?: number[];
  /** what a hatched cell means. */
  hatched?: string;
  /** the unit of the numbers. */
  unit?: string;
  /** the largest sum of the parts of a stack that fits. */
  budget?: number;
  /** the sentence about the result, with names in braces; if missing, one made from the numbers. */
  sentence?: string;
  /** the first of the results that share one scale; if missing, the result has its own. */
  shared?: string;
}

/** A tensor that a kernel computed. */
export interface StoredResult {
  shape: number[];
  /** the dtype of the result; in the data, "int64" is stored as int32 and "bool" as uint8. */
  dtype: "float32" | "int64" | "bool";
  /** the byte range of its numbers in the data. */
  byte_range: ByteRange;
}

/** The current value of each control, by argument name. */
export interface InteractState {
  values: Record<string, any>;
}

/** A function with controls. */
export interface InteractDocument {
  /** "interact-snapshot" if a kernel that has ended computed the results. */
  kind: "interact" | "interact-snapshot";
  title: string;
  note?: string;
  /** the control of each argument. */
  controls: Record<string, ControlSpec>;
  /** the controls that select the program; all others are its inputs. */
  discrete: string[];
  panels: ResultSpec[];
  state: InteractState;
  /** programs by the indices of the discrete controls, such as "0.2". */
  programs?: Record<string, any>;
  /** the weights of the programs. */
  data?: ByteRange;
  /** the results of a snapshot, by name. */
  results?: Record<string, StoredResult>;
  /** experiments that the author proposes, [name, values of controls]. */
  examples?: any[][];
  /** the instruction: the first sentence of the function's docstring. */
  purpose?: string;
}

/** The ids that every text begins and ends with; null: no such id. */
export interface SpecialTokens {
  prefix_id: number | null;
  suffix_id: number | null;
}

/** A causal model for comparison with the model of a studio. */
export interface CausalModel {
  /** the index of its tokenizer. */
  tokenizer: number;
  /** the id that its texts begin with. */
  prefix_id: number | null;
  /** the maximum number of tokens. */
  context: number;
}

/** The choices of the reader of a studio, besides those of heads. */
export interface StudioState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  selected_heads: number[][];
  combine_heads: "mean" | "max";
  hide_keys: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden_keys: number[];
  merge_subwords: boolean;
  locked_rows: number[];
  locked_columns: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  /** heads that are switched off, [site, head]. */
  ablated_heads: any[][];
  /** whether the map of the chosen head is shown in full. */
  head_map_open: boolean;
  /** whether each map has a bar below it, of what the answer loses without its head. */
  head_importance: boolean;
}

/** The fields that the documents of all studios have. */
export interface StudioBase {
  title: string;
  /** the model as programs by name; with a kernel, only the sites that can be captured. */
  programs?: Record<string, any>;
  /** the tokenizers as `to_spec` of `tfviz.text` returns them. */
  tokenizers: Record<string, any>[];
  /** a sentence at the end of the page. */
  note?: string;
  /** experiments that the author proposes, [name, the state that it sets]. */
  examples: any[][];
}

/** A text that is being written. */
export interface WriteState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  selected_heads: number[][];
  combine_heads: "mean" | "max";
  hide_keys: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden_keys: number[];
  merge_subwords: boolean;
  locked_rows: number[];
  locked_columns: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  ablated_heads: any[][];
  head_map_open: boolean;
  head_importance: boolean;
  prompt: string;
  /** all generated tokens, as [index of the previous token, id]; the index -1 stands for the prompt. */
  tree: number[][];
  /** the index in `tree` of the last token that is shown; -1: only the prompt is shown. */
  node: number;
  temperature: number;
  /** the number of tokens to sample from; 0: all. */
  top_k: number;
  /** the probability mass of the tokens to sample from; 1: all tokens. */
  top_p: number;
  seed: number;
}

/** A causal language model that continues a prompt. */
export interface WriteDocument {
  title: string;
  programs?: Record<string, any>;
  tokenizers: Record<string, any>[];
  note?: string;
  examples: any[][];
  kind: "write";
  /** the maximum number of tokens that the model reads. */
  context: number;
  /** the maximum number of tokens in a run. */
  max_new_tokens: number;
  state: WriteState;
}

/** The clean and the corrupt text, and the activation that is patched. */
export interface PatchState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  selected_heads: number[][];
  combine_heads: "mean" | "max";
  hide_keys: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden_keys: number[];
  merge_subwords: boolean;
  locked_rows: number[];
  locked_columns: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  ablated_heads: any[][];
  head_map_open: boolean;
  head_importance: boolean;
  clean: string;
  corrupt: string;
  /** the id of the answer to the clean text; -1: its likeliest next token. */
  clean_answer_id: number;
  /** the id of the answer to the corrupt text; -1: its likeliest next token other than `clean_answer_id`. */
  corrupt_answer_id: number;
  /** what is patched: the table ("residual" or "heads"), the layer, and the position or head; [] for nothing. */
  target: any[];
}

/** A language model whose activations can be replaced by those of another run. */
export interface PatchDocument {
  title: string;
  programs?: Record<string, any>;
  tokenizers: Record<string, any>[];
  note?: string;
  examples: any[][];
  kind: "patch";
  /** the maximum number of tokens that the model reads. */
  context: number;
  /** labels of the blocks, the first dimension of the program's `residual`. */
  layers: string[];
  /** labels of the attention modules, the first dimension of the program's `heads`. */
  attentions: string[];
  /** the number of heads of each attention. */
  heads: number;
  /** the width of the residual stream. */
  dim: number;
  /** the width of a head's output. */
  head_dim: number;
  state: PatchState;
}

/** A text that is classified. */
export interface ClassifyState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  selected_heads: number[][];
  combine_heads: "mean" | "max";
  hide_keys: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden_keys: number[];
  merge_subwords: boolean;
  locked_rows: number[];
  locked_columns: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  ablated_heads: any[][];
  head_map_open: boolean;
  head_importance: boolean;
  text: string;
  /** indices of the words that are left out. */
  deleted: number[];
  /** replaced words, as [index of the word, replacement]. */
  replaced: any[][];
  /** the index of the label by which words are shaded; -1: none; -2: the chosen head; -3: the predicted label. */
  label: number;
}

/** A text classifier. */
export interface ClassifyDocument {
  title: string;
  programs?: Record<string, any>;
  tokenizers: Record<string, any>[];
  note?: string;
  examples: any[][];
  kind: "classify";
  /** names of the classes, in the order of the logits. */
  labels: string[];
  special_tokens: SpecialTokens;
  /** the maximum number of tokens that the model reads. */
  context: number;
  state: ClassifyState;
}

/** A picture that is classified. */
export interface ClassifyImageState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  selected_heads: number[][];
  combine_heads: "mean" | "max";
  hide_keys: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden_keys: number[];
  merge_subwords: boolean;
  locked_rows: number[];
  locked_columns: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  ablated_heads: any[][];
  head_map_open: boolean;
  head_importance: boolean;
  /** indices of the hidden patches, row by row from the upper left. */
  hidden_patches: number[];
  /** the index of the label whose probability is shown. */
  label: number;
  /** the shading of patches: attention, the effect of each on the label, or nothing. */
  shade: "attention" | "effect" | "nothing";
}

/** A classifier of pictures; its program takes a boolean for each patch, True if it is hidden. */
export interface ClassifyImageDocument {
  title: string;
  programs?: Record<string, any>;
  tokenizers: Record<string, any>[];
  note?: string;
  examples: any[][];
  kind: "classify-image";
  /** names of the classes, in the order of the logits. */
  labels: string[];
  /** the picture that is drawn. */
  image: ImageSpec;
  /** the grid that the tokens form on the picture. */
  patches: Patches;
  /** a label for each token. */
  tokens: string[];
  state: ClassifyImageState;
}

/** A text with masked tokens. */
export interface FillState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  selected_heads: number[][];
  combine_heads: "mean" | "max";
  hide_keys: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden_keys: number[];
  merge_subwords: boolean;
  locked_rows: number[];
  locked_columns: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  ablated_heads: any[][];
  head_map_open: boolean;
  head_importance: boolean;
  text: string;
  /** indices of the masked tokens. */
  masked: number[];
  /** pairs [index, replacement id]. */
  filled: number[][];
}

/** A masked language model. */
export interface FillDocument {
  title: string;
  programs?: Record<string, any>;
  tokenizers: Record<string, any>[];
  note?: string;
  examples: any[][];
  kind: "fill";
  special_tokens: SpecialTokens;
  /** the maximum number of tokens that the model reads. */
  context: number;
  /** a causal model, for comparison. */
  compare_with?: CausalModel;
  state: FillState;
}

/** A search for a translation. */
export interface TranslateState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  selected_heads: number[][];
  combine_heads: "mean" | "max";
  hide_keys: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden_keys: number[];
  merge_subwords: boolean;
  locked_rows: number[];
  locked_columns: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  ablated_heads: any[][];
  head_map_open: boolean;
  head_importance: boolean;
  sentence: string;
  /** the beam width. */
  num_beams: number;
  /** exponent of the length penalty. */
  length_penalty: number;
  /** ids with which the translation must begin. */
  prefix: number[];
  /** number of search steps after the prefix. */
  steps: number;
  /** [step, rank] of the selected text; null: the best. */
  node: number[] | null;
  /** prefixes that were tried. */
  forced: number[][];
}

/** An encoder-decoder. */
export interface TranslateDocument {
  title: string;
  programs?: Record<string, any>;
  tokenizers: Record<string, any>[];
  note?: string;
  examples: any[][];
  kind: "translate";
  /** the maximum length of a translation, including its end token. */
  max_new_tokens: number;
  /** the maximum number of source tokens; null: any number. */
  max_source: number | null;
  /** the maximum beam width. */
  max_num_beams: number;
  /** the maximum exponent of the length penalty. */
  max_length_penalty: number;
  /** the id that a translation begins with. */
  bos_id: number;
  /** the id that it ends with. */
  eos_id: number;
  /** ids that are never generated. */
  suppressed_ids: number[];
  /** ids that a source ends with. */
  source_eos_ids: number[];
  /** names of the rows and columns of attention. */
  axes: string[];
  state: TranslateState;
}

// The documents of views, written by `python -m tfviz.view.documents.generate`.

export type Divider = ["rows" | "cols", number];

export type Piece = [number, number];

export type HeadMode = "sheet" | "head" | "lines" | "words" | "picture";

export type Arrangement = "choose" | "compare" | "steps";

export type ScaleKind = "sqrt" | "linear" | "diverging" | "diverging-sqrt";

export type Role = "off" | "all" | "any" | "not";

export type DrawingKind = "number" | "bars" | "lines" | "grid" | "arrows" | "dots" | "words" | "graph";

export type ControlSpec = SliderSpec | MenuSpec | SwitchSpec | PointsSpec | CellsSpec | SwitchesSpec | TextSpec | OrderSpec | AngleSpec;

export type StudioDocument = WriteDocument | ClassifyDocument | ClassifyImageDocument | FillDocument | TranslateDocument;

export type ViewDocument = HeadsDocument | MasksDocument | TablesDocument | TokensDocument | PointsDocument | InteractDocument | WriteDocument | ClassifyDocument | ClassifyImageDocument | FillDocument | TranslateDocument;

/** The number of the word that each token of a side is a piece of. */
export interface TokenGroups {
  /** [query]. */
  rows: number[];
  /** [key]. */
  cols: number[];
}

/** The arrangement of the tokens of a side on a picture, in rows and columns of patches. */
export interface Patches {
  /** the token of the first patch; those before it lie nowhere. */
  first: number;
  rows: number;
  columns: number;
  /** the first row is the lowest, as the frequencies of a spectrogram. */
  upward: boolean;
}

/** The sides of attention maps that lie on a picture; null for one of words. */
export interface PatchSides {
  rows: Patches | null;
  cols: Patches | null;
}

/** A tensor as it is stored: numbers of one type, or 8-bit steps with a scale for each row, deflated. */
export interface StoredWeight {
  shape: number[];
  /** of the numbers that are computed with. */
  dtype: "float32";
  /** of the numbers in the data. */
  stored: "float16" | "int8";
  /** the numbers. */
  at: Piece;
  /** a float32 for each row, by which its steps are multiplied. */
  scale?: Piece;
}

/** The queries and keys that the heads of a layer are computed from. */
export interface QueriesAndKeys {
  /** what the products of queries and keys are multiplied by. */
  scale: number;
  /** of each head, [position, dim]. */
  query: StoredWeight[];
  /** the same; fewer than heads where these share them. */
  key: StoredWeight[];
}

/** The attention maps of one capture. */
export interface MapsPart {
  name: string;
  /** a word for each query. */
  rows: string[];
  /** a word for each key. */
  cols: string[];
  /** of the layers. */
  sites: string[];
  layers: number;
  heads: number;
  /** null where each token is a word. */
  groups: TokenGroups | null;
  /** of each head, layer by layer: the piece of its codes, 255 times the square root of a weight, deflated; and how many cells, down and across, a code stands for. */
  weights: [number, number, number][];
  /** which of the document's masks each head has; null: no head has one. */
  masks: (number | null)[] | null;
  /** which of the document's key ranges each head has; null: it has masks instead. */
  key_ranges: (number | null)[] | null;
  /** of each layer, where the page computes weights; null where it has no room for queries and keys. */
  computed?: QueriesAndKeys[] | null;
  /** how many keys of each query are stored, where not all are. */
  top?: number;
  patches?: PatchSides;
}

/** The picture that attention is drawn on. */
export interface ImageSpec {
  /** a data URL. */
  src: string;
  /** pixels. */
  width: number;
  /** pixels. */
  height: number;
}

/** The choices of a reader of attention heads; the traits of `view.live`. */
export interface HeadsState {
  /** how the heads are shown. */
  mode: HeadMode;
  /** the index of the capture. */
  part: number;
  layer: number;
  head: number;
  /** heads that are shown together, [layer, head]. */
  marked: number[][];
  /** how several heads are combined into one. */
  combine: "mean" | "max";
  /** which keys are left out. */
  hide: "nothing" | "first" | "separators" | "sinks" | "chosen";
  /** the keys that are left out where `hide` is "chosen". */
  hidden: number[];
  /** pieces of words are shown as whole words. */
  merged: boolean;
  /** queries that are locked. */
  rows: number[];
  /** keys that are locked. */
  cols: number[];
  /** the smallest weight that is drawn as a line. */
  min_weight: number;
  /** the maximum number of lines of a word. */
  max_links: number;
  /** whether the weights shown are those "from" a chosen query, or "to" a chosen key. */
  direction: "from" | "to";
}

/** A view of attention heads. */
export interface HeadsDocument {
  /** "heads-computed" where the page computes weights from queries and keys. */
  kind: "heads" | "heads-computed";
  parts: MapsPart[];
  /** a sentence on what was left out, and what a capture could not see. */
  note: string;
  state: HeadsState;
  /** a bit for each cell, [query, key], the first of eight the highest; 1 where a query may look. */
  masks: Piece[];
  /** int32, the first key of each query, then one past its last. */
  key_ranges: Piece[];
  /** what stands above; what is shown, where it is empty. */
  title: string;
  /** how several parts stand to each other. */
  arrange: Arrangement;
  /** names of rows and columns. */
  axes: string[];
  /** cells to outline, (row, column). */
  gold: number[][];
  /** instead of numbers. */
  head_names: string[];
  dividers?: Divider[];
  picture?: ImageSpec;
}

/** A rule for where a query may look, in one size or several. */
export interface Predicate {
  name: string;
  /** what the slider says of each; one "" where there is none. */
  sizes: string[];
  /** which of the document's masks each size has. */
  masks: number[];
}

/** The combination of predicates. */
export interface MasksState {
  /** by name; one that is not named is off. */
  roles: Record<string, Role>;
  /** the index of each predicate's size. */
  sizes: Record<string, number>;
  /** queries that are locked. */
  rows: number[];
  /** keys that are locked. */
  cols: number[];
}

/** Masks to combine. */
export interface MasksDocument {
  kind: "masks";
  title: string;
  predicates: Predicate[];
  /** as those of heads. */
  masks: Piece[];
  /** a word for each query. */
  rows: string[];
  /** a word for each key. */
  cols: string[];
  /** names of rows and columns. */
  axes: string[];
  state: MasksState;
}

/** A table of numbers as a heatmap. */
export interface TablePanel {
  name: string;
  rows: string[];
  cols: string[];
  /** names of rows and columns. */
  axes: string[];
  /** float32, [row, column]; NaN where a cell has no number. */
  data: Piece;
  scale: ScaleKind;
  /** where the scale ends. */
  limit: number;
  dividers?: Divider[];
  /** write the number into each cell. */
  numbered?: boolean;
  /** what is written into each cell instead. */
  texts?: string[][];
  /** of each cell, words and their numbers in falling order. */
  details?: [string, number][][][];
}

/** Tables that are shown side by side. */
export interface TableSheet {
  name: string;
  panels: TablePanel[];
  /** a sentence above them. */
  note?: string;
  /** pixels of a table, at most. */
  height?: number;
}

/** The sheet that is shown, and the rows and columns that are locked. */
export interface TablesState {
  sheet: number;
  rows: number[];
  cols: number[];
}

/** Tables of numbers, sheet by sheet. */
export interface TablesDocument {
  kind: "tables";
  title: string;
  sheets: TableSheet[];
  state: TablesState;
}

/** The token whose number is read. */
export interface TokensState {
  token: number;
}

/** A text of which each token has a number. */
export interface TokensDocument {
  kind: "tokens";
  title: string;
  words: string[];
  /** float32, [token]. */
  data: Piece;
  scale: ScaleKind;
  /** where the scale ends. */
  limit: number;
  /** of the numbers. */
  unit: string;
  state: TokensState;
}

/** The choices of a reader of points. */
export interface PointsState {
  /** points whose names are locked. */
  rows: number[];
  /** 1: all of the plane. */
  zoom: number;
  /** of the part that is shown, as shares of the width and the height. */
  middle: number[];
}

/** Points in a plane. */
export interface PointsDocument {
  kind: "points";
  title: string;
  /** of the points. */
  names: string[];
  /** what the two numbers of a point are. */
  axes: string[];
  /** float32, [point, 2]. */
  data: Piece;
  /** the lowest and the highest number of each axis. */
  range: number[][];
  /** the largest number, without its sign. */
  limit: number;
  /** of each point the index of its group, -1 for none; empty where there are no groups. */
  labels: number[];
  /** the label and the name of each group that there is. */
  legend: [number, string][];
  /** points that stand out. */
  marked: number[];
  state: PointsState;
}

/** A slider. */
export interface SliderSpec {
  kind: "slider";
  low: number;
  high: number;
  step: number;
  /** where the control stands at first; here and in all others. */
  start: number;
  /** the function is given ints, and there is a program for each. */
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
  /** how far the plane goes, to each side of 0. */
  limit: number;
}

/** The axes of a table to change. */
export interface TableAxes {
  rows: string[];
  cols: string[];
  /** the function is given the one row, without an axis of rows. */
  flat: boolean;
}

/** Numbers in a table. */
export interface CellsSpec {
  rows: string[];
  cols: string[];
  flat: boolean;
  kind: "cells";
  /** [row, column]. */
  start: number[][];
  /** by how much a key changes a number. */
  step: number;
}

/** Switches in a table. */
export interface SwitchesSpec {
  rows: string[];
  cols: string[];
  flat: boolean;
  kind: "switches";
  /** [row, column]. */
  start: boolean[][];
}

/** A text to type. */
export interface TextSpec {
  kind: "text";
  start: string;
  /** what encodes it, as `to_spec` of `tfviz.text` describes it. */
  vocab: Record<string, any>;
  /** how long it may be. */
  max_tokens: number;
}

/** Words to put in order; its value is the index of the word at each place. */
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
  /** its name. */
  result: string;
  kind: DrawingKind;
  title: string;
  /** words, or the name of the control that has them. */
  rows: string | string[];
  /** the same. */
  cols: string | string[];
  /** null: linear, or diverging where a number is below 0. */
  scale: ScaleKind | null;
  /** where the scale ends; null: at the next round number. */
  limit: number | null;
  /** where it ends at the earliest. */
  min_limit: number;
  /** [x, y] of each node of a graph, or the name of the control that has them. */
  positions: string | number[][];
  /** the diagonal of a graph fills its nodes. */
  filled: boolean;
  /** how many bars are drawn, the largest first; without it all, in their order. */
  top?: number;
}

/** A tensor that was computed. */
export interface StoredResult {
  shape: number[];
  /** "int64" in 32 bits each, "bool" in a byte. */
  dtype: "float32" | "int64" | "bool";
  /** where its numbers are. */
  at: Piece;
}

/** The current value of each control, by argument name. */
export interface InteractState {
  values: Record<string, any>;
}

/** A function with controls. */
export interface InteractDocument {
  /** "interact-snapshot": computed by a kernel that is not here any more. */
  kind: "interact" | "interact-snapshot";
  title: string;
  note?: string;
  /** by argument. */
  controls: Record<string, ControlSpec>;
  /** the controls that choose among programs; all others give a program its inputs. */
  discrete: string[];
  panels: ResultSpec[];
  state: InteractState;
  /** by the indices of what the discrete controls stand at, such as "0.2". */
  programs?: Record<string, any>;
  /** the weights of the programs. */
  data?: Piece;
  /** of a snapshot, by name. */
  results?: Record<string, StoredResult>;
  /** what the author proposes to try, [name, values of controls]. */
  tries?: any[][];
  /** what there is to do, in a sentence: the first of the function's docstring. */
  purpose?: string;
}

/** Ids that every text begins and ends with; null for none. */
export interface SpecialTokens {
  before: number | null;
  after: number | null;
}

/** A causal model for comparison with the model of a studio. */
export interface CausalModel {
  /** the index of its vocabulary. */
  vocabulary: number;
  /** the id that its texts begin with. */
  before: number | null;
  /** tokens that it reads at most. */
  context: number;
}

/** The choices of the reader of a studio, besides those of heads. */
export interface StudioState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  marked: number[][];
  combine: "mean" | "max";
  hide: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden: number[];
  merged: boolean;
  rows: number[];
  cols: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  /** heads that are switched off, [site, head]. */
  off: any[][];
  /** whether the map of the chosen head is shown in full. */
  open: boolean;
}

/** The members that the documents of all studios have. */
export interface StudioBase {
  title: string;
  /** the model as programs by name; where a kernel runs it, only the sites that can be captured. */
  programs?: Record<string, any>;
  /** the vocabularies as `to_spec` of `tfviz.text` returns them. */
  vocabularies: Record<string, any>[];
  /** a sentence below all. */
  note?: string;
  /** experiments that the author proposes, [name, the state that it sets]. */
  tries: any[][];
}

/** A text that is being written. */
export interface WriteState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  marked: number[][];
  combine: "mean" | "max";
  hide: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden: number[];
  merged: boolean;
  rows: number[];
  cols: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  off: any[][];
  open: boolean;
  prompt: string;
  /** all tokens that were written, [index of the one before, id]; -1 for the prompt. */
  tree: number[][];
  /** the last token of the text that is shown. */
  node: number;
  temperature: number;
  /** 0: all. */
  top_k: number;
  /** 1: all. */
  top_p: number;
  seed: number;
}

/** A language model. */
export interface WriteDocument {
  title: string;
  programs?: Record<string, any>;
  vocabularies: Record<string, any>[];
  note?: string;
  tries: any[][];
  kind: "write";
  /** tokens that it reads at most. */
  context: number;
  /** how many a run writes. */
  max_tokens: number;
  state: WriteState;
}

/** A text that is classified. */
export interface ClassifyState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  marked: number[][];
  combine: "mean" | "max";
  hide: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden: number[];
  merged: boolean;
  rows: number[];
  cols: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  off: any[][];
  open: boolean;
  text: string;
  /** words that are left out, by index. */
  deleted: number[];
  /** [index of a word, what stands in its place]. */
  replaced: any[][];
  /** the label that words are shaded by, -1 for none, -2 for the chosen head. */
  label: number;
}

/** A classifier. */
export interface ClassifyDocument {
  title: string;
  programs?: Record<string, any>;
  vocabularies: Record<string, any>[];
  note?: string;
  tries: any[][];
  kind: "classify";
  /** in the order of its logits. */
  labels: string[];
  special_tokens: SpecialTokens;
  /** tokens that it reads at most. */
  context: number;
  state: ClassifyState;
}

/** A picture that is classified. */
export interface ClassifyImageState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  marked: number[][];
  combine: "mean" | "max";
  hide: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden: number[];
  merged: boolean;
  rows: number[];
  cols: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  off: any[][];
  open: boolean;
  /** by number, row by row from the upper left. */
  hidden_patches: number[];
  /** the index of the label whose probability is shown. */
  label: number;
  /** what the patches are shaded by: attention, the effect that each has on the label, or nothing. */
  shade: "attention" | "effect" | "nothing";
}

/** A classifier of pictures; its program takes the patches that are hidden, a truth value for each. */
export interface ClassifyImageDocument {
  title: string;
  programs?: Record<string, any>;
  vocabularies: Record<string, any>[];
  note?: string;
  tries: any[][];
  kind: "classify-image";
  /** names of the classes, in the order of the logits. */
  labels: string[];
  /** the picture that is drawn. */
  picture: ImageSpec;
  /** the position of each token on it. */
  patches: Patches;
  /** a label for each token. */
  words: string[];
  state: ClassifyImageState;
}

/** A text with masked tokens. */
export interface FillState {
  mode: HeadMode;
  part: number;
  layer: number;
  head: number;
  marked: number[][];
  combine: "mean" | "max";
  hide: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden: number[];
  merged: boolean;
  rows: number[];
  cols: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  off: any[][];
  open: boolean;
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
  vocabularies: Record<string, any>[];
  note?: string;
  tries: any[][];
  kind: "fill";
  special_tokens: SpecialTokens;
  /** tokens that it reads at most. */
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
  marked: number[][];
  combine: "mean" | "max";
  hide: "nothing" | "first" | "separators" | "sinks" | "chosen";
  hidden: number[];
  merged: boolean;
  rows: number[];
  cols: number[];
  min_weight: number;
  max_links: number;
  direction: "from" | "to";
  off: any[][];
  open: boolean;
  sentence: string;
  /** texts that are kept at a time. */
  width: number;
  /** exponent of the length penalty. */
  alpha: number;
  /** ids that the translation has to begin with. */
  prefix: number[];
  /** of the search after them. */
  steps: number;
  /** [step, rank] of the text that is looked at; null: the best. */
  node: number[] | null;
  /** prefixes that were tried. */
  forced: number[][];
}

/** An encoder-decoder. */
export interface TranslateDocument {
  title: string;
  programs?: Record<string, any>;
  vocabularies: Record<string, any>[];
  note?: string;
  tries: any[][];
  kind: "translate";
  /** of a translation, its end token included. */
  max_tokens: number;
  /** tokens that the encoder reads at most; null: any number. */
  max_source: number | null;
  /** texts that are kept at a time, at most. */
  max_width: number;
  /** exponent of the length penalty, at most. */
  max_alpha: number;
  /** the id that a translation begins with. */
  begin: number;
  /** the id that it ends with. */
  end: number;
  /** ids that are never written. */
  suppressed: number[];
  /** ids that a source ends with. */
  source_end: number[];
  /** names of the rows and columns of attention. */
  axes: string[];
  state: TranslateState;
}

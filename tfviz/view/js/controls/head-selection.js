// The selection of what a view of heads shows: which part and heads, how they are combined, which keys are hidden, and
// whether word pieces are merged.

import { ABSENT, Grid, combine, difference, merge, sinks, without } from "../base/grid.js";
import { LOCKS } from "../base/locks.js";
import { clamp, formatCount } from "../base/numbers.js";
import { describeToken, otherSide } from "../base/patch-grid.js";
import { TEXT_COLOURS } from "../base/theme.js";

/** @import { HeadsDocument, HeadsState, MapsPart } from "../documents.js" */
/** @import { AnyGrid, Choices, GridPanel, Locked, Side } from "../types.js" */
/** @import { Token, Words } from "../base/patch-grid.js" */
/**
 * The attention maps that a view of heads needs; `HeadSource` implements it, as does `CapturedMaps` of the studios.
 * @typedef {object} HeadMaps
 * @property {Pick<HeadsDocument, "arrange" | "axes" | "head_names" | "outlined" | "dividers" | "image" | "title" | "unit" | "note"> & { sheet?: boolean }} viewDocument sheet: false if all heads are shown elsewhere
 * @property {Pick<MapsPart, "name" | "rows" | "columns" | "layers" | "heads" | "groups" | "top" | "patches">[]} parts
 * @property {(part: number, layer: number, head: number) => Promise<Grid>} head
 * @property {(part: number, layer: number, head: number) => Promise<AnyGrid>} fullHead
 * @property {(part: number, layer: number, head: number) => boolean} isPartial
 * @property {number | null} [current] the query that a map marks
 */

const SEPARATORS = /^(\[SEP\]|\[CLS\]|\[PAD\]|<\/?s>|<pad>|<bos>|<eos>|<\|.*\|>|[.,;:!?\n])$/;

/** An adapter that turns the reader's choices into the grids to show. */
export class HeadSelection {
  /** @type {{ rows: string[], columns: string[] } | undefined} */
  longestWords;

  /** @param {HeadMaps} source @param {Choices<HeadsState>} store */
  constructor(source, store) {
    this.source = source;
    this.store = store;
    this.arrange = source.viewDocument.arrange;
  }

  get partIndex() {
    return Math.min(this.store.get("part"), this.source.parts.length - 1);
  }

  get part() {
    return this.source.parts[this.partIndex];
  }

  /** The numbers of layers and heads to choose from; for two compared captures, those that both have. */
  get shape() {
    const parts = this.arrange === "compare" ? this.source.parts : [this.part];
    /** @param {"layers" | "heads"} name */
    const minimum = (name) => Math.min(...parts.map((part) => part[name]));
    return { layers: minimum("layers"), heads: minimum("heads") };
  }

  /** Whether one side of these maps lies on a picture. */
  get hasPicture() {
    return Boolean(this.source.viewDocument.image);
  }

  /** The token whose weights a picture shows, a query or a key. @returns {Token} */
  get token() {
    /** @type {Side} */
    const side = this.store.get("direction") === "to" ? "columns" : "rows";
    return { side, index: clamp(this.store.get(LOCKS[side]).at(-1) ?? 0, 0, this.part[side].length - 1) };
  }

  /** What a sheet of pictures shows of each head, in words. */
  get pictureCaption() {
    const patches = this.part.patches?.[otherSide(this.token.side)];
    return patches ? `: ${describeToken(this.part, this.token)}` : "";
  }

  /** Whether the view can show all heads at once; a studio shows them beside its text instead. */
  get hasSheet() {
    return this.source.viewDocument.sheet !== false;
  }

  get hasOneHead() {
    const { layers, heads } = this.shape;
    return layers * heads === 1;
  }

  /** The heads that are shown together: [layer, head], at least one. @returns {number[][]} */
  get heads() {
    const { layers, heads } = this.shape;
    const several = this.part.top ? [] : this.store.get("selected_heads"); // a mean cannot be computed from the strongest keys alone
    const selected = several.length ? several : [[this.store.get("layer"), this.store.get("head")]];
    return selected.map(([layer, head]) => [clamp(layer, 0, layers - 1), clamp(head, 0, heads - 1)]);
  }

  /**
   * Return the number that gives a head its colour: its own number; if heads of several layers are chosen, a number
   * by its position among them, or -1.
   * @param {number} layer
   * @param {number} head
   */
  colourIndex(layer, head) {
    const on = this.heads;
    const severalLayers = on.some(([other]) => other !== on[0][0]);
    if (!severalLayers) return head;
    const index = on.findIndex((pair) => pair[0] === layer && pair[1] === head);
    return index < 0 ? index : TEXT_COLOURS[index % TEXT_COLOURS.length];
  }

  /** Whether the kernel has more of these heads than the page. */
  get isPartial() {
    return this.heads.some(([layer, head]) => this.source.isPartial(this.partIndex, layer, head));
  }

  /**
   * Return the rows and columns that are locked and exist in a grid.
   * @param {AnyGrid} grid
   * @returns {Locked}
   */
  lockedIn(grid) {
    /** @param {Side} side */
    const existing = (side) => this.store.get(LOCKS[side]).filter((i) => i >= 0 && i < grid[side].length);
    return { rows: existing("rows"), columns: existing("columns") };
  }

  /**
   * Return the query whose row is read: the one locked last, else the one that the author outlined, else the last of all.
   * @param {AnyGrid} grid
   */
  row(grid) {
    const { outlined = [], dividers = [] } = this.source.viewDocument;
    const author = dividers.find(([side]) => side === "rows")?.[1] ?? outlined.at(-1)?.[0] ?? Infinity;
    return this.lockedIn(grid).rows.at(-1) ?? Math.min(author, grid.rows.length - 1);
  }

  /**
   * @param {number} part
   * @param {number} layer
   * @param {number} head
   * @param {boolean} full whether it has to have all cells
   * @returns {Promise<AnyGrid>}
   */
  async grid(part, layer, head, full) {
    const grid = await (full ? this.source.fullHead(part, layer, head) : this.source.head(part, layer, head));
    if (this.arrange !== "steps" || !(grid instanceof Grid)) return grid;
    return stretched(grid, this.source.parts[part], this.largest);
  }

  /** The words of the largest of all steps. */
  get largest() {
    /** @param {Side} side @returns {(words: string[], part: Words) => string[]} */
    const longer = (side) => (words, part) => (part[side].length > words.length ? part[side] : words);
    /** @param {Side} side */
    const longest = (side) => this.source.parts.reduce(longer(side), /** @type {string[]} */ ([]));
    this.longestWords ??= { rows: longest("rows"), columns: longest("columns") };
    return this.longestWords;
  }

  /**
   * Return the chosen heads of a part, each as it is to be shown, or all combined into one.
   * @param {number} part
   * @param {boolean} together
   * @param {boolean} full
   * @returns {Promise<AnyGrid[]>}
   */
  async resolveGrids(part, together, full) {
    const grids = await Promise.all(this.heads.map(([layer, head]) => this.grid(part, layer, head, full)));
    if (together && grids.length === 1 && !(grids[0] instanceof Grid) && this.unfiltered) return grids;
    const overviews = grids.map((grid) => (grid instanceof Grid ? grid : grid.overview));
    const coarsest = Math.min(...overviews.map((grid) => grid.rows.length));
    const sameSize = overviews.map((grid) => halved(grid, coarsest));
    const combined = together ? [combine(sameSize, this.store.get("combine_heads"))] : sameSize;
    return combined.map((grid) => this.filteredGrid(grid, part));
  }

  /**
   * Whether a single head is shown unchanged. Only then can a head that is too large to be held in full be zoomed
   * into.
   */
  get unfiltered() {
    /** @type {<Name extends keyof HeadsState>(name: Name, value: HeadsState[Name]) => boolean} */
    const as = (name, value) => this.store.get(name) === value;
    return (
      (as("mode", "head") || as("mode", "picture")) &&
      as("hide_keys", "nothing") &&
      as("merge_subwords", false) &&
      this.arrange === "choose"
    );
  }

  /** @param {Grid} grid @param {number} part */
  filteredGrid(grid, part) {
    const groups = this.store.get("mode") === "picture" ? null : this.source.parts[part].groups;
    const left = without(grid, new Set(this.hiddenKeys(grid)));
    if (!this.store.get("merge_subwords") || !groups || grid.rows.length !== groups.rows.length) return left;
    return merge(
      left,
      groups.rows,
      left.visibleKeys ? dense(left.visibleKeys.map((i) => groups.columns[i])) : groups.columns,
    );
  }

  /**
   * Return the keys that the reader has hidden.
   * @param {Grid} grid
   * @returns {number[]}
   */
  hiddenKeys(grid) {
    if (this.part.top) return []; // the weight of keys that are left out cannot be distributed
    /** @param {string} word */
    const separates = (word) => SEPARATORS.test(word.trim() || word);
    /** @type {Record<HeadsState["hide_keys"], () => number[]>} */
    const kinds = {
      nothing: () => [],
      first: () => [0],
      separators: () => [...grid.columns.keys()].filter((i) => separates(grid.columns[i])),
      sinks: () => [...sinks(grid)],
      chosen: () => this.store.get("hidden_keys"),
    };
    return kinds[this.store.get("hide_keys")]?.() ?? [];
  }

  /**
   * Return the chosen heads combined, as the only panel.
   * @param {boolean} full
   * @returns {Promise<GridPanel[]>}
   */
  async singlePanel(full) {
    return [
      { name: "", grid: (await this.resolveGrids(this.partIndex, true, full))[0], axes: this.source.viewDocument.axes },
    ];
  }

  /**
   * Return the panels that stand side by side: one grid; or two captures and, if they have the same size, their
   * difference.
   * @param {boolean} full
   * @returns {Promise<GridPanel[]>}
   */
  async panels(full) {
    if (this.arrange !== "compare") return this.singlePanel(full);
    const { parts } = this.source;
    const { axes } = this.source.viewDocument;
    const grids = await Promise.all(parts.map(async (_, i) => (await this.resolveGrids(i, true, full))[0]));
    const panels = grids.map((grid, i) => ({ name: parts[i].name, grid, axes }));
    const [a, b] = grids;
    const sizes = a.rows.length === b.rows.length && a.columns.length === b.columns.length;
    if (!sizes || !(a instanceof Grid) || !(b instanceof Grid) || String(a.visibleKeys) !== String(b.visibleKeys))
      return panels;
    return [...panels, { name: `${parts[1].name} − ${parts[0].name}`, grid: difference(a, b), axes }];
  }

  /** Name the size of the sheet; maps with names of their own need not be heads. @param {number} layers @param {number} heads */
  sizeOf(layers, heads) {
    const named = layers === 1 && this.source.viewDocument.head_names.length > 0;
    return named ? formatCount(heads, "map") : `${formatCount(layers, "layer")} × ${formatCount(heads, "head")}`;
  }

  /** Describe what is shown. @param {string} mode */
  caption(mode) {
    const selected = this.store.get("selected_heads");
    const { layers, heads } = this.shape;
    const { length } = this.source.parts;
    const step = this.arrange === "steps" ? ` (${this.partIndex + 1} of ${length})` : "";
    const part = length > 1 && this.arrange !== "compare" ? `${this.part.name}${step}, ` : "";
    if (mode === "sheet")
      return `${part}${this.sizeOf(layers, heads)}${selected.length ? `, ${selected.length} marked` : ""}${this.pictureCaption}`;
    if (this.hasOneHead) return part.replace(/, $/, "");
    if (selected.length < 2) return `${part}layer ${this.heads[0][0]}, head ${this.heads[0][1]}`;
    const how = mode === "links" ? "" : `${this.store.get("combine_heads")} of `;
    return `${part}${how}heads ${selected.map((at) => at.join(".")).join(", ")}`;
  }
}

/**
 * Halve a grid until it has no more rows than this.
 * @param {Grid} grid
 * @param {number} rows
 */
function halved(grid, rows) {
  let smaller = grid;
  while (smaller.rows.length > rows) smaller = smaller.downsample();
  return smaller;
}

/** Number groups without gaps: 3, 3, 5 becomes 0, 0, 1. @param {number[]} groups */
const dense = (groups) => groups.map((group) => [...new Set(groups)].indexOf(group));

/**
 * Extend a step's grid to the size of the largest: cells that do not exist yet are absent, not zero.
 * @param {Grid} grid
 * @param {Words} part
 * @param {Words} largest
 */
function stretched(grid, part, largest) {
  /** @param {Side} side */
  const longer = (side) => largest[side].filter((_, i) => i % grid.poolSize === 0).slice(grid[side].length);
  if (part.rows.length === largest.rows.length && part.columns.length === largest.columns.length) return grid;
  const [rows, columns] = [
    [...grid.rows, ...longer("rows")],
    [...grid.columns, ...longer("columns")],
  ];
  const codes = new Uint8Array(rows.length * columns.length);
  const state = new Uint8Array(codes.length).fill(ABSENT);
  const values = grid.values && new Float32Array(codes.length);
  const keys = grid.columns.length;
  for (let row = 0; row < grid.rows.length; row++) {
    codes.set(grid.codes.subarray(row * keys, (row + 1) * keys), row * columns.length);
    state.set(grid.state.subarray(row * keys, (row + 1) * keys), row * columns.length);
    for (let col = 0; values && col < keys; col++) values[row * columns.length + col] = grid.at(row, col);
  }
  const { scale, limit, poolSize } = grid;
  return new Grid(rows, columns, codes, state, { values, scale, limit, poolSize });
}

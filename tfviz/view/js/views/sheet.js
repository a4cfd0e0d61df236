// A drawing of all heads as small heatmaps on one canvas and one scale: layers are columns, as in the studios, and heads
// are rows; the heads of a single layer stand side by side.

import { ARROW_STEPS, EDGE_STEPS, consume, followPointer, pointIn } from "../base/events.js";
import { ALLOWED } from "../base/grid.js";
import { clamp, formatNumber } from "../base/numbers.js";
import { describeCell } from "./aria-text.js";
import { cornerTag } from "./head-tags.js";
import { SCALE_HEIGHT, horizontalLegend } from "./legend.js";
import { paint } from "../base/paint.js";
import { devicePixels, textWidth } from "../base/pen.js";

/** @import { AnyGrid, Pen, Point } from "../types.js" */
/** @import { Grid } from "../base/grid.js" */
/** @typedef {{ layers: number, heads: number, rows: string[], columns: string[] }} Part */
/**
 * @typedef {object} SheetStyle
 * @property {Map<string, AnyGrid>} grids by "layer.head", those that have arrived
 * @property {Map<string, AnyGrid>} [thumbs] what is drawn for each head instead of its map
 * @property {number} [limit] where the scale of these ends
 * @property {Point} chosen
 * @property {Point[]} marked
 * @property {number | null} [row] the query to mark in every head
 * @property {number[][]} [outlined] the cells to outline in every head, [query, key]
 * @property {boolean} [tagged] whether a map says in a corner what its head looks at
 * @property {boolean} [focused]
 */
/**
 * @typedef {object} SheetHandlers
 * @property {(layer: number, head: number) => void} open
 * @property {(layer: number, head: number) => void} mark
 * @property {(at: Point | null, pointer?: Point) => void} point a head, and where in the drawing
 * @property {() => void} leave
 */

const FONT_SIZE = 12; // pixels
const MIN_OUTLINED_CELL = 5; // pixels
const MAX_THUMB = 190; // pixels of the side of a head's map
const [MIN_HEIGHT, MAX_HEIGHT] = [360, 640]; // pixels of all maps together, while each has MIN_THUMB
const OTHER_HEIGHT = 368; // pixels of all else in a view: one of many heads fits into the window
const MIN_THUMB = 60;
const MAX_SCALE_WIDTH = 280;

/** The layout and drawing of a sheet of heads, with its keyboard and pointer events. */
export class Sheet {
  /** @type {WeakMap<AnyGrid, { key: string, image: ImageData }>} */
  thumbs = new WeakMap();
  at = [0, 0];
  /** @type {Part} */
  part = { layers: 0, heads: 0, rows: [], columns: [] };
  /** Where the heads stand, in pixels. */
  left = 58;
  top = 26;
  gap = 4;
  thumbWidth = 0;
  thumbHeight = 0;
  mapsBottom = 0;
  width = 0;
  height = 0;

  /**
   * @param {import("../base/theme.js").Theme} theme
   * @param {string[]} names of the heads, instead of numbers
   * @param {string} [unit] name of the numbers; empty: there is no scale
   */
  constructor(theme, names, unit = "attention weight") {
    this.theme = theme;
    this.names = names?.length ? names : null;
    this.unit = unit;
  }

  /** Whether layers are columns and heads are rows. */
  get hasLayers() {
    return this.part.layers > 1;
  }

  /** Return column and row of a head, or layer and head of a column and row. @param {Point} cell @returns {Point} */
  transposed([one, other]) {
    return this.hasLayers ? [one, other] : [other, one];
  }

  /** @param {Part} part @param {number} width */
  layout(part, width) {
    const { layers, heads, rows, columns } = part;
    this.part = part;
    this.left = this.nameWidth;
    const { left, top, gap } = this;
    const [columnCount, lineCount] = this.transposed([layers, heads]);
    const shape = clamp(rows.length / columns.length, 0.5, 2);
    const available = clamp((globalThis.innerHeight ?? Infinity) - OTHER_HEIGHT, MIN_HEIGHT, MAX_HEIGHT);
    const high = Math.max(MIN_THUMB, (available / lineCount - gap) / shape);
    this.thumbWidth = clamp((width - left) / columnCount - gap, 6, Math.min(MAX_THUMB, high));
    this.thumbHeight = Math.max(8, this.thumbWidth * shape);
    this.mapsBottom = top + lineCount * (this.thumbHeight + gap);
    this.height = this.mapsBottom + (this.unit ? SCALE_HEIGHT : 0);
    this.width = Math.max(left + columnCount * (this.thumbWidth + gap), Math.min(width, left + MAX_SCALE_WIDTH));
    this.at = [Math.min(this.at[0], layers - 1), Math.min(this.at[1], heads - 1)];
    return this.height;
  }

  /** @param {number} layer @param {number} head */
  box(layer, head) {
    const [column, line] = this.transposed([layer, head]);
    return [
      this.left + column * (this.thumbWidth + this.gap),
      this.top + line * (this.thumbHeight + this.gap),
      this.thumbWidth,
      this.thumbHeight,
    ];
  }

  /** The pixels left of the maps, for the names of their rows. */
  get nameWidth() {
    if (!this.hasLayers) return 2;
    return clamp(16 + Math.max(...(this.names ?? [" head 00"]).map((name) => textWidth(name, FONT_SIZE))), 40, 140);
  }

  /** @param {number} x @param {number} y @returns {Point | null} layer and head */
  headAt(x, y) {
    const column = Math.floor((x - this.left) / (this.thumbWidth + this.gap));
    const line = Math.floor((y - this.top) / (this.thumbHeight + this.gap));
    const [layer, head] = this.transposed([column, line]);
    return head >= 0 && layer >= 0 && head < this.part.heads && layer < this.part.layers ? [layer, head] : null;
  }

  /** @param {Pen} pen @param {SheetStyle} style */
  draw(pen, style) {
    const { theme } = this;
    this.drawNames(pen);
    this.drawHeads(pen, style);
    this.drawFrames(pen, style);
    const width = Math.min(MAX_SCALE_WIDTH, this.width - this.left - 12);
    if (this.unit)
      horizontalLegend(
        pen,
        theme,
        { limit: style.limit ?? 1, unit: this.unit },
        [this.left, this.mapsBottom + 8],
        width,
      );
  }

  /** @param {Pen} pen @param {SheetStyle} style */
  drawHeads(pen, { grids, thumbs, row = null, outlined = [], tagged }) {
    for (let layer = 0; layer < this.part.layers; layer++)
      for (let head = 0; head < this.part.heads; head++) {
        const [x, y, w, h] = this.box(layer, head);
        const grid = (thumbs ?? grids).get(`${layer}.${head}`);
        if (grid) pen.image(this.thumb(grid, w, h, pen.ratio), x, y);
        pen.rect(x, y, w, h, { stroke: this.theme.line, lineWidth: 0.5 });
        if (!grid) continue;
        if (row !== null) this.markRow(pen, grid, row, [x, y, w, h]);
        if (thumbs) continue;
        this.outlineCells(pen, grid, outlined, [x, y, w, h]);
        if (tagged) this.drawTag(pen, grid, [x, y, w]);
      }
  }

  /** Frame the heads that are chosen, marked, and in focus. @param {Pen} pen @param {SheetStyle} style */
  drawFrames(pen, { chosen, marked, focused }) {
    const { theme, part } = this;
    /** @param {Point} head */
    const exists = ([layer, head]) => layer < part.layers && head < part.heads;
    if (exists(chosen) && !marked.some((other) => String(other) === String(chosen))) {
      const [x, y, w, h] = this.box(chosen[0], chosen[1]);
      pen.rect(x, y, w, h, { stroke: theme.ink, lineWidth: 1.5 });
    }
    for (const [x, y, w, h] of marked.filter(exists).map(([layer, head]) => this.box(layer, head)))
      pen.rect(x + 1, y + 1, w - 2, h - 2, { stroke: theme.mark, lineWidth: 2.5 });
    if (!focused) return;
    const [x, y, w, h] = this.box(this.at[0], this.at[1]);
    pen.rect(x - 1.5, y - 1.5, w + 3, h + 3, { stroke: theme.focus, lineWidth: 2 });
  }

  /**
   * Frame one query's row, at least three pixels tall so that it can be seen.
   * @param {Pen} pen
   * @param {AnyGrid} grid
   * @param {number} row
   * @param {number[]} box
   */
  markRow(pen, grid, row, [x, y, width, thumbHeight]) {
    const step = thumbHeight / grid.rows.length;
    const height = Math.max(3, step);
    const top = Math.min(thumbHeight - height, Math.max(0, (row + 0.5) * step - height / 2));
    pen.rect(x, y + top, width, height, { stroke: this.theme.ink, lineWidth: 1 });
  }

  /**
   * Write what a head does into its upper right corner, where a causal mask leaves room.
   * @param {Pen} pen
   * @param {AnyGrid} grid
   * @param {number[]} box
   */
  drawTag(pen, grid, [x, y, width]) {
    const tag = cornerTag(grid, width, FONT_SIZE);
    if (!tag) return;
    const needed = textWidth(tag, FONT_SIZE) + 8;
    pen.rect(x + width - needed - 1, y + 1, needed, FONT_SIZE + 6, { fill: this.theme.page });
    pen.text(x + width - needed / 2 - 1, y + 4 + FONT_SIZE / 2, tag, {
      fill: this.theme.ink,
      size: FONT_SIZE,
      align: "center",
    });
  }

  /**
   * Outline the cells that the author chose, where they are large enough to be seen in their outlines.
   * @param {Pen} pen
   * @param {AnyGrid} grid
   * @param {number[][]} cells
   * @param {number[]} box
   */
  outlineCells(pen, grid, cells, [x, y, width, height]) {
    const [w, h] = [width / grid.columns.length, height / grid.rows.length];
    if (Math.min(w, h) < MIN_OUTLINED_CELL) return;
    for (const [row, col] of cells)
      pen.rect(x + col * w + 0.5, y + row * h + 0.5, w - 1, h - 1, { stroke: this.theme.mark, lineWidth: 1 });
  }

  /** Draw the names of layers and heads, as many as have room. @param {Pen} pen */
  drawNames(pen) {
    const { part, names } = this;
    const fill = this.theme.soft;
    /** @param {number} size */
    const every = (size) => Math.max(1, Math.ceil(14 / (size + this.gap)));
    const columns = this.hasLayers ? part.layers : part.heads;
    for (let at = 0; at < columns; at += every(this.thumbWidth)) {
      const name = (this.hasLayers ? null : names?.[at]) ?? `${this.hasLayers ? "layer" : "head"} ${at}`;
      const text = textWidth(name, FONT_SIZE) < this.thumbWidth + this.gap ? name : `${at}`;
      const [layer, head] = this.transposed([at, 0]);
      const [x] = this.box(layer, head);
      pen.text(x + this.thumbWidth / 2, 13, text, { fill, size: FONT_SIZE, align: "center" });
    }
    for (let head = 0; head < part.heads && this.hasLayers; head += every(this.thumbHeight)) {
      const middle = this.box(0, head)[1] + this.thumbHeight / 2;
      pen.text(this.left - 8, middle, names?.[head] ?? `head ${head}`, { fill, size: FONT_SIZE, align: "right" });
    }
  }

  /** @param {AnyGrid} grid @param {number} width @param {number} height @param {number} ratio */
  thumb(grid, width, height, ratio) {
    const [imageWidth, imageHeight] = devicePixels([width, height], ratio);
    const key = `${imageWidth} ${imageHeight} ${this.theme.key}`;
    const cached = this.thumbs.get(grid);
    if (cached?.key === key) return cached.image;
    const all = { x: 0, y: 0, width: grid.columns.length, height: grid.rows.length };
    const image = paint(/** @type {Grid} */ (grid), all, imageWidth, imageHeight, this.theme, ratio);
    this.thumbs.set(grid, { key, image });
    return image;
  }

  /** @param {number} x @param {number} y @param {AnyGrid} grid of the head there @returns {Point} its query and key */
  pairAt(x, y, grid) {
    const [right, down] = [x - this.left, y - this.top];
    /** @param {number} at @param {number} size @param {number} count */
    const index = (at, size, count) =>
      Math.min(count - 1, Math.max(0, Math.floor(((at % (size + this.gap)) / size) * count)));
    return [index(down, this.thumbHeight, grid.rows.length), index(right, this.thumbWidth, grid.columns.length)];
  }

  /** @param {number} layer @param {number} head */
  nameOf(layer, head) {
    const name = this.names?.[head] ?? `head ${head}`;
    return this.part.layers > 1 || !this.names ? `Layer ${layer}, ${name}` : name;
  }

  /** @param {number} layer @param {number} head @param {AnyGrid} [grid] @param {Point | null} [pair] the query and key pointed at */
  describe(layer, head, grid, pair = null) {
    if (!grid) return `layer ${layer}, head ${head}`;
    if (pair) return describeCell(grid, pair, `layer ${layer}, head ${head}`, grid.rest !== null);
    return `layer ${layer}, head ${head}: the strongest key of a query has ${formatNumber(sharpness(grid))} on average`;
  }

  /** @param {HTMLCanvasElement} canvas @param {SheetHandlers} handlers */
  listen(canvas, handlers) {
    /** @param {MouseEvent} event */
    const headUnder = (event) => {
      return this.headAt(...pointIn(canvas, event));
    };
    followPointer(
      canvas,
      (event) => handlers.point(headUnder(event), [event.offsetX, event.offsetY]),
      () => handlers.point(null),
    );
    canvas.onclick = (event) => {
      const at = headUnder(event);
      if (!at) return;
      this.at = at;
      if (event.shiftKey || event.ctrlKey || event.metaKey) handlers.mark(at[0], at[1]);
      else handlers.open(at[0], at[1]);
    };
    canvas.onkeydown = (event) => {
      const [down, right] = ARROW_STEPS[event.key] ?? EDGE_STEPS[event.key] ?? [0, 0];
      const [layers, heads] = this.transposed([right, down]);
      if (layers || heads)
        this.at = [
          clamp(this.at[0] + layers, 0, this.part.layers - 1),
          clamp(this.at[1] + heads, 0, this.part.heads - 1),
        ];
      else if (event.key === "Enter") handlers.open(this.at[0], this.at[1]);
      else if (event.key === " ") handlers.mark(this.at[0], this.at[1]);
      else if (event.key === "Escape") handlers.leave();
      else return;
      handlers.point(this.at);
      consume(event);
    };
    canvas.onfocus = () => handlers.point(this.at);
    canvas.onblur = () => handlers.point(null);
  }
}

/**
 * Return the sharpness of a head: the weight of each query's strongest key, averaged over the queries that may attend at
 * any.
 * @param {AnyGrid} grid
 */
export function sharpness(grid) {
  let [sum, count] = [0, 0];
  for (let row = 0; row < grid.rows.length; row++) {
    let best = -1;
    for (let col = 0; col < grid.columns.length; col++)
      if (grid.stateAt(row, col) === ALLOWED) best = Math.max(best, grid.at(row, col));
    if (best >= 0) [sum, count] = [sum + best, count + 1];
  }
  return count ? sum / count : 0;
}

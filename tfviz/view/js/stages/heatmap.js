// A drawing of one grid as a heatmap: queries are rows from the top, keys are columns with their labels along the upper
// edge.

import { clamp } from "../base/clamp.js";
import { Grid, NUMBERED, OPEN } from "../base/grid.js";
import { inCell } from "../base/numbers.js";
import { paint } from "../base/paint.js";
import { textWidth } from "../base/pen.js";
import { TiledGrid } from "../base/tiled-grid.js";
import { label } from "../base/visible-text.js";
import { legend } from "./legend.js";

/** @import { Divider } from "../documents.d.ts" */
/** @import { AnyGrid, Cell, Pen, Point, Side, Window } from "../types.d.ts" */
/**
 * @typedef {object} HeatmapOptions
 * @property {string[]} [axes] names of rows and columns
 * @property {boolean} [legend] whether the colour scale stands beside it
 * @property {number} [maxHeight] pixels
 * @property {number} [maxCell] pixels of a cell
 * @property {boolean} [numbers] whether cells that have room show theirs
 */
/**
 * @typedef {object} HeatmapLook
 * @property {Point | null} [cursor]
 * @property {number[]} [rows] that are locked
 * @property {number[]} [cols] that are locked
 * @property {number[][]} [outlined] cells to mark
 * @property {Divider[]} [dividers]
 * @property {string} [title]
 */

const SIZE = 12;
const GAP = 14;
const LEGEND = 58;
const EDGE = 3;
const NO_GRID = new Grid([], [], new Uint8Array(), new Uint8Array());
const QUERY_KEY = ["query", "key"];
const COLUMN_LETTERS = 48; // of the names of rows, where there is one column
const NUMBER_CELL = [84, 24]; // pixels of a cell of one column
const TEXT_CELL = [84, 26]; // pixels of a cell with its text: width and height
export const ROOMY = 44; // pixels of a cell with its number

/** The layout and drawing of a heatmap with labels, legend, cursor and locks, which can be zoomed and moved. */
export class Heatmap {
  /** @type {{ key: string, image: ImageData } | null} */
  painted = null;
  /** @type {AnyGrid} what is shown; nothing is drawn before there is one */
  grid = NO_GRID;
  /** @type {Window} of the grid, in cells */
  window = { x: 0, y: 0, wide: 0, tall: 0 };
  /** @type {string[][]} of rows and columns */
  labels = [[], []];
  upright = false;
  numbered = false;
  roomy = ROOMY; // pixels of a cell with its number, at most
  /** @type {string[][] | null} what is written into each cell */
  texts = null;
  /** The place on the canvas, in pixels. */
  left = 0;
  top = 0;
  wide = 0;
  tall = 0;
  width = 0;
  height = 0;

  /** @param {import("../base/theme.js").Theme} theme @param {HeatmapOptions} [options] */
  constructor(theme, { axes = QUERY_KEY, legend = true, maxHeight = 660, maxCell = 34, numbers = false } = {}) {
    this.theme = theme;
    this.axes = axes;
    this.legend = legend;
    this.maxHeight = maxHeight;
    this.maxCell = maxCell;
    this.numbers = numbers;
  }

  /**
   * Lay out everything for a width, in pixels.
   * @param {AnyGrid} grid
   * @param {number} width
   * @returns {number} its height
   */
  place(grid, width) {
    const [n, m] = [grid.rows.length, grid.cols.length];
    if (grid !== this.grid) {
      const letters = m === 1 ? COLUMN_LETTERS : undefined;
      this.labels = [grid.rows.map((word) => label(word, letters)), grid.cols.map((word) => label(word))];
      this.painted = null;
    }
    this.upright = m > 1 && widestLabel(this.labels[1]) > 16;
    const left = Math.min(0.4 * width, Math.max(textWidth(`${this.axes[0]} ↓`) + 12, widestLabel(this.labels[0]) + 10));
    const top = this.upright ? Math.max(42, widestLabel(this.labels[1]) + 22) : 34;
    const few = this.numbers && n * m <= NUMBERED;
    const [wide, tall] = this.cellSize(n, m, few ? this.roomy : this.maxCell, width - left);
    if (grid.rows.length !== this.grid.rows.length || grid.cols.length !== this.grid.cols.length) this.fit(grid);
    const numbered = few && wide >= 26 && tall >= 13;
    this.grid = grid;
    this.left = left;
    this.top = top;
    this.wide = Math.max(1, wide * m);
    this.tall = Math.max(1, tall * n);
    this.width = width;
    this.numbered = numbered;
    this.height = top + this.tall + EDGE;
    return this.height;
  }

  /**
   * Return the width and height of a cell, in pixels.
   * @param {number} n rows
   * @param {number} m columns
   * @param {number} maxCell
   * @param {number} width of cells and legend together
   * @returns {[wide: number, tall: number]}
   */
  cellSize(n, m, maxCell, width) {
    const share = (width - (this.legend ? LEGEND : EDGE)) / m;
    if (this.texts) return [Math.min(TEXT_CELL[0], share), TEXT_CELL[1]];
    if (m === 1) return [Math.min(NUMBER_CELL[0], width), Math.min(NUMBER_CELL[1], this.maxHeight / n)];
    const [wide, tall] = [Math.min(maxCell, share), Math.min(maxCell, this.maxHeight / n)];
    const aspect = n === m ? 1 : 4; // of a cell, at most
    return [Math.min(wide, aspect * tall), Math.min(tall, aspect * wide)];
  }

  /** @param {AnyGrid} [grid] */
  fit(grid = this.grid) {
    this.window = { x: 0, y: 0, wide: grid.cols.length, tall: grid.rows.length };
  }

  get zoomed() {
    return this.window.wide < this.grid.cols.length || this.window.tall < this.grid.rows.length;
  }

  /**
   * Zoom by a factor, about a point of the visible part, given as shares between 0 and 1.
   * @param {number} factor
   * @param {number} [across]
   * @param {number} [down]
   */
  zoom(factor, across = 0.5, down = 0.5) {
    const { x, y, wide, tall } = this.window;
    const [n, m] = [this.grid.rows.length, this.grid.cols.length];
    const minScale = Math.min(1, 4 / Math.max(wide, tall)); // four cells
    const scale = Math.max(1 / factor, minScale);
    const [w, t] = [Math.min(m, wide * scale), Math.min(n, tall * scale)];
    this.window = { x: x + (wide - w) * across, y: y + (tall - t) * down, wide: w, tall: t };
    this.pan(0, 0);
  }

  /**
   * Move by a number of cells, as far as there are cells.
   * @param {number} cols
   * @param {number} rows
   */
  pan(cols, rows) {
    const { x, y, wide, tall } = this.window;
    this.window = {
      x: clamp(x + cols, 0, this.grid.cols.length - wide),
      y: clamp(y + rows, 0, this.grid.rows.length - tall),
      wide,
      tall,
    };
  }

  /** @param {Point} cell */
  reveal([row, col]) {
    const { x, y, wide, tall } = this.window;
    /** @param {number} at @param {number} from @param {number} size */
    const beyond = (at, from, size) => (at < from ? at - from : Math.max(0, at + 1 - from - size));
    this.pan(beyond(col, x, wide), beyond(row, y, tall));
  }

  /**
   * Return the cell under a point: [row, col], null for a coordinate on the other axis's words.
   * @param {number} x
   * @param {number} y
   * @returns {Cell}
   */
  cell(x, y) {
    const col = this.window.x + ((x - this.left) / this.wide) * this.window.wide;
    const row = this.window.y + ((y - this.top) / this.tall) * this.window.tall;
    /** @param {number} at @param {number} from @param {number} size @param {number} count */
    const inside = (at, from, size, count) =>
      at >= from && at < from + size ? Math.min(Math.floor(at), count - 1) : null;
    return [
      inside(row, this.window.y, this.window.tall, this.grid.rows.length),
      inside(col, this.window.x, this.window.wide, this.grid.cols.length),
    ];
  }

  /**
   * Return the upper left corner and the size of a cell.
   * @param {number} row
   * @param {number} col
   */
  box(row, col) {
    const [w, t] = [this.wide / this.window.wide, this.tall / this.window.tall];
    return [this.left + (col - this.window.x) * w, this.top + (row - this.window.y) * t, w, t];
  }

  /** @param {Pen} pen @param {HeatmapLook} [look] */
  draw(pen, look = {}) {
    const { cursor = null, rows = [], cols = [], title = "" } = look;
    const { theme, left, top, wide, tall } = this;
    pen.image(this.image(pen.ratio), left, top);
    if (this.numbered || this.texts) this.drawCellTexts(pen);
    this.fadeUnlocked(pen, rows, cols);
    pen.rect(left, top, wide, tall, { stroke: theme.line, thick: 1 });
    this.drawMarks(pen, look);
    this.drawWords(pen, 0, new Set(rows), cursor?.[0]);
    this.drawWords(pen, 1, new Set(cols), cursor?.[1]);
    this.drawHeading(pen, title);
    if (this.legend && !this.numbered) legend(pen, theme, this.grid, left + wide + 14, top, Math.min(tall, 180));
  }

  /** @param {Pen} pen @param {HeatmapLook} look */
  drawMarks(pen, { cursor = null, outlined = [], dividers = [] }) {
    for (const [row, col] of outlined) this.drawOutline(pen, row, col, this.theme.mark, 1.5);
    for (const [axis, index] of dividers) this.drawDivider(pen, axis, index);
    if (cursor && this.visible(cursor[0], cursor[1])) this.drawOutline(pen, cursor[0], cursor[1], this.theme.ink, 1.5);
  }

  /**
   * Return the cells of the window in pixels of the device; they are kept until one of them changes.
   * @param {number} ratio
   */
  image(ratio) {
    const { theme, wide, tall } = this;
    const tiled = this.grid instanceof TiledGrid ? this.grid : null;
    const key = JSON.stringify([this.window, wide, tall, theme.key, ratio, tiled?.version]);
    if (this.painted?.key !== key) {
      const [across, down] = [wide, tall].map((length) => Math.max(1, Math.round(length * ratio)));
      const [grid, window] = tiled?.partFor(this.window) ?? [/** @type {Grid} */ (this.grid), this.window];
      this.painted = { key, image: paint(grid, window, across, down, theme, ratio) };
    }
    return this.painted.image;
  }

  /**
   * Draw the names of both axes, or a title in place of the second.
   * @param {Pen} pen
   * @param {string} title
   */
  drawHeading(pen, title) {
    const { theme, left, axes } = this;
    if (axes[0]) pen.text(left - 8, 9, `${axes[0]} ↓`, { fill: theme.soft, align: "right" });
    if (title) pen.text(left, 9, title, { fill: theme.ink, bold: true });
    else if (axes[1]) pen.text(left, 9, `${axes[1]} →`, { fill: theme.soft });
  }

  /** @param {Pen} pen */
  drawCellTexts(pen) {
    const { grid, theme, texts } = this;
    if (!(grid instanceof Grid)) return;
    const [, , wide] = this.box(0, 0);
    if (texts && wide < 16) return;
    const lut = theme.lut(grid);
    for (let row = 0; row < grid.rows.length; row++)
      for (let col = 0; col < grid.cols.length; col++) {
        if (!grid.is(row, col, OPEN) || !this.visible(row + 0.5, col + 0.5, 0)) continue;
        const [x, y] = this.box(row + 0.5, col + 0.5);
        const text = texts ? fitting(texts[row][col], wide - 6) : inCell(grid.at(row, col), grid.limit);
        const fill = theme.inkOn(lut[grid.codes[row * grid.cols.length + col]]);
        pen.text(x, y, text, { fill, size: textWidth(text, 12) > wide - 4 ? 10 : 12, align: "center" });
      }
  }

  /** @param {number} row @param {number} col @param {number} [size] */
  visible(row, col, size = 1) {
    const { x, y, wide, tall } = this.window;
    return row + size > y && row < y + tall && col + size > x && col < x + wide;
  }

  /** @param {Pen} pen @param {number} row @param {number} col @param {string} stroke @param {number} thick */
  drawOutline(pen, row, col, stroke, thick) {
    const [x, y, w, t] = this.box(row, col);
    const [x1, y1] = [Math.max(x, this.left), Math.max(y, this.top)];
    const [x2, y2] = [
      Math.min(Math.max(x + w, x + 3), this.left + this.wide),
      Math.min(Math.max(y + t, y + 3), this.top + this.tall),
    ];
    if (x2 > x1 && y2 > y1) pen.rect(x1, y1, x2 - x1, y2 - y1, { stroke, thick });
  }

  /** @param {Pen} pen @param {Side} axis @param {number} index */
  drawDivider(pen, axis, index) {
    const [x, y] = this.box(index, index);
    const down = axis === "rows";
    const at = down ? y : x;
    const from = down ? this.top : this.left;
    if (at <= from || at >= from + (down ? this.tall : this.wide)) return;
    if (down) pen.line(this.left, at, this.left + this.wide, at, { stroke: this.theme.mark, thick: 1.5 });
    else pen.line(at, this.top, at, this.top + this.tall, { stroke: this.theme.mark, thick: 1.5 });
  }

  /**
   * Fade rows and columns that are not locked.
   * @param {Pen} pen
   * @param {number[]} rows
   * @param {number[]} cols
   */
  fadeUnlocked(pen, rows, cols) {
    /**
     * @param {number[]} locked
     * @param {number} from
     * @param {number} size
     * @param {(start: number, count: number) => void} draw
     */
    const fade = (locked, from, size, draw) => {
      if (!locked.length) return;
      const last = Math.ceil(from + size);
      let start = Math.floor(from);
      for (const stop of [...locked].sort((a, b) => a - b).concat(last)) {
        if (stop > start) draw(start, Math.min(stop, last) - start);
        start = Math.max(start, stop + 1);
      }
    };
    /** @param {number} x @param {number} y @param {number} w @param {number} t */
    const clipped = (x, y, w, t) => {
      const [x1, y1] = [Math.max(x, this.left), Math.max(y, this.top)];
      const [x2, y2] = [Math.min(x + w, this.left + this.wide), Math.min(y + t, this.top + this.tall)];
      if (x2 > x1 && y2 > y1) pen.rect(x1, y1, x2 - x1, y2 - y1, { fill: this.theme.page, alpha: 0.72 });
    };
    const [, , w, t] = this.box(0, 0);
    fade(rows, this.window.y, this.window.tall, (row, count) =>
      clipped(this.left, this.box(row, 0)[1], this.wide, count * t),
    );
    fade(cols, this.window.x, this.window.wide, (col, count) =>
      clipped(this.box(0, col)[0], this.top, count * w, this.tall),
    );
  }

  /**
   * Draw the labels of an axis, as many as fit, and always those locked or under the cursor.
   * @param {Pen} pen
   * @param {0 | 1} axis
   * @param {Set<number>} locked
   * @param {number} [pointed]
   */
  drawWords(pen, axis, locked, pointed) {
    const { theme } = this;
    const words = this.labels[axis];
    const [, , w, t] = this.box(0, 0);
    const cell = axis ? w : t;
    const spacing = axis && !this.upright ? widestLabel(words) + 3 : GAP;
    const step = Math.max(1, Math.ceil(spacing / cell));
    const [from, size] = axis ? [this.window.x, this.window.wide] : [this.window.y, this.window.tall];
    const near = pointed === undefined ? [...locked] : [...locked, pointed];
    /** @param {number} i @param {boolean} strong */
    const drawWord = (i, strong) => {
      const middle = axis ? this.box(0, i + 0.5)[0] : this.box(i + 0.5, 0)[1];
      const [low, high] = axis ? [this.left, this.left + this.wide] : [this.top, this.top + this.tall];
      if (middle < low || middle > high) return;
      const style = { fill: strong ? theme.ink : theme.soft, bold: strong, size: SIZE };
      const text = locked.has(i) ? `${words[i]}${axis ? " " : " "}●` : words[i];
      if (!axis) pen.text(this.left - 6, middle, text, { ...style, align: "right" });
      else if (this.upright) pen.text(middle, this.top - 6, text, { ...style, up: true });
      else pen.text(middle, this.top - 9, words[i], { ...style, align: "center" });
    };
    for (let i = Math.ceil(from / step) * step; i < Math.min(words.length, from + size); i += step) {
      if (!near.some((other) => Math.abs(other - i) * cell < spacing)) drawWord(i, false);
    }
    near.forEach((i) => drawWord(i, true));
  }
}

/**
 * Cut a text to a width, in pixels.
 * @param {string} text
 * @param {number} width
 */
function fitting(text, width) {
  let letters = [...label(text, 24)];
  while (letters.length > 1 && textWidth(letters.join(""), 12) > width) letters = [...letters.slice(0, -2), "…"];
  return letters.join("");
}

/** @type {WeakMap<string[], number>} */
const widths = new WeakMap();
/** @param {string[]} labels */
function widestLabel(labels) {
  const known = widths.get(labels);
  if (known !== undefined) return known;
  const widest = labels.reduce(
    (max, text) => (text.length > 2 || max < 16 ? Math.max(max, textWidth(text, SIZE, true)) : max),
    0,
  );
  const width = widest + (labels.some((text) => [...text].length > 1) ? 10 : 0);
  widths.set(labels, width);
  return width;
}

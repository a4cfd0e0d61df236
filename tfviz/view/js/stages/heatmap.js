// One grid with its words: queries are rows, from the top; keys are columns, their words along the top edge.

import { NUMBERED, OPEN } from "../base/grid.js";
import { inCell } from "../base/numbers.js";
import { paint } from "../base/paint.js";
import { label, measure } from "../base/pen.js";
import { legend } from "./legend.js";

const SIZE = 12;
const GAP = 14;
const LEGEND = 58;
const EDGE = 3;
export const ROOMY = 44; // pixels of a cell with its number

export class Heatmap {
  painted = null;
  grid = null;
  window = null;

  // axes: names of rows and columns; legend: whether the colour scale stands beside it; numbers: whether cells that have
  // room show theirs
  constructor(theme, { axes = ["query", "key"], legend = true, tallest = 660, largest = 34, numbers = false } = {}) {
    this.theme = theme;
    this.axes = axes;
    this.legend = legend;
    this.tallest = tallest;
    this.largest = largest;
    this.numbers = numbers;
  }

  // The place of everything, in pixels, for a width; and its height.
  place(grid, width) {
    const [n, m] = [grid.rows.length, grid.cols.length];
    if (grid !== this.grid) {
      this.labels = [grid.rows, grid.cols].map((words) => words.map((word) => label(word)));
      this.painted = null;
    }
    this.upright = longest(this.labels[1]) > 16;
    const left = Math.min(0.4 * width, Math.max(measure(`${this.axes[0]} ↓`) + 12, longest(this.labels[0]) + 10));
    const top = this.upright ? Math.max(42, longest(this.labels[1]) + 22) : 34;
    const few = this.numbers && n * m <= NUMBERED;
    const largest = few ? ROOMY : this.largest;
    let wide = Math.min(largest, (width - left - (this.legend ? LEGEND : EDGE)) / m);
    let tall = Math.min(largest, this.tallest / n);
    if (n === m) wide = tall = Math.min(wide, tall);
    else [wide, tall] = [Math.min(wide, 4 * tall), Math.min(tall, 4 * wide)];
    if (!this.window || grid.rows.length !== this.grid?.rows.length || grid.cols.length !== this.grid?.cols.length)
      this.fit(grid);
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

  fit(grid = this.grid) {
    this.window = { x: 0, y: 0, wide: grid.cols.length, tall: grid.rows.length };
  }

  get zoomed() {
    return this.window.wide < this.grid.cols.length || this.window.tall < this.grid.rows.length;
  }

  // Closer by a factor, about a point between 0 and 1 of the part that is shown.
  zoom(factor, across = 0.5, down = 0.5) {
    const { x, y, wide, tall } = this.window;
    const [n, m] = [this.grid.rows.length, this.grid.cols.length];
    const scale = Math.max(1 / factor, Math.min(1, 4 / Math.max(wide, tall)));
    const [w, t] = [Math.min(m, wide * scale), Math.min(n, tall * scale)];
    this.window = { x: x + (wide - w) * across, y: y + (tall - t) * down, wide: w, tall: t };
    this.pan(0, 0);
  }

  // By a number of cells, as far as there are cells.
  pan(cols, rows) {
    const { x, y, wide, tall } = this.window;
    const limit = (v, most) => Math.min(Math.max(v, 0), most);
    this.window = {
      x: limit(x + cols, this.grid.cols.length - wide),
      y: limit(y + rows, this.grid.rows.length - tall),
      wide,
      tall,
    };
  }

  reveal([row, col]) {
    const { x, y, wide, tall } = this.window;
    const beyond = (at, from, size) => (at < from ? at - from : at + 1 > from + size ? at + 1 - from - size : 0);
    this.pan(beyond(col, x, wide), beyond(row, y, tall));
  }

  // The cell under a point: [row, col], null for a coordinate that lies on the other axis's words.
  cell(x, y) {
    const col = this.window.x + ((x - this.left) / this.wide) * this.window.wide;
    const row = this.window.y + ((y - this.top) / this.tall) * this.window.tall;
    const inside = (at, from, size, most) =>
      at >= from && at < from + size ? Math.min(Math.floor(at), most - 1) : null;
    return [
      inside(row, this.window.y, this.window.tall, this.grid.rows.length),
      inside(col, this.window.x, this.window.wide, this.grid.cols.length),
    ];
  }

  // Upper left corner and size of a cell.
  box(row, col) {
    const [w, t] = [this.wide / this.window.wide, this.tall / this.window.tall];
    return [this.left + (col - this.window.x) * w, this.top + (row - this.window.y) * t, w, t];
  }

  // cursor: [row, col]; rows, cols: what is locked; outlined: cells to mark, as pairs; borders: ["rows" or "cols", index]
  // of lines before a row or column.
  draw(pen, { cursor = null, rows = [], cols = [], outlined = [], borders = [], title = "" } = {}) {
    const { theme, left, top, wide, tall } = this;
    const key = JSON.stringify([this.window, wide, tall, theme.key, pen.ratio, this.grid.version]);
    if (!this.painted || this.painted.key !== key) {
      const size = [wide, tall].map((length) => Math.max(1, Math.round(length * pen.ratio)));
      const [grid, window] = this.grid.part?.(this.window) ?? [this.grid, this.window];
      this.painted = { key, image: paint(grid, window, ...size, theme, pen.ratio) };
    }
    pen.image(this.painted.image, left, top);
    if (this.numbered) this.number(pen);
    this.fade(pen, rows, cols);
    pen.rect(left, top, wide, tall, { stroke: theme.line, thick: 1 });
    for (const [row, col] of outlined) this.outline(pen, row, col, theme.mark, 1.5);
    for (const [axis, index] of borders) this.border(pen, axis, index);
    if (cursor && this.visible(...cursor)) this.outline(pen, ...cursor, theme.ink, 1.5);
    this.words(pen, 0, new Set(rows), cursor?.[0]);
    this.words(pen, 1, new Set(cols), cursor?.[1]);
    pen.text(left - 8, 9, this.axes[0] && `${this.axes[0]} ↓`, { fill: theme.soft, align: "right" });
    pen.text(left, 9, title || (this.axes[1] && `${this.axes[1]} →`), {
      fill: title ? theme.ink : theme.soft,
      bold: Boolean(title),
    });
    if (this.legend && !this.numbered) legend(pen, theme, this.grid, left + wide + 14, top, Math.min(tall, 180));
  }

  number(pen) {
    const { grid, theme } = this;
    const [, , wide] = this.box(0, 0);
    const lut = theme.lut(grid);
    for (let row = 0; row < grid.rows.length; row++)
      for (let col = 0; col < grid.cols.length; col++) {
        if (!grid.is(row, col, OPEN) || !this.visible(row + 0.5, col + 0.5, 0)) continue;
        const [x, y] = this.box(row + 0.5, col + 0.5);
        const text = inCell(grid.at(row, col), grid.limit);
        const fill = theme.inkOn(lut[grid.codes[row * grid.cols.length + col]]);
        pen.text(x, y, text, { fill, size: measure(text, 12) > wide - 4 ? 10 : 12, align: "center" });
      }
  }

  visible(row, col, size = 1) {
    const { x, y, wide, tall } = this.window;
    return row + size > y && row < y + tall && col + size > x && col < x + wide;
  }

  outline(pen, row, col, stroke, thick) {
    const [x, y, w, t] = this.box(row, col);
    const [x1, y1] = [Math.max(x, this.left), Math.max(y, this.top)];
    const [x2, y2] = [
      Math.min(Math.max(x + w, x + 3), this.left + this.wide),
      Math.min(Math.max(y + t, y + 3), this.top + this.tall),
    ];
    if (x2 > x1 && y2 > y1) pen.rect(x1, y1, x2 - x1, y2 - y1, { stroke, thick });
  }

  border(pen, axis, index) {
    const [x, y] = this.box(index, index);
    const down = axis === "rows";
    const at = down ? y : x;
    const from = down ? this.top : this.left;
    if (at <= from || at >= from + (down ? this.tall : this.wide)) return;
    if (down) pen.line(this.left, at, this.left + this.wide, at, { stroke: this.theme.mark, thick: 1.5 });
    else pen.line(at, this.top, at, this.top + this.tall, { stroke: this.theme.mark, thick: 1.5 });
  }

  // What is not locked steps back.
  fade(pen, rows, cols) {
    const veil = (kept, from, size, draw) => {
      if (!kept.length) return;
      const last = Math.ceil(from + size);
      let start = Math.floor(from);
      for (const stop of [...kept].sort((a, b) => a - b).concat(last)) {
        if (stop > start) draw(start, Math.min(stop, last) - start);
        start = Math.max(start, stop + 1);
      }
    };
    const clipped = (x, y, w, t) => {
      const [x1, y1] = [Math.max(x, this.left), Math.max(y, this.top)];
      const [x2, y2] = [Math.min(x + w, this.left + this.wide), Math.min(y + t, this.top + this.tall)];
      if (x2 > x1 && y2 > y1) pen.rect(x1, y1, x2 - x1, y2 - y1, { fill: this.theme.page, alpha: 0.72 });
    };
    const [, , w, t] = this.box(0, 0);
    veil(rows, this.window.y, this.window.tall, (row, count) =>
      clipped(this.left, this.box(row, 0)[1], this.wide, count * t),
    );
    veil(cols, this.window.x, this.window.wide, (col, count) =>
      clipped(this.box(0, col)[0], this.top, count * w, this.tall),
    );
  }

  // The words of an axis, as many as have room; those locked or under the cursor always.
  words(pen, axis, locked, pointed) {
    const { theme } = this;
    const words = this.labels[axis];
    const [, , w, t] = this.box(0, 0);
    const cell = axis ? w : t;
    const room = axis && !this.upright ? longest(words) + 3 : GAP;
    const step = Math.max(1, Math.ceil(room / cell));
    const [from, size] = axis ? [this.window.x, this.window.wide] : [this.window.y, this.window.tall];
    const near = [...locked, pointed].filter((i) => i !== undefined && i !== null);
    const put = (i, strong) => {
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
      if (!near.some((other) => Math.abs(other - i) * cell < room)) put(i, false);
    }
    near.forEach((i) => put(i, true));
  }
}

const widths = new WeakMap();
function longest(labels) {
  if (!widths.has(labels))
    widths.set(
      labels,
      labels.reduce(
        (most, text) => (text.length > 2 || most < 16 ? Math.max(most, measure(text, SIZE, true)) : most),
        0,
      ) + (labels.some((text) => [...text].length > 1) ? 10 : 0),
    );
  return widths.get(labels);
}

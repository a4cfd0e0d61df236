// Panels that draw results in rows and columns: heatmaps, bars, and a single number.

import { clamp } from "../base/clamp.js";
import { NUMBERED } from "../base/grid.js";
import { formatted } from "../base/numbers.js";
import { textWidth } from "../base/pen.js";
import { excerpt, label, quoted } from "../base/visible-text.js";
import { Heatmap, ROOMY } from "../stages/heatmap.js";
import { Panel, fromTo } from "./panel.js";
import { gridOf, wordsFor } from "./scales.js";

/** @import { Box, Pen, Point, Tensor } from "../types.d.ts" */
/** @import { AnyGrid } from "../types.d.ts" */

const WORDS_ABOVE = 20; // pixels of a heatmap's upper words, where they lie

/** A heatmap without a title, whose column labels are vertical only if they do not fit side by side. */
class NumberHeatmap extends Heatmap {
  /** @param {AnyGrid} grid @param {number} width */
  place(grid, width) {
    super.place(grid, width);
    const wide = Math.max(...this.labels[1].map((word) => textWidth(word, 12, true)));
    const upright = this.upright && wide + 14 > this.wide / grid.cols.length;
    const top = upright ? this.top - 16 : WORDS_ABOVE;
    Object.assign(this, { upright, top, height: this.height - this.top + top });
    return this.height;
  }
}

/** A panel that draws a matrix as a heatmap, with numbers in the cells if there are few. */
export class GridPanel extends Panel {
  few = false;
  map = new NumberHeatmap(this.theme, { axes: ["", ""], numbers: true });

  /** @param {number} width */
  place(width) {
    const [n, m] = this.tensor.shape;
    this.size = [n, m];
    this.few = n * m <= NUMBERED;
    Object.assign(this.map, {
      legend: !this.few,
      maxCell: 26 * this.enlarged,
      roomy: (ROOMY + 20) * this.enlarged,
      maxHeight: (this.few ? 400 : 520) * this.enlarged,
    });
    this.grid = gridOf(wordsFor(this.rows, n), wordsFor(this.cols, m), this.tensor.data, this);
    if (n && m) this.map.place(this.grid, width);
    this.height = n && m ? this.map.height : 24;
    this.width = n && m ? Math.min(width, this.map.left + this.map.wide + (this.few ? 8 : 58)) : 120;
  }

  /** @param {Pen} pen */
  paint(pen) {
    if (this.size[0] && this.size[1]) this.map.draw(pen);
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    if (!this.size[0] || !this.size[1]) return null;
    const [row, col] = this.map.cell(x, y);
    return row === null || col === null ? null : [row, col];
  }

  /** @param {Point} cell @returns {Box} */
  box([row, col]) {
    return this.map.box(row, col);
  }

  /** @param {Point} cell */
  cellName([row, col]) {
    return fromTo(this.grid.rows[row], this.grid.cols[col]);
  }
}

const ROW = { least: 3, usual: 28, few: 40 }; // pixels of a bar's row
const FEW = 6; // bars that are drawn larger
const WRITTEN = 13; // pixels of a row that has room for its word and number
const BARS = 560; // pixels of all bars, where they are many
const AXIS = 22; // pixels below them, for the ends of the scale

/** A panel that draws a vector as bars. */
export class BarPanel extends Panel {
  /** @type {number[]} the values that have a bar, from the top */
  order = [];
  /** @type {string[]} */
  words = [];
  /** @type {number[]} */
  values = [];
  /** @type {string[]} */
  labels = [];
  signed = false;
  /** The pixels of a bar and of its row, and where bars begin. */
  tall = 0;
  long = 0;
  left = 0;
  zero = 0;
  /** @type {string[]} */
  numbers = [];

  /** @param {number} width */
  place(width) {
    this.order = ordered(this.tensor.data, this.top);
    const count = this.order.length;
    this.size = [count, 1];
    const words = wordsFor(this.rows, this.tensor.data.length);
    this.words = this.order.map((at) => words[at]);
    this.values = this.order.map((at) => this.tensor.data[at]);
    this.grid = gridOf(this.words, [this.title || "value"], this.values, this);
    const most = count <= FEW ? ROW.few : ROW.usual;
    this.tall = clamp((this.enlarged * BARS) / Math.max(1, count), ROW.least, this.enlarged * most);
    this.labels = this.words.map((word) => label(word));
    this.numbers = this.values.map((value) => formatted(value));
    const written = this.tall >= WRITTEN;
    const widest = (/** @type {string[]} */ texts) => Math.max(0, ...texts.map((one) => textWidth(one, this.letters)));
    this.left = written ? Math.min(widest(this.labels), 0.4 * width) + 10 : 2;
    this.long = Math.max(40, width - this.left - (written ? Math.max(48, widest(this.numbers) + 12) : 2));
    this.signed = this.values.some((value) => value < 0);
    this.zero = this.left + (this.signed ? this.long / 2 : 0);
    this.width = width;
    this.height = this.tall * count + AXIS;
  }

  /** @param {Pen} pen */
  paint(pen) {
    const { theme, letters, left, long, zero, tall } = this;
    const scale = (this.signed ? long / 2 : long) / this.limit;
    const thick = Math.max(2, Math.min(0.6 * tall, 22));
    this.values.forEach((value, i) => {
      const middle = (i + 0.5) * tall;
      const length = Math.min(this.signed ? long / 2 : long, Math.abs(Number.isFinite(value) ? value : 0) * scale);
      pen.rect(left, middle - thick / 2, long, thick, { fill: theme.line, alpha: 0.4, radius: 3 });
      const fill = value < 0 ? theme.low : theme.voice;
      pen.rect(value < 0 ? zero - length : zero, middle - thick / 2, length, thick, { fill, radius: 3 });
      if (tall < WRITTEN) return;
      pen.text(left - 10, middle, this.labels[i], { fill: theme.ink, size: letters, align: "right" });
      pen.text(this.width, middle, this.numbers[i], { fill: theme.ink, size: letters, align: "right" });
    });
    const below = tall * this.values.length;
    pen.line(zero, 0, zero, below, { stroke: theme.soft });
    const end = { fill: theme.soft, size: 12 };
    pen.text(left, below + 10, formatted(this.signed ? -this.limit : 0), end);
    if (this.signed) pen.text(zero, below + 10, "0", { ...end, align: "center" });
    pen.text(left + long, below + 10, formatted(this.limit), { ...end, align: "right" });
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    const row = Math.floor(y / this.tall);
    return row >= 0 && row < this.size[0] ? [row, 0] : null;
  }

  /** @param {Point} cell @returns {Box} */
  box([row]) {
    return [1, row * this.tall, this.width - 2, this.tall];
  }

  /** @param {Point} cell */
  cellName([row]) {
    return quoted(this.words[row]);
  }

  /** @param {Point} cell */
  value([row]) {
    return this.values[row];
  }

  /** Describe a change of the first of the sorted bars. @param {Tensor} [before] */
  describeChange(before) {
    if (!this.top || !before || before.data.length !== this.tensor.data.length) return super.describeChange(before);
    const previous = ordered(before.data, 1)[0];
    if (previous === this.order[0]) return "";
    const words = wordsFor(this.rows, this.tensor.data.length);
    return `${this.title ? `${excerpt(this.title)}: ` : ""}${quoted(words[this.order[0]])} is first (was ${quoted(words[previous])})`;
  }
}

/**
 * Return the places of all values in order; or of the `top` largest, largest first, with NaN last.
 * @param {ArrayLike<number>} values
 * @param {number} [top]
 */
function ordered(values, top) {
  const all = Array.from(values, (_, i) => i);
  /** @param {number} i */
  const size = (i) => (Number.isNaN(values[i]) ? -Infinity : values[i]);
  return top ? all.sort((a, b) => (size(a) === size(b) ? a - b : size(b) - size(a))).slice(0, top) : all;
}

const FIGURE = 30; // pixels of a number by itself

/** A panel that writes a single number. */
export class NumberPanel extends Panel {
  text = "";

  /** @param {number} width */
  place(width) {
    this.size = [1, 1];
    this.grid = gridOf([this.title || "value"], ["value"], this.tensor.data, this);
    this.text = formatted(this.tensor.data[0]);
    this.width = Math.min(width, Math.max(60, textWidth(this.text, FIGURE) + 8));
    this.height = FIGURE + 8;
  }

  /** @param {Pen} pen */
  paint(pen) {
    pen.text(2, this.height / 2, this.text, { fill: this.theme.ink, size: FIGURE });
  }

  /** @returns {Point} */
  cellAt() {
    return [0, 0];
  }

  /** @returns {Box} */
  box() {
    return [1, 1, this.width - 2, this.height - 2];
  }

  cellName() {
    return "";
  }
}

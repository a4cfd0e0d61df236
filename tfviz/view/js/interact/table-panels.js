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

const TITLE = 20; // pixels of a title above

/** A heatmap whose column labels are vertical only if they do not fit side by side. */
class NumberHeatmap extends Heatmap {
  /** @param {AnyGrid} grid @param {number} width */
  place(grid, width) {
    const height = super.place(grid, width);
    const wide = Math.max(...this.labels[1].map((word) => textWidth(word, 12, true)));
    if (!this.upright || wide + 14 > this.wide / grid.cols.length) return height;
    Object.assign(this, { upright: false, top: 34, height: height - this.top + 34 });
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
    Object.assign(this.map, { legend: !this.few, maxCell: 22, maxHeight: this.few ? ROOMY * n : 420 });
    this.grid = gridOf(wordsFor(this.rows, n), wordsFor(this.cols, m), this.tensor.data, this);
    if (n && m) this.map.place(this.grid, Math.min(width, 640));
    this.height = n && m ? this.map.height : 40;
    const wide = n && m ? this.map.left + this.map.wide + (this.few ? 8 : 58) : 120;
    this.width = Math.min(width, Math.max(wide, this.map.left + textWidth(excerpt(this.title), 11, true) + 8));
  }

  /** @param {Pen} pen */
  paint(pen) {
    if (this.size[0] && this.size[1]) this.map.draw(pen, { title: excerpt(this.title) || " " });
    else this.drawTitle(pen);
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

const MAX_BAR = 150;

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

  /** @param {number} width */
  place(width) {
    this.order = ordered(this.tensor.data, this.top);
    const count = this.order.length;
    this.size = [count, 1];
    const words = wordsFor(this.rows, this.tensor.data.length);
    this.words = this.order.map((at) => words[at]);
    this.values = this.order.map((at) => this.tensor.data[at]);
    this.grid = gridOf(this.words, [this.title || "value"], this.values, this);
    this.tall = clamp(560 / Math.max(1, count), 3, 20);
    this.labels = this.words.map((word) => label(word));
    const wide = this.tall < 11 ? 0 : Math.max(0, ...this.labels.map((word) => textWidth(word, 12)));
    this.signed = this.values.some((value) => value < 0);
    this.long = clamp(width - wide - 70, 60, MAX_BAR);
    this.left = Math.min(wide, width / 2) + 10;
    this.zero = this.left + (this.signed ? this.long / 2 + 30 : 0);
    this.width = Math.min(
      width,
      Math.max(this.left + this.long + (this.signed ? 90 : 52), textWidth(excerpt(this.title), 11, true) + 12),
    );
    this.height = TITLE + this.tall * count + 6;
  }

  /** @param {Pen} pen */
  paint(pen) {
    const { theme } = this;
    this.drawTitle(pen);
    const scale = (this.signed ? this.long / 2 : this.long) / this.limit;
    this.values.forEach((value, i) => {
      const y = TITLE + i * this.tall;
      const length = Math.min(this.long, Math.abs(Number.isFinite(value) ? value : 0) * scale);
      const fill = theme.headColour(value < 0 ? 6 : 5);
      pen.rect(value < 0 ? this.zero - length : this.zero, y + 0.14 * this.tall, length, 0.72 * this.tall, { fill });
      if (this.tall < 11) return;
      pen.text(this.left - 6, y + this.tall / 2, this.labels[i], { fill: theme.soft, size: 12, align: "right" });
      const at = value < 0 ? this.zero - length - 4 : this.zero + length + 4;
      pen.text(at, y + this.tall / 2, formatted(value), {
        fill: theme.ink,
        size: 11,
        align: value < 0 ? "right" : "left",
      });
    });
    pen.line(this.zero, TITLE, this.zero, this.height - 6, { stroke: theme.line });
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    const row = Math.floor((y - TITLE) / this.tall);
    return row >= 0 && row < this.size[0] ? [row, 0] : null;
  }

  /** @param {Point} cell @returns {Box} */
  box([row]) {
    return [1, TITLE + row * this.tall, this.width - 2, this.tall];
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

/** A panel that writes a single number. */
export class NumberPanel extends Panel {
  text = "";

  /** @param {number} width */
  place(width) {
    this.size = [1, 1];
    this.grid = gridOf([this.title || "value"], ["value"], this.tensor.data, this);
    this.text = formatted(this.tensor.data[0]);
    this.width = Math.min(
      width,
      Math.max(100, textWidth(this.text, 30) + 16, textWidth(excerpt(this.title), 11, true) + 12),
    );
    this.height = TITLE + 44;
  }

  /** @param {Pen} pen */
  paint(pen) {
    this.drawTitle(pen);
    pen.text(0, TITLE + 22, this.text, { fill: this.theme.ink, size: 30 });
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

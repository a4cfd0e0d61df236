// A panel that draws one bar made of parts: above it their sum, and whether it fits a budget; below it the parts by name.

import { roundUp } from "../base/axis-ticks.js";
import { percent } from "../base/numbers.js";
import { textWidth } from "../base/pen.js";
import spec from "../base/spec.json" with { type: "json" };
import { excerpt, quotedExcerpt } from "../base/visible-text.js";
import { FONT_SIZE, Panel } from "./panel.js";
import { gridOf, wordsFor } from "./scales.js";
import { stackAnswer } from "./sentences.js";

/** @import { Box, Pen, Point } from "../types.js" */

const ANSWER_SIZE = 32; // pixels of its letters
const LAYOUT = { answer: 46, budget: 22, bar: 56, axis: 24, row: 28, column: 260 }; // heights, and the least width of a name with its number
const NAME = { swatch: 22, gap: 16, apart: 32, size: 14 }; // pixels: before a name, before its number, after it; of letters

/** A panel that draws parts of a sum. */
export class StackPanel extends Panel {
  /** @type {string[]} */
  words = [];
  end = 1;
  /** Where the bar begins, and how many names stand beside each other. */
  barTop = 0;
  columnCount = 1;
  columnWidth = LAYOUT.column;

  /** @param {number} width */
  layout(width) {
    const count = this.tensor.data.length;
    this.size = [count, 1];
    this.words = wordsFor(this.rows, count);
    this.grid = gridOf(this.words, [this.title || "value"], this.tensor.data, this);
    this.end = roundUp(Math.max(this.sum, 1.25 * (this.budget ?? 0)));
    const widths = this.words.map((word, i) => {
      const value = textWidth(this.number(i), NAME.size, true);
      return NAME.swatch + textWidth(excerpt(word, 24), NAME.size) + NAME.gap + value + NAME.apart;
    });
    this.columnWidth = Math.min(width + NAME.apart, Math.max(LAYOUT.column, ...widths));
    this.columnCount = Math.max(1, Math.min(2, Math.floor((width + NAME.apart) / this.columnWidth)));
    this.barTop = LAYOUT.answer + (this.budget === undefined ? 6 : LAYOUT.budget);
    this.width = width;
    this.height = this.namesTop + LAYOUT.row * Math.ceil(count / this.columnCount);
  }

  get namesTop() {
    return this.barTop + LAYOUT.bar + LAYOUT.axis + 8;
  }

  get sum() {
    return this.sumBefore(this.words.length);
  }

  /** The sum of the parts before one. @param {number} row */
  sumBefore(row) {
    return Array.from(this.tensor.data.slice(0, row)).reduce((total, value) => total + this.part(value), 0);
  }

  /** @param {number} value */
  part(value) {
    return Number.isFinite(value) ? Math.max(0, value) : 0;
  }

  get answer() {
    return stackAnswer(this.sum, this.budget, this.unit);
  }

  /** Return the number of a part, and its share of the sum. @param {number} i */
  number(i) {
    const value = this.tensor.data[i];
    return this.measured(value) + (this.sum > 0 ? ` (${percent(this.part(value) / this.sum)})` : "");
  }

  /** @param {number} i */
  colour(i) {
    return this.theme.headColour(spec.stack_colours[i % spec.stack_colours.length]);
  }

  /** @param {Pen} pen */
  paint(pen) {
    const { theme, barTop, width } = this;
    pen.text(0, 22, this.answer, { fill: theme.ink, size: ANSWER_SIZE, bold: true });
    pen.rect(0, barTop, width, LAYOUT.bar, { fill: theme.line, alpha: 0.35, radius: 4 });
    this.words.forEach((_, i) => {
      const [x, y, long, high] = this.box([i, 0]);
      if (long > 0) pen.rect(x, y, Math.max(0.5, long - 1), high, { fill: this.colour(i) });
    });
    const below = barTop + LAYOUT.bar + 12;
    const soft = { fill: theme.soft, size: 12 };
    pen.text(0, below, "0", soft);
    pen.text(width, below, this.measured(this.end), { ...soft, align: "right" });
    if (this.budget !== undefined) this.line(pen, this.budget);
    this.words.forEach((word, i) => this.name(pen, word, i));
  }

  /** Draw the line of the budget, and its number above it. @param {Pen} pen @param {number} budget */
  line(pen, budget) {
    const { theme, barTop } = this;
    const x = (budget / this.end) * this.width;
    pen.line(x, barTop - 8, x, barTop + LAYOUT.bar + 4, { stroke: theme.page, lineWidth: 5 });
    pen.line(x, barTop - 8, x, barTop + LAYOUT.bar + 4, { stroke: theme.ink, lineWidth: 2 });
    pen.text(x, barTop - 16, this.measured(budget), { fill: theme.ink, size: FONT_SIZE, bold: true, align: "center" });
  }

  /** @param {Pen} pen @param {string} word @param {number} i */
  name(pen, word, i) {
    const rows = Math.ceil(this.words.length / this.columnCount);
    const [x, y] = [Math.floor(i / rows) * this.columnWidth, this.namesTop + ((i % rows) + 0.5) * LAYOUT.row];
    pen.rect(x, y - 7, 14, 14, { fill: this.colour(i), radius: 2 });
    const style = { fill: this.theme.ink, size: NAME.size };
    pen.text(x + NAME.swatch, y, excerpt(word, 24), style);
    const right = x + this.columnWidth - NAME.apart;
    pen.text(right, y, this.number(i), { ...style, bold: true, align: "right" });
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    if (y >= this.barTop && y < this.barTop + LAYOUT.bar) {
      const at = this.words.findIndex((_, i) => {
        const [left, , long] = this.box([i, 0]);
        return x >= left && x < left + long;
      });
      return at < 0 ? null : [at, 0];
    }
    const rows = Math.ceil(this.words.length / this.columnCount);
    const at = Math.floor((y - this.namesTop) / LAYOUT.row) + rows * Math.floor(x / this.columnWidth);
    return y >= this.namesTop && at < this.words.length ? [at, 0] : null;
  }

  /** @param {Point} cell @returns {Box} */
  box([row]) {
    const scale = this.width / this.end;
    return [this.sumBefore(row) * scale, this.barTop, this.part(this.tensor.data[row]) * scale, LAYOUT.bar];
  }

  /** @param {Point} cell */
  cellName([row]) {
    return quotedExcerpt(this.words[row]);
  }
}

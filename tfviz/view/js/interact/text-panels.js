// Panels that draw results along a sequence of words: line charts, and the words themselves, shaded.

import { roundUp } from "../base/axis-ticks.js";
import { ALLOWED } from "../base/grid.js";
import { clamp, formatAligned } from "../base/numbers.js";
import { textWidth, spreadApart } from "../base/pen.js";
import { FONT_SIZE, Panel, fromTo } from "./panel.js";
import { cssColour, inkOf } from "../base/theme.js";
import { excerpt, label, quoted } from "../base/visible-text.js";
import { gridOf, wordsFor } from "./scales.js";
import { levels, ticks } from "./ticks.js";

/** @import { Box, Pen, Point } from "../types.js" */

const NAME_HEIGHT = 16; // of a line's name
const PLOT_LAYOUT = { share: 0.5, minHeight: 180, maxHeight: 380, minLeft: 44, top: 10, bottom: 26, name: 18 }; // `share`: height as a share of the width; the others are pixels, `name` those of an axis's name

/** A panel that draws the rows of a matrix as lines. */
export class LinePanel extends Panel {
  /** Whether there is one line, without a name. */
  isSingle = false;
  /** @type {string[]} of the lines */
  names = [];
  /** @type {string[]} of the points */
  steps = [];
  min = 0;
  max = 1;
  /** @type {number[]} the numbers of the vertical axis */
  heights = [];
  /** Where the plot begins, and the widths of the names beside it and of the plot, in pixels. */
  left = 0;
  namesWidth = 0;
  plotWidth = 0;
  plotHeight = 0;
  plotTop = 0;

  /** @param {number} width */
  layout(width) {
    const [n, m] = this.tensor.shape.length === 1 ? [1, this.tensor.shape[0]] : this.tensor.shape;
    this.size = [n, m];
    this.isSingle = n === 1 && !this.rows.length;
    this.names = wordsFor(this.rows, n);
    this.steps = wordsFor(this.columns, m);
    this.grid = gridOf(this.names, this.steps, this.tensor.data, this);
    const finite = Array.from(this.tensor.data).filter(Number.isFinite);
    const [low, high] = [Math.min(0, ...finite), Math.max(0, ...finite)];
    this.min = low < 0 ? -roundUp(-low) : 0;
    this.max = high > 0 || low === 0 ? roundUp(high) : 0;
    this.namesWidth = this.isSingle
      ? 8
      : Math.max(...this.names.map((name) => textWidth(excerpt(name, 18), FONT_SIZE))) + 22;
    this.heights = levels(this.min, this.max);
    const widest = Math.max(...formatAligned(this.heights).map((text) => textWidth(text, FONT_SIZE)));
    this.left = Math.max(PLOT_LAYOUT.minLeft, widest + 10);
    this.width = width;
    this.plotHeight = clamp(PLOT_LAYOUT.share * width, PLOT_LAYOUT.minHeight, PLOT_LAYOUT.maxHeight);
    this.plotWidth = this.width - this.left - this.namesWidth;
    const [vertical, across] = this.axes ?? ["", ""];
    this.plotTop = PLOT_LAYOUT.top + (vertical || this.unit ? PLOT_LAYOUT.name : 0);
    this.height = this.plotTop + this.plotHeight + PLOT_LAYOUT.bottom + (across ? PLOT_LAYOUT.name : 0);
  }

  /** @param {number} row @param {number} col @returns {[number, number]} */
  at(row, col) {
    const x = this.left + (this.size[1] > 1 ? (col / (this.size[1] - 1)) * this.plotWidth : this.plotWidth / 2);
    return [x, this.plotTop + ((this.max - this.value([row, col])) / (this.max - this.min)) * this.plotHeight];
  }

  /** @param {Pen} pen */
  paint(pen) {
    const { theme } = this;
    const { heights } = this;
    formatAligned(heights).forEach((text, i) => {
      const y = this.plotTop + ((this.max - heights[i]) / (this.max - this.min)) * this.plotHeight;
      pen.line(this.left, y, this.left + this.plotWidth, y, { stroke: theme.line });
      pen.text(this.left - 6, y, text, { fill: theme.soft, size: FONT_SIZE, align: "right" });
    });
    const below = { fill: theme.soft, size: FONT_SIZE, align: /** @type {const} */ ("center") };
    const labelWidth = Math.max(...this.steps.map((step) => textWidth(label(step), FONT_SIZE))) + 12;
    for (const [col, text] of ticks(
      this.steps.map((step) => label(step)),
      this.plotWidth / labelWidth,
    ))
      pen.text(this.at(0, col)[0], this.plotTop + this.plotHeight + 18, text, below);
    this.axisNames(pen);
    this.names.forEach((_, row) => this.curve(pen, row));
    if (this.stated) {
      const [x, y] = this.at(this.stated[0], this.stated[1]);
      pen.dot(x, y, 5, { fill: inkOf(theme, this.stated[0]) });
    }
    if (!this.isSingle) this.lineNames(pen);
  }

  /** @param {Pen} pen */
  axisNames(pen) {
    const [vertical, across] = this.axes ?? ["", ""];
    const style = { fill: this.theme.soft, size: FONT_SIZE };
    const above = [vertical, this.unit].filter(Boolean).join(", in ");
    if (above) pen.text(this.left - 6, 8, above, style);
    const right = this.left + this.plotWidth;
    if (across) pen.text(right, this.height - 8, `${across} →`, { ...style, align: "right" });
  }

  /** @param {Pen} pen @param {number} row */
  curve(pen, row) {
    const stroke = inkOf(this.theme, row);
    for (let col = 1; col < this.size[1]; col++) {
      const [[x1, y1], [x2, y2]] = [this.at(row, col - 1), this.at(row, col)];
      if (Number.isFinite(y1) && Number.isFinite(y2)) pen.line(x1, y1, x2, y2, { stroke, lineWidth: 2 });
    }
    const [x, y] = this.at(row, this.size[1] - 1);
    if (this.size[1] === 1 && Number.isFinite(y)) pen.dot(x, y, 3, { fill: stroke });
  }

  /** Draw the names of the lines where they end, one above another. @param {Pen} pen */
  lineNames(pen) {
    const rows = [...this.names.keys()].filter((row) => Number.isFinite(this.value([row, this.size[1] - 1])));
    const last = rows.map((row) => this.at(row, this.size[1] - 1));
    const down = spreadApart(
      last.map(([, y]) => y),
      NAME_HEIGHT,
      this.plotTop,
      this.plotTop + this.plotHeight,
    );
    rows.forEach((row, i) => {
      const [x] = last[i];
      pen.dot(x + 9, down[i], 4, { fill: inkOf(this.theme, row) });
      pen.text(x + 18, down[i], excerpt(this.names[row], 18), { fill: this.theme.ink, size: FONT_SIZE });
    });
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    if (
      x < this.left - 8 ||
      y < this.plotTop - 8 ||
      y > this.plotTop + this.plotHeight + 8 ||
      x > this.left + this.plotWidth + 8
    )
      return null;
    const last = this.size[1] - 1;
    const col = clamp(Math.round(((x - this.left) / this.plotWidth) * last), 0, last);
    const distances = this.names.map((_, row) => Math.abs(this.at(row, col)[1] - y));
    return [distances.indexOf(Math.min(...distances)), col];
  }

  /** @param {Point} cell @returns {Box} */
  box([row, col]) {
    const [x, y] = this.at(row, col);
    return [x - 5, (Number.isFinite(y) ? y : this.plotTop) - 5, 10, 10];
  }

  /** @param {Point} cell */
  cellName([row, col]) {
    return this.isSingle ? quoted(this.steps[col], 30) : fromTo(this.names[row], this.steps[col]);
  }
}

const WORD_LINE_HEIGHT = 36;
const WORD_FONT_SIZE = 17;

/** A panel that writes words, shaded by their values. */
export class WordPanel extends Panel {
  /** @type {string[]} */
  words = [];
  /** @type {Box[]} */
  boxes = [];

  /** @param {number} width */
  layout(width) {
    const count = this.tensor.data.length;
    this.size = [1, count];
    this.words = wordsFor(this.rows, count);
    this.grid = gridOf(this.words, [this.title || "value"], this.tensor.data, this);
    let [x, y, right] = [0, 2, 60];
    this.boxes = this.words.map((word) => {
      const wordWidth = Math.min(width, textWidth(label(word), WORD_FONT_SIZE) + 14);
      if (x && x + wordWidth > width) [x, y] = [0, y + WORD_LINE_HEIGHT];
      const box = [x, y, wordWidth, WORD_LINE_HEIGHT - 6];
      x += wordWidth + 2;
      right = Math.max(right, x);
      return box;
    });
    this.width = Math.min(width, right);
    this.height = y + WORD_LINE_HEIGHT;
  }

  /** @param {Pen} pen */
  paint(pen) {
    const { codes, state } = this.grid;
    const lut = this.theme.lut(this.grid);
    this.words.forEach((word, i) => {
      const [x, y, width, height] = this.boxes[i];
      const colour = state[i] === ALLOWED ? lut[codes[i]] : this.theme.blank;
      pen.rect(x, y, width, height, { fill: cssColour(colour) });
      pen.text(x + 7, y + height / 2, label(word), { fill: this.theme.inkOn(colour), size: WORD_FONT_SIZE });
    });
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    const at = this.boxes.findIndex(
      ([left, top, width, height]) => x >= left && x < left + width && y >= top && y < top + height,
    );
    return at < 0 ? null : [0, at];
  }

  /** @param {Point} cell @returns {Box} */
  box([, at]) {
    return this.boxes[at];
  }

  /** @param {Point} cell */
  cellName([, at]) {
    return quoted(this.words[at], 30);
  }
}

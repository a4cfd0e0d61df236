// Panels that draw results in rows and columns: heatmaps, bars, and a single number.

import { MAX_NUMBERED_CELLS } from "../base/grid.js";
import { clamp, formatAligned, formatNumber } from "../base/numbers.js";
import { textWidth } from "../base/pen.js";
import { label, quoted } from "../base/visible-text.js";
import { fitted, Heatmap, MIN_NUMBERED_CELL_SIZE } from "../views/heatmap.js";
import { FONT_SIZE, Panel, fromTo } from "./panel.js";
import { gridOf, isBinary, wordsFor } from "./scales.js";

/** @import { Box, Pen, Point, Tensor } from "../types.js" */
/** @import { AnyGrid } from "../types.js" */
/** @import { HeatmapStyle } from "../views/heatmap.js" */

const COLUMN_NAMES_HEIGHT = 20; // of the names above a heatmap, where they lie flat
const AXIS_NAMES_HEIGHT = 16; // of the names of both axes
const MIN_RULED_CELL = 10; // pixels of a cell; smaller ones have no lines between them

/** @param {string[]} texts */
const widest = (texts) => Math.max(0, ...texts.map((one) => textWidth(one, FONT_SIZE)));
/** @param {string[]} texts */
const widestBold = (texts) => Math.max(0, ...texts.map((one) => textWidth(one, FONT_SIZE, true)));

/** A heatmap without a title, whose column labels are vertical only if they do not fit side by side. */
class NumberHeatmap extends Heatmap {
  /** @param {AnyGrid} grid @param {number} width */
  layout(grid, width) {
    const { axes } = this;
    this.axes = ["", ""]; // their names stand above the words of the rows and take no width
    super.layout(grid, width);
    this.axes = axes;
    Object.assign(this, { left: Math.min(0.4 * width, widest(this.labels[0]) + 10) });
    const nameWidth = Math.max(...this.labels[1].map((word) => textWidth(word, 12, true)));
    const hasVerticalNames = this.hasVerticalNames && nameWidth + 8 > this.mapWidth / grid.columns.length;
    const heading = this.axes.some(Boolean) ? AXIS_NAMES_HEIGHT : 0;
    const top = (hasVerticalNames ? this.top - 16 : COLUMN_NAMES_HEIGHT) + heading;
    Object.assign(this, { hasVerticalNames, top, height: this.height - this.top + top });
    return this.height;
  }

  /** Return where the name of the rows ends and that of the columns begins and ends. @returns {[number, number, number]} */
  get headingPositions() {
    const [down, across] = this.axes;
    const end = down ? Math.max(this.left - 8, textWidth(`${down} ↓`, FONT_SIZE)) : 0;
    const start = Math.max(this.left, end + 8);
    return [end, start, across ? start + textWidth(`${across} →`, FONT_SIZE) : end];
  }

  /** @param {Pen} pen */
  drawHeading(pen) {
    const [down, across] = this.axes;
    const [end, start] = this.headingPositions;
    const style = { fill: this.theme.soft, size: FONT_SIZE };
    if (down) pen.text(end, 8, `${down} ↓`, { ...style, align: "right" });
    if (across) pen.text(start, 8, `${across} →`, style);
  }

  /** Draw lines between the cells, so that empty ones are seen as cells. @param {Pen} pen @param {HeatmapStyle} [style] */
  drawMarks(pen, style = {}) {
    const { left, top, mapWidth, mapHeight, grid, theme } = this;
    const [cellWidth, cellHeight] = [mapWidth / grid.columns.length, mapHeight / grid.rows.length];
    const line = { stroke: theme.line, alpha: 0.5 };
    if (Math.min(cellWidth, cellHeight) >= MIN_RULED_CELL) {
      for (let col = 1; col < grid.columns.length; col++)
        pen.line(left + col * cellWidth, top, left + col * cellWidth, top + mapHeight, line);
      for (let row = 1; row < grid.rows.length; row++)
        pen.line(left, top + row * cellHeight, left + mapWidth, top + row * cellHeight, line);
    }
    super.drawMarks(pen, style);
  }
}

/** A panel that draws a matrix as a heatmap, with numbers in the cells if there are few. */
export class GridPanel extends Panel {
  isNumbered = false;
  map = new NumberHeatmap(this.theme, { axes: ["", ""], numbers: true });

  /** @param {number} width */
  layout(width) {
    const [n, m] = this.tensor.shape;
    this.size = [n, m];
    const isSmall = n * m <= MAX_NUMBERED_CELLS;
    this.isNumbered = isSmall && !(this.keyed && isBinary(this.tensor.data)); // the key says what 0 and 1 mean
    Object.assign(this.map, this.sizes(isSmall, this.stacked && width < NARROW_WIDTH), {
      axes: this.axes ?? ["", ""],
      legend: !this.isNumbered && !this.keyed,
      numbers: this.isNumbered,
    });
    this.grid = gridOf(wordsFor(this.rows, n), wordsFor(this.columns, m), this.tensor.data, this);
    [this.width, this.height] = [120, 24];
    if (!n || !m) return;
    this.map.layout(this.grid, width);
    this.height = this.map.height;
    const right = this.map.left + this.map.mapWidth + (this.map.legend ? 72 : 8);
    this.width = Math.min(width, Math.max(right, this.map.headingPositions[2] + 2));
  }

  /** @param {boolean} isSmall @param {boolean} isNarrow */
  sizes(isSmall, isNarrow) {
    const largest = isNarrow ? NARROW_CELL_SIZE : MIN_NUMBERED_CELL_SIZE + 20;
    const maxHeight = isSmall ? 340 : 400;
    return {
      maxCell: isSmall ? largest : 26,
      maxNumberedCell: largest,
      maxHeight: isNarrow ? NARROW_HEIGHT : maxHeight,
    };
  }

  /** @param {Pen} pen */
  paint(pen) {
    if (!this.size[0] || !this.size[1]) return;
    this.map.draw(pen);
    if (!this.stated || Math.min(...this.size) < 2) return;
    const [x, y, width, height] = this.map.box(this.stated[0], this.stated[1]);
    if (Math.min(width, height) >= MIN_RULED_CELL)
      pen.rect(x, y, width, height, { stroke: this.theme.ink, lineWidth: 2 });
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
    return fromTo(this.grid.rows[row], this.grid.columns[col]);
  }
}

const NARROW_WIDTH = 360; // of a picture on a narrow screen, where the next ones are seen below it
const [NARROW_CELL_SIZE, NARROW_HEIGHT] = [38, 270];
const ROW_HEIGHTS = { min: 3, many: 28, few: 40 }; // pixels of a bar's row
const MAX_LARGE_BARS = 6; // more bars are drawn lower
const MIN_LABELLED_ROW_HEIGHT = 13; // a lower row has no room for its word and number
const BARS_HEIGHT = 560; // of all bars together, if they are many
const MAX_BAR_NAME_LENGTH = 32; // characters
const AXIS_HEIGHT = 22; // below the bars, for the ends of the scale
const ENDS_HEIGHT = 20; // above the bars, for what the sides of 0 mean

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
  rowHeight = 0;
  barLength = 0;
  left = 0;
  zeroX = 0;
  /** @type {string[]} */
  numbers = [];
  /** Where the first row begins, below what the sides of 0 mean. */
  above = 0;

  /** @param {number} width */
  layout(width) {
    this.order = ordered(this.tensor.data, this.top);
    const count = this.order.length;
    this.size = [count, 1];
    const words = wordsFor(this.rows, this.tensor.data.length);
    this.words = this.order.map((at) => words[at]);
    this.values = this.order.map((at) => this.tensor.data[at]);
    this.grid = gridOf(this.words, [this.title || "value"], this.values, this);
    const most = count <= MAX_LARGE_BARS ? ROW_HEIGHTS.few : ROW_HEIGHTS.many;
    this.rowHeight = clamp(BARS_HEIGHT / Math.max(1, count), ROW_HEIGHTS.min, most);
    this.numbers = formatAligned(this.values).map(
      (text, i) => this.withUnit(text) + (this.verdict(i) && ` ${this.verdict(i)}`),
    );
    this.above = this.ends ? ENDS_HEIGHT : 0;
    const isLabelled = this.rowHeight >= MIN_LABELLED_ROW_HEIGHT;
    const names = this.words.map((word) => label(word, MAX_BAR_NAME_LENGTH));
    const nameWidth = Math.min(widestBold(names), 0.4 * width);
    this.labels = names.map((name) => fitted(name, nameWidth, FONT_SIZE));
    this.left = isLabelled ? nameWidth + 10 : 2;
    this.barLength = Math.max(40, width - this.left - (isLabelled ? Math.max(53, widestBold(this.numbers) + 17) : 2));
    this.signed = Boolean(this.expected) || this.values.some((value) => value < 0);
    this.zeroX = this.left + (this.signed ? this.barLength / 2 : 0);
    this.width = width;
    this.height = this.above + this.rowHeight * count + AXIS_HEIGHT;
  }

  /** Return the sign of a bar that points, or does not point, to the side where it should. @param {number} i */
  verdict(i) {
    if (!this.expected) return "";
    return this.values[i] * this.expected[i] > 0 ? "✓" : "✗";
  }

  /** Return the colour of a bar: below 0 that of such cells of a table. @param {number} value */
  colourOf(value) {
    return value < 0 ? this.theme.low : this.theme.prediction;
  }

  /** @param {Pen} pen */
  paint(pen) {
    const { theme, above, left, barLength, zeroX, rowHeight } = this;
    const scale = (this.signed ? barLength / 2 : barLength) / this.limit;
    const barHeight = Math.max(2, Math.min(0.6 * rowHeight, 22));
    this.values.forEach((value, i) => {
      const middle = above + (i + 0.5) * rowHeight;
      const length = Math.min(
        this.signed ? barLength / 2 : barLength,
        Math.abs(Number.isFinite(value) ? value : 0) * scale,
      );
      const side = this.expected?.[i];
      const track = side ? [side < 0 ? left : zeroX, barLength / 2] : [left, barLength];
      pen.rect(track[0], middle - barHeight / 2, track[1], barHeight, {
        fill: theme.line,
        alpha: side ? 0.6 : 0.4,
        radius: 3,
      });
      const outlined = this.verdict(i) === "✗";
      const ink = this.colourOf(value);
      pen.rect(value < 0 ? zeroX - length : zeroX, middle - barHeight / 2, length, barHeight, {
        ...(outlined ? { stroke: ink, lineWidth: 1.5 } : { fill: ink }),
        radius: 3,
      });
      if (rowHeight < MIN_LABELLED_ROW_HEIGHT) return;
      const style = { fill: theme.ink, size: FONT_SIZE, bold: this.stated?.[0] === this.order[i] };
      pen.text(left - 10, middle, this.labels[i], { ...style, align: "right" });
      pen.text(this.width - 5, middle, this.numbers[i], { ...style, align: "right" });
    });
    const below = above + rowHeight * this.values.length;
    pen.line(zeroX, above, zeroX, below, { stroke: theme.soft });
    const end = { fill: theme.soft, size: 12 };
    const [negative, positive] = this.ends ?? [];
    if (negative) pen.text(zeroX - 8, 8, `← ${negative}`, { ...end, align: "right" });
    if (positive) pen.text(zeroX + 8, 8, `${positive} →`, end);
    pen.text(left, below + 10, formatNumber(this.signed ? -this.limit : 0), end);
    if (this.signed) pen.text(zeroX, below + 10, "0", { ...end, align: "center" });
    pen.text(left + barLength, below + 10, formatNumber(this.limit), { ...end, align: "right" });
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    const row = Math.floor((y - this.above) / this.rowHeight);
    return row >= 0 && row < this.size[0] ? [row, 0] : null;
  }

  /** @param {Point} cell @returns {Box} */
  box([row]) {
    return [1, this.above + row * this.rowHeight, this.width - 2, this.rowHeight];
  }

  /** @param {Point} cell */
  cellName([row]) {
    return quoted(this.words[row]);
  }

  /** @param {Point} cell */
  value([row]) {
    return this.values[row];
  }

  /** @param {Point} cell */
  reading(cell) {
    return `${super.reading(cell)} ${this.verdict(cell[0])}`.trimEnd();
  }

  /** Describe a change of the first of the sorted bars. @param {Tensor} [before] */
  describeChange(before) {
    if (!this.top || !before || before.data.length !== this.tensor.data.length) return super.describeChange(before);
    const previous = ordered(before.data, 1)[0];
    if (previous === this.order[0]) return "";
    const words = wordsFor(this.rows, this.tensor.data.length);
    return this.titled(`${quoted(words[this.order[0]])} is first (was ${quoted(words[previous])})`);
  }
}

/**
 * Return the indices of all values in order; or of the `top` largest, largest first, with NaN last.
 * @param {ArrayLike<number>} values
 * @param {number} [top]
 */
function ordered(values, top) {
  const all = Array.from(values, (_, i) => i);
  /** @param {number} i */
  const size = (i) => (Number.isNaN(values[i]) ? -Infinity : values[i]);
  return top ? all.sort((a, b) => (size(a) === size(b) ? a - b : size(b) - size(a))).slice(0, top) : all;
}

const NUMBER_FONT_SIZE = 30; // of a result that is a single number

/** A panel that writes a single number. */
export class NumberPanel extends Panel {
  text = "";

  /** @param {number} width */
  layout(width) {
    this.size = [1, 1];
    this.grid = gridOf([this.title || "value"], ["value"], this.tensor.data, this);
    this.text = this.measured(this.tensor.data[0]);
    this.width = Math.min(width, Math.max(60, textWidth(this.text, NUMBER_FONT_SIZE) + 8));
    this.height = NUMBER_FONT_SIZE + 8;
  }

  /** @param {Pen} pen */
  paint(pen) {
    pen.text(2, this.height / 2, this.text, { fill: this.theme.ink, size: NUMBER_FONT_SIZE });
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

// The base class of panels, each of which draws one result on its own canvas and describes cells under the cursor of
// mouse and keys.

import { chartCanvas } from "../base/elements.js";
import { cellAfterKey, consume, followPointer, hasModifier, pointIn } from "../base/events.js";
import { Grid } from "../base/grid.js";
import { clamp, formatNumber, unitSuffix } from "../base/numbers.js";
import { h } from "../base/elements.js";
import { CanvasPen } from "../base/pen.js";
import { excerpt, quoted } from "../base/visible-text.js";

/** @import { ScaleKind } from "../documents.js" */
/** @import { Box, Pen, Point, Tensor } from "../types.js" */
/** @import { Theme } from "../base/theme.js" */
/**
 * A result, as `ResultPanel` in `tfviz/view/result_spec.py` specifies it.
 * @typedef {object} PanelContent
 * @property {Tensor} tensor
 * @property {string} title
 * @property {string[]} rows words of its axes
 * @property {string[]} columns
 * @property {ScaleKind} scale
 * @property {number} limit
 * @property {Point[]} positions of the nodes of a graph
 * @property {boolean} filled whether the diagonal of a graph fills its nodes
 * @property {number} [top] how many bars are drawn
 * @property {string[]} [axes] names of the rows and of the columns, or of the two coordinates of a plane
 * @property {string[]} [mark] words of a plane that are drawn in colour, all others in grey
 * @property {string[]} [ends] what the smallest and the largest number of the scale mean
 * @property {number[]} [expected] the sign that the number of each bar should have
 * @property {string} [hatched] what a hatched cell means
 * @property {string} [unit]
 * @property {number} [budget] the largest sum of a stack that fits
 * @property {string} [sentence] the author's sentence
 * @property {Point | null} [stated] row and column of the number that the sentence above names, which is marked
 * @property {boolean} [keyed] whether a key below the pictures explains the scale
 */

export const FONT_SIZE = 13; // pixels of the words of a drawing

/**
 * A drawing of one result. A subclass implements `layout(width)`, which sets width, height, `size` (the numbers of rows
 * and columns for the cursor) and `grid` (the values for table and CSV); `paint(pen)`; `cellAt(x, y)`, the cell at a
 * point; `box(cell)`, its corner and size; `cellName(cell)`, its name in words.
 */
export class Panel {
  /** @type {Point | null} */
  cursor = null;
  /** What is shown; see `PanelContent`. @type {Tensor} */
  tensor = { shape: [0, 0], dtype: "float32", data: new Float32Array() };
  title = "";
  /** @type {string[]} */
  rows = [];
  /** @type {string[]} */
  columns = [];
  /** @type {Point[]} */
  positions = [];
  /** @type {ScaleKind} */
  scale = "linear";
  limit = 1;
  filled = false;
  /** @type {number | undefined} */
  top;
  /** Identifies the result and which of its tables is shown. */
  key = "";
  /** @type {string[] | undefined} */
  axes;
  /** @type {string[] | undefined} */
  ends;
  /** @type {number[] | undefined} */
  expected;
  /** @type {string[]} */
  mark = [];
  /** @type {string | undefined} */
  unit;
  /** @type {number | undefined} */
  budget;
  keyed = false;
  /** @type {Point | null} */
  stated = null;
  /** Whether the pictures stand one below another. */
  stacked = false;
  /** Set by layout(). */
  width = 0;
  height = 0;
  size = [0, 0];
  /** How many pixels of the page one pixel of the drawing takes. */
  zoom = 1;
  grid = Grid.of([], [], [], new Uint8Array());

  /** @param {Theme} theme @param {(text: string) => void} announce */
  constructor(theme, announce) {
    this.theme = theme;
    this.announce = announce;
    const { axes, mark, unit, budget, top, ends, expected, keyed, stated } = this;
    /** What `show` resets optional content to. */
    this.defaults = { axes, mark, unit, budget, top, ends, expected, keyed, stated };
    this.canvas = chartCanvas("");
    this.caption = h("figcaption");
    this.element = h("figure", { class: "result" }, this.caption, this.canvas);
    this.listen();
  }

  /** @param {PanelContent} content @param {number} width */
  show(content, width) {
    Object.assign(this, this.defaults, content);
    this.caption.textContent = excerpt(this.title, 120);
    this.caption.hidden = !this.title;
    this.canvas.setAttribute("aria-label", `${excerpt(this.title || "result", 60)}: arrows move over its numbers`);
    this.layout(width / this.zoom);
    if (this.cursor) this.cursor = this.cursor.map((at, axis) => clamp(at, 0, this.size[axis] - 1));
    this.draw();
  }

  /** @abstract @param {number} _width */
  layout(_width) {}

  /** @abstract @param {Pen} _pen */
  paint(_pen) {}

  /** @abstract @returns {Point | null} @param {number} _x @param {number} _y */
  cellAt(_x, _y) {
    return null;
  }

  /** @abstract @returns {Box} @param {Point} _cell */
  box(_cell) {
    return [0, 0, 0, 0];
  }

  /** @abstract @returns {string} @param {Point} _cell */
  cellName(_cell) {
    return "";
  }

  draw() {
    const pen = new CanvasPen(this.canvas, this.width, this.height, this.zoom);
    this.paint(pen);
    if (!this.cursor) return;
    const [x, y, width, height] = this.box(this.cursor);
    pen.rect(x, y, width, height, { stroke: this.theme.focus, lineWidth: 2 });
  }

  /** @param {Point} cell */
  value([row, col]) {
    return this.tensor.data[row * this.size[1] + col];
  }

  /** Write a number with its unit. @param {number} value */
  measured(value) {
    return this.withUnit(formatNumber(value));
  }

  /** @param {string} text of a number */
  withUnit(text) {
    return text + unitSuffix(this.unit);
  }

  /** Begin a text with the title. @param {string} text */
  titled(text) {
    return this.title ? `${excerpt(this.title)}: ${text}` : text;
  }

  /** @param {Point} cell */
  reading(cell) {
    return this.titled(`${this.cellName(cell)} ${this.measured(this.value(cell))}`).replace("  ", " ");
  }

  /**
   * Describe the largest change among the numbers that now read differently; empty if there is none.
   * @param {Tensor} [before]
   */
  describeChange(before) {
    if (!before || before.data.length !== this.tensor.data.length) return "";
    let [max, at] = [0, -1];
    this.tensor.data.forEach((value, i) => {
      const change = Math.abs(value - before.data[i]);
      if (change > max && Number.isFinite(change) && formatNumber(value) !== formatNumber(before.data[i]))
        [max, at] = [change, i];
    });
    if (at < 0) return "";
    const previous = formatNumber(before.data[at]);
    return `${this.reading([Math.floor(at / this.size[1]), at % this.size[1]])} (was ${previous})`;
  }

  /** @param {Point | null} cell */
  point(cell) {
    this.cursor = cell;
    this.announce(cell ? this.reading(cell) : "");
    this.draw();
  }

  listen() {
    const { canvas } = this;
    /** @param {MouseEvent} event */
    const points = (event) => {
      const [x, y] = pointIn(canvas, event);
      this.point(this.cellAt(x / this.zoom, y / this.zoom));
    };
    followPointer(canvas, points, () => this.point(null));
    canvas.onfocus = () => canvas.matches(":focus-visible") && this.point(this.cursor ?? [0, 0]);
    canvas.onblur = () => this.point(null);
    canvas.onkeydown = (event) => {
      if (hasModifier(event) || !this.size[0] || !this.size[1]) return;
      const cell = cellAfterKey(event.key, this.cursor ?? [0, 0], this.size, event.shiftKey ? 10 : 1);
      if (!cell) return;
      this.point(cell);
      consume(event);
    };
  }
}

/**
 * Write a change: “cat” → “mat”.
 * @param {string} from
 * @param {string} to
 */
export const fromTo = (from, to) => `${quoted(from, 30)} → ${quoted(to, 30)}`;

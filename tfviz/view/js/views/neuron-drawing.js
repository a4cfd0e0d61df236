// A drawing of how one query's weights are computed: the query above the keys, their products in each dimension, and
// for each key the sum, the score and the weight.

import { ALLOWED } from "../base/grid.js";
import { clamp, formatFixed, formatNumber } from "../base/numbers.js";
import { paint } from "../base/paint.js";
import { textWidth } from "../base/pen.js";
import { label } from "../base/visible-text.js";
import { largestSize, signedGrid } from "./neuron-parts.js";

/** @import { Grid } from "../base/grid.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Pen, Point } from "../types.js" */
/** @import { HeadVectors, NeuronParts } from "./neuron-parts.js" */
/**
 * @typedef {object} NeuronContent
 * @property {HeadVectors} vectors
 * @property {NeuronParts} parts
 * @property {number[]} keys those that are shown
 * @property {string[]} words of all keys
 * @property {string} word of the query
 */

const ROW_HEIGHT = 20; // pixels of a key
const HEADER_HEIGHT = 78; // pixels of the query and of the titles above the keys
const QUERY_TOP = 22;
const COLUMN_GAP = 18;
const NUMBER_WIDTH = 58; // pixels of a column of numbers
const MAX_BAR_WIDTH = 70; // pixels of the largest weight
const NARROW_WIDTH = 640; // pixels below which the sum and the score are only read, not drawn
const MAX_CELL = 14; // pixels of a dimension

/** The layout and drawing of one query's way to its weights. */
export class NeuronDrawing {
  /** @type {NeuronContent | null} */
  content = null;
  width = 0;
  height = 0;
  left = 0;
  /** The width of a strip of dimensions, in pixels. */
  strip = 0;
  isComplete = false;

  /** @param {Theme} theme */
  constructor(theme) {
    this.theme = theme;
  }

  /** Lay out for a width, in pixels. @param {NeuronContent} content @param {number} width */
  layout(content, width) {
    const { parts, keys, words } = content;
    this.content = content;
    this.width = width;
    this.height = HEADER_HEIGHT + ROW_HEIGHT * keys.length + 4;
    this.left = Math.min(
      0.22 * width,
      14 + Math.max(textWidth("query", 12), ...keys.map((key) => textWidth(label(words[key]), 12))),
    );
    this.isComplete = width >= NARROW_WIDTH;
    const numbers = this.columns.length * NUMBER_WIDTH + COLUMN_GAP + (this.isComplete ? MAX_BAR_WIDTH : 0);
    this.strip = clamp((width - this.left - numbers - 2 * COLUMN_GAP) / 2, 40, MAX_CELL * parts.dim);
  }

  /** The numbers that stand beside each key. */
  get columns() {
    if (!this.isComplete) return ["weight"];
    return this.content?.vectors.bias ? ["sum", "bias", "score", "weight"] : ["sum", "score", "weight"];
  }

  /** The left edges of the strips and of the numbers. */
  get edges() {
    const products = this.left + this.strip + COLUMN_GAP;
    return { keys: this.left, products, numbers: products + this.strip + COLUMN_GAP };
  }

  /** Return the key under a point, and the dimension or null. @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    const { content, edges, strip } = this;
    const row = Math.floor((y - HEADER_HEIGHT) / ROW_HEIGHT);
    if (!content || row < 0 || row >= content.keys.length) return null;
    const across = [edges.keys, edges.products].map((edge) => (x - edge) / strip).find((at) => at >= 0 && at < 1);
    return [row, across === undefined ? -1 : Math.floor(across * content.parts.dim)];
  }

  /** @param {Pen} pen @param {Point | null} cursor a key that is shown, and its dimension; -1 for none */
  draw(pen, cursor) {
    const { content } = this;
    if (!content) return;
    this.drawTitles(pen, content);
    this.drawStrips(pen, content);
    content.keys.forEach((key, row) => this.drawKey(pen, content, key, row, cursor?.[0] === row));
    if (cursor) this.drawCursor(pen, content, cursor);
  }

  /** @param {Pen} pen @param {NeuronContent} content */
  drawTitles(pen, { word, vectors, parts }) {
    const { theme, edges } = this;
    const soft = { fill: theme.soft };
    pen.text(edges.keys, 9, `query · dimension, 0 to ${parts.dim - 1} →`, soft);
    pen.text(this.left - 6, QUERY_TOP + ROW_HEIGHT / 2, label(word), {
      fill: theme.ink,
      bold: true,
      size: 12,
      align: "right",
    });
    pen.text(this.left - 6, HEADER_HEIGHT - 11, "key ↓", { ...soft, align: "right" });
    const ends = (/** @type {Iterable<number>[]} */ ...all) =>
      ` to ±${formatNumber(Math.max(...all.map(largestSize)))}`;
    pen.text(edges.keys, HEADER_HEIGHT - 11, `keys${this.isComplete ? ends(vectors.query, vectors.keys) : ""}`, soft);
    pen.text(edges.products, HEADER_HEIGHT - 11, `query × key${this.isComplete ? ends(parts.products) : ""}`, soft);
    if (this.isComplete) {
      const formula = `score = sum × ${formatNumber(vectors.scale, 3)}${vectors.bias ? " + bias" : ""}`;
      pen.text(edges.numbers, HEADER_HEIGHT - 30, formula, soft);
    }
    this.columns.forEach((name, index) =>
      pen.text(edges.numbers + (index + 1) * NUMBER_WIDTH - 8, HEADER_HEIGHT - 11, name, { ...soft, align: "right" }),
    );
  }

  /** @param {Pen} pen @param {NeuronContent} content */
  drawStrips(pen, { vectors, parts, keys }) {
    const { dim, products } = parts;
    const { edges } = this;
    const rowsOf = (/** @type {ArrayLike<number>} */ all) =>
      Float64Array.from({ length: keys.length * dim }, (_, i) => all[keys[Math.floor(i / dim)] * dim + (i % dim)]);
    const limit = Math.max(largestSize(vectors.query), largestSize(vectors.keys));
    const names = (/** @type {number} */ count) => Array.from({ length: count }, () => "");
    const grid = (/** @type {Float64Array} */ numbers, /** @type {number} */ most) =>
      signedGrid(names(numbers.length / dim), names(dim), numbers, most);
    this.drawGrid(pen, grid(Float64Array.from(vectors.query), limit), edges.keys, QUERY_TOP);
    this.drawGrid(pen, grid(rowsOf(vectors.keys), limit), edges.keys, HEADER_HEIGHT);
    this.drawGrid(pen, grid(rowsOf(products), largestSize(products)), edges.products, HEADER_HEIGHT);
  }

  /** @param {Pen} pen @param {Grid} grid @param {number} x @param {number} y */
  drawGrid(pen, grid, x, y) {
    const [height, width] = [grid.rows.length, grid.columns.length];
    const window = { x: 0, y: 0, width, height };
    const [across, down] = [this.strip, ROW_HEIGHT * height].map((length) =>
      Math.max(1, Math.round(length * pen.ratio)),
    );
    pen.image(paint(grid, window, across, down, this.theme, pen.ratio), x, y);
    pen.rect(x, y, this.strip, ROW_HEIGHT * height, { stroke: this.theme.line, lineWidth: 1 });
  }

  /** @param {Pen} pen @param {NeuronContent} content @param {number} key @param {number} row @param {boolean} strong */
  drawKey(pen, { vectors, parts, words }, key, row, strong) {
    const { theme, edges, isComplete } = this;
    const y = HEADER_HEIGHT + ROW_HEIGHT * (row + 0.5);
    const isAllowed = vectors.state[key] === ALLOWED;
    const fill = strong ? theme.ink : theme.soft;
    pen.text(this.left - 6, y, label(words[key]), { fill, bold: strong, size: 12, align: "right" });
    /** @type {Record<string, string>} */
    const numbers = {
      sum: formatFixed(parts.sums[key], 2),
      bias: formatFixed(vectors.bias?.[key] ?? 0, 2),
      score: isAllowed ? formatFixed(parts.scores[key], 2) : "masked",
      weight: isAllowed ? formatFixed(parts.weights[key], 3) : "–",
    };
    const style = { fill: isAllowed ? theme.ink : theme.soft, size: 12, align: /** @type {const} */ ("right") };
    this.columns.forEach((name, index) =>
      pen.text(edges.numbers + (index + 1) * NUMBER_WIDTH - 8, y, numbers[name], style),
    );
    const bar = (MAX_BAR_WIDTH * parts.weights[key]) / largestSize(parts.weights);
    if (isComplete && isAllowed)
      pen.rect(edges.numbers + this.columns.length * NUMBER_WIDTH, y - 6, bar, 12, { fill: theme.ramp, radius: 2 });
  }

  /** @param {Pen} pen @param {NeuronContent} content @param {Point} cursor */
  drawCursor(pen, { parts }, [row, dimension]) {
    const { theme, edges, strip } = this;
    const cell = strip / parts.dim;
    const style = { stroke: theme.ink, lineWidth: 1.5 };
    for (const edge of [edges.keys, edges.products]) {
      if (dimension < 0) pen.rect(edge, HEADER_HEIGHT + ROW_HEIGHT * row, strip, ROW_HEIGHT, style);
      else
        pen.rect(
          edge + cell * dimension - 1,
          HEADER_HEIGHT + ROW_HEIGHT * row,
          Math.max(3, cell + 2),
          ROW_HEIGHT,
          style,
        );
    }
    if (dimension >= 0)
      pen.rect(edges.keys + cell * dimension - 1, QUERY_TOP, Math.max(3, cell + 2), ROW_HEIGHT, style);
  }
}

// Panels that draw results in a plane: arrows from the origin, points, and graphs of nodes and edges.

import { formatNumber } from "../base/numbers.js";
import { gridOf, wordsFor } from "./scales.js";
import { textWidth } from "../base/pen.js";
import { FONT_SIZE, Panel, fromTo } from "./panel.js";
import { Plane, ARROW_STOPS, arrowTo } from "./plane.js";
import { inkOf } from "../base/theme.js";
import { label, quoted } from "../base/visible-text.js";

/** @import { Box, LineStyle, Pen, Point, Tensor } from "../types.js" */

const PLANE_SIDE = 380;
const TOP_OFFSET = -10; // no names stand at the top of the plane
const NAMED_TOP_OFFSET = -4; // but for the name of an axis
const HIT_RADIUS = 24; // a pointer selects a point within this distance

/**
 * Return the index of the point that a pointer selects; null if none is near.
 * @param {Plane} plane
 * @param {Point[]} points
 * @param {number} x
 * @param {number} y
 */
function nearest(plane, points, x, y) {
  const distances = points.map((point) => plane.distance(point, x, y));
  const best = distances.indexOf(Math.min(...distances));
  return distances[best] < HIT_RADIUS ? best : null;
}

/** The base class of panels that draw in a square of the plane. */
class PlanePanel extends Panel {
  side = PLANE_SIDE;
  plane = new Plane(1, PLANE_SIDE);
  /** Whether only the upper right quarter is drawn where no coordinate is below 0. */
  quarter = false;
  /** @type {Point[]} */
  points = [];
  /** @type {string[]} */
  words = [];

  /** @param {number} width */
  layout(width) {
    const count = this.tensor.shape[0];
    this.size = [count, 1];
    this.side = Math.min(PLANE_SIDE, width);
    const zoomed = this.quarter && this.tensor.data.every((value) => !(value < 0));
    const top = this.axes?.[1] ? NAMED_TOP_OFFSET : TOP_OFFSET;
    this.plane = new Plane(this.limit, this.side, top, zoomed ? 0 : -this.limit);
    this.points = Array.from({ length: count }, (_, i) => [...this.tensor.data.subarray(2 * i, 2 * i + 2)]);
    this.words = wordsFor(this.rows, count);
    this.grid = gridOf(this.words, ["x", "y"], this.tensor.data, this);
    [this.width, this.height] = [this.side, this.side + top];
  }

  /** @param {number} i */
  ink(i) {
    const { mark, words, theme } = this;
    if (!mark.length) return inkOf(theme, i);
    if (!mark.includes(words[i])) return theme.soft;
    return inkOf(theme, words.slice(0, i).filter((word) => mark.includes(word)).length);
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    const row = nearest(this.plane, this.points, x, y);
    return row === null ? null : [row, 0];
  }

  /** @param {Point} cell @returns {Box} */
  box([row]) {
    const [x, y] = this.plane.at(this.points[row]);
    return [x - 9, y - 9, 18, 18];
  }

  /** @param {Point} cell */
  cellName([row]) {
    return quoted(this.words[row], 30);
  }

  /** @param {Point} cell */
  reading([row]) {
    const [x, y] = this.points[row];
    return this.titled(`${this.cellName([row])} (${formatNumber(x)}, ${formatNumber(y)})`);
  }

  /** @param {Tensor} [before] */
  describeChange(before) {
    if (!before || before.data.length !== this.tensor.data.length) return "";
    const distances = this.points.map(([x, y], i) => Math.hypot(x - before.data[2 * i], y - before.data[2 * i + 1]));
    const row = distances.indexOf(Math.max(...distances));
    const previous = `(${formatNumber(before.data[2 * row])}, ${formatNumber(before.data[2 * row + 1])})`;
    return row < 0 || this.reading([row]).endsWith(previous)
      ? ""
      : `${this.reading([row])} (was ${previous.slice(1, -1)})`;
  }
}

/** A panel that draws vectors as arrows from the origin. */
export class ArrowPanel extends PlanePanel {
  /** @param {Pen} pen */
  paint(pen) {
    this.plane.lines(pen, this.theme, this.axes);
    this.points.forEach((point, i) => {
      if (point.every(Number.isFinite))
        arrowTo(pen, this.plane.at([0, 0]), this.plane.at(point), { stroke: this.ink(i) });
    });
    this.plane.names(pen, this.theme, this.words, this.points, ARROW_STOPS);
  }
}

/** A panel that draws vectors as points. */
export class DotPanel extends PlanePanel {
  quarter = true;

  /** @param {Pen} pen */
  paint(pen) {
    this.plane.lines(pen, this.theme, this.axes);
    this.points.forEach((point, i) => {
      const [x, y] = this.plane.at(point);
      if (point.every(Number.isFinite)) pen.dot(x, y, 5, { fill: this.ink(i) });
    });
    this.plane.names(pen, this.theme, this.words, this.points);
  }
}

const NODE_RADIUS = 13; // edges end at this distance from a node's centre

/** A panel that draws a matrix as the weighted edges of a graph. */
export class GraphPanel extends Panel {
  side = PLANE_SIDE;
  plane = new Plane(1, PLANE_SIDE);
  /** @type {Point[]} */
  nodes = [];
  /** @type {string[]} */
  words = [];

  /** @param {number} width */
  layout(width) {
    const [count] = this.tensor.shape;
    this.size = [count, count];
    this.words = wordsFor(this.rows, count);
    this.grid = gridOf(this.words, this.words, this.tensor.data, this);
    this.side = Math.min(PLANE_SIDE, width);
    const placed = this.positions.length === count;
    /** @param {number} i */
    const turn = (i) => (2 * Math.PI * i) / Math.max(1, count);
    this.nodes = placed ? this.positions : this.words.map((_, i) => [Math.sin(turn(i)), Math.cos(turn(i))]);
    const far = 1.25 * Math.max(1e-9, ...this.nodes.flat().map(Math.abs));
    this.plane = new Plane(far, this.side, TOP_OFFSET);
    [this.width, this.height] = [this.side, this.side + TOP_OFFSET];
  }

  edges() {
    /** @type {[from: number, to: number, value: number, share: number][]} */
    const edges = [];
    for (let from = 0; from < this.size[0]; from++)
      for (let to = 0; to < this.size[0]; to++) {
        const value = this.value([from, to]);
        const share = Math.min(1, Math.abs(value) / this.limit);
        if (share >= 0.02 && !(this.filled && from === to)) edges.push([from, to, value, share]);
      }
    return edges;
  }

  /** @param {Pen} pen */
  paint(pen) {
    const { theme } = this;
    for (const [from, to, value, share] of this.edges()) {
      const style = {
        stroke: theme.headColour(value < 0 ? 6 : 5),
        lineWidth: 0.5 + 3.5 * share,
        alpha: 0.25 + 0.75 * share,
      };
      const [start, end] = [this.plane.at(this.nodes[from]), this.plane.at(this.nodes[to])];
      if (from === to) ring(pen, start, style);
      else {
        const [outer, inner] = between(start, end);
        arrowTo(pen, outer, inner, style);
      }
    }
    this.words.forEach((word, i) => {
      const [x, y] = this.plane.at(this.nodes[i]);
      const text = label(word, 14);
      const labelWidth = Math.max(20, textWidth(text, FONT_SIZE) + 10);
      const full = this.filled && Math.abs(this.value([i, i])) / this.limit >= 0.02;
      const { background, ink } = full
        ? theme.shadeOfText(this.grid, this.grid.codes[i * this.size[0] + i])
        : { background: theme.page, ink: theme.ink };
      pen.rect(x - labelWidth / 2, y - 10, labelWidth, 20, { fill: background, alpha: full ? 1 : 0.9 });
      pen.rect(x - labelWidth / 2, y - 10, labelWidth, 20, { stroke: theme.line });
      pen.text(x, y, text, { fill: ink, size: FONT_SIZE, align: "center" });
    });
  }

  /** @param {number} x @param {number} y @returns {Point | null} */
  cellAt(x, y) {
    const from = nearest(this.plane, this.nodes, x, y);
    if (from === null) return null;
    const row = this.tensor.data.subarray(from * this.size[0], (from + 1) * this.size[0]);
    return [from, row.indexOf(Math.max(...row))];
  }

  /** @param {Point} cell @returns {Box} */
  box([row, col]) {
    const [[x1, y1], [x2, y2]] = [row, col].map((i) => this.plane.at(this.nodes[i]));
    const [left, top] = [Math.min(x1, x2) - 12, Math.min(y1, y2) - 12];
    return [left, top, Math.abs(x1 - x2) + 24, Math.abs(y1 - y2) + 24];
  }

  /** @param {Point} cell */
  cellName([row, col]) {
    return fromTo(this.words[row], this.words[col]);
  }
}

/**
 * Return the part of a line that lies outside both nodes, shifted a little to its right, so that there and back are two
 * lines.
 * @type {(from: number[], to: number[]) => [number[], number[]]}
 */
function between([x1, y1], [x2, y2]) {
  const distance = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [(x2 - x1) / distance, (y2 - y1) / distance];
  const cut = Math.min(NODE_RADIUS + 4, distance / 3);
  return [
    [x1 + cut * dx - 4 * dy, y1 + cut * dy + 4 * dx],
    [x2 - cut * dx - 4 * dy, y2 - cut * dy + 4 * dx],
  ];
}

/** @param {Pen} pen @param {Point} middle @param {LineStyle} style */
function ring(pen, [x, y], style) {
  const around = Array.from({ length: 37 }, (_, i) => [
    x + 9 * Math.sin((i * Math.PI) / 18),
    y - 17 - 9 * Math.cos((i * Math.PI) / 18),
  ]);
  for (let i = 0; i < 36; i++) {
    const [[x1, y1], [x2, y2]] = [around[i], around[i + 1]];
    pen.line(x1, y1, x2, y2, style);
  }
}

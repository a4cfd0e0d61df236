// A square of the plane: conversion between its points and pixels, its axes, and labels that do not
// overlap.

import { clamp, formatNumber } from "../base/numbers.js";
import { textWidth } from "../base/pen.js";
import { label } from "../base/visible-text.js";

/** @import { LineStyle, Pen, Point } from "../types.js" */
/** @import { Theme } from "../base/theme.js" */
/** @typedef {[low: Point, high: Point]} Corners of a name, in pixels */

const PLANE_MARGIN = 20; // around the plane, for numbers and names
const NAME_FONT_SIZE = 13;
const ARROWHEAD_LENGTH = 8;
export const ARROW_STOPS = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]; // shares of an arrow's length at which a name may stand
const AXES = [0, 1];
const AMBIGUOUS_RATIO = 1.5; // a name is ambiguous if another point is not this many times as far from it as its own
const POINT_CLEARANCE = 4; // radius around a point that names leave free
const NAME_DISTANCES = [10, 14, 20, 28]; // distances between a point and its name, nearest first
const NAME_DIRECTIONS = [
  [1, 0],
  [-1, 0],
  [0, -1],
  [0, 1],
  [1, -1],
  [-1, -1],
  [1, 1],
  [-1, 1],
  [0.5, -1],
  [-0.5, -1],
  [0.5, 1],
  [-0.5, 1],
]; // where a name may stand

/** The mapping from a square of the plane to a canvas. */
export class Plane {
  /**
   * @param {number} limit the largest coordinate
   * @param {number} size of the canvas, in pixels
   * @param {number} [top] room above it
   * @param {number} [low] the smallest coordinate
   */
  constructor(limit, size, top = 0, low = -limit) {
    this.limit = limit;
    this.low = low;
    this.centre = (low + limit) / 2;
    this.size = size;
    this.top = top;
    this.half = size / 2 - PLANE_MARGIN;
  }

  /** @param {Point} point @returns {[number, number]} */
  at([x, y]) {
    const { size, top, half, limit, centre } = this;
    const scale = half / (limit - centre);
    return [size / 2 + (x - centre) * scale, top + size / 2 - (y - centre) * scale];
  }

  /**
   * Return the distance in pixels between a point and a pixel.
   * @param {Point} point
   * @param {number} x
   * @param {number} y
   */
  distance(point, x, y) {
    const [px, py] = this.at(point);
    return Math.hypot(px - x, py - y);
  }

  /**
   * Return the point under a pixel, clamped to the plane.
   * @param {number} x
   * @param {number} y
   * @returns {[number, number]}
   */
  from(x, y) {
    const { size, top, half, limit, low, centre } = this;
    const scale = (limit - centre) / half;
    return [
      clamp(centre + (x - size / 2) * scale, low, limit),
      clamp(centre + (top + size / 2 - y) * scale, low, limit),
    ];
  }

  /** @param {Pen} pen @param {Theme} theme @param {string[]} [names] of the two coordinates */
  lines(pen, theme, names = ["", ""]) {
    const { half, limit, low, centre } = this;
    const [middle, down] = this.at([centre, centre]);
    const [left, floor] = this.at([0, 0]);
    pen.rect(middle - half, down - half, 2 * half, 2 * half, { stroke: theme.line, lineWidth: 0.5 });
    pen.line(middle - half, floor, middle + half, floor, { stroke: theme.line });
    pen.line(left, down - half, left, down + half, { stroke: theme.line });
    const style = { fill: theme.soft, size: 12 };
    pen.text(middle + half, down + half + 11, formatNumber(limit, 3), { ...style, align: "right" });
    pen.text(middle - half, down + half + 11, formatNumber(low, 3), style);
    pen.text(middle, down + half + 11, formatNumber(centre, 3), { ...style, align: "center" });
    if (names[0]) pen.text(middle + half / 2, down + half + 11, `${names[0]} →`, { ...style, align: "center" });
    if (names[1]) pen.text(left - 4, down - half - 8, `${names[1]} ↑`, style); // above the arrows
  }

  /**
   * Draw names beside their points, on the outer side if there is room: without overlaps.
   * @param {Pen} pen
   * @param {Theme} theme
   * @param {string[]} words
   * @param {Point[]} points
   * @param {number[]} [stops] shares of the line from 0 to each point that names must not cover
   */
  names(pen, theme, words, points, stops = [1]) {
    const middle = this.at([this.centre, this.centre]);
    const zero = this.at([0, 0]);
    const spots = points.map((point) => this.at(point));
    const finite = spots.map((spot) => spot.every(Number.isFinite));
    /** @type {Corners[]} */
    const taken = [];
    /** @param {Point} spot */
    const fromMiddle = ([x, y]) => Math.hypot(x - middle[0], y - middle[1]);
    const order = spots
      .map((_, i) => i)
      .filter((i) => finite[i])
      .sort((a, b) => fromMiddle(spots[b]) - fromMiddle(spots[a])); // the outermost first
    order.forEach((i) => {
      const spot = spots[i];
      const text = label(words[i] ?? String(i));
      const size = [textWidth(text, NAME_FONT_SIZE), 14];
      const otherSpots = spots.filter((_, j) => finite[j] && j !== i);
      const others = stops.flatMap((stop) =>
        otherSpots.map((at) => AXES.map((axis) => zero[axis] + stop * (at[axis] - zero[axis]))),
      );
      const boxes = NAME_DISTANCES.flatMap((distance) =>
        NAME_DIRECTIONS.map((direction) => boxBeside(spot, size, direction, distance)),
      );
      const costs = boxes.map(
        (box, at) => NAME_DISTANCES[Math.floor(at / NAME_DIRECTIONS.length)] / 6 + this.cost(box, spot, others, taken),
      );
      const box = boxes[costs.indexOf(Math.min(...costs))];
      taken.push(box);
      pen.text(clamp(box[0][0], 2, this.size - size[0] - 2), (box[0][1] + box[1][1]) / 2, text, {
        fill: theme.ink,
        size: NAME_FONT_SIZE,
      });
    });
  }

  /**
   * Return the cost of a place for a name: what it covers, whether another point is nearer, how far it leaves the square,
   * and how far inward it lies.
   * @param {Corners} box
   * @param {Point} spot
   * @param {Point[]} others
   * @param {Corners[]} taken
   */
  cost([low, high], spot, others, taken) {
    const covered = taken.filter(([a, b]) => AXES.every((axis) => low[axis] < b[axis] && a[axis] < high[axis])).length;
    const touched = others.filter((at) =>
      AXES.every((axis) => at[axis] > low[axis] - POINT_CLEARANCE && at[axis] < high[axis] + POINT_CLEARANCE),
    ).length;
    /** @param {number[]} at */
    const away = (at) => Math.hypot(...AXES.map((axis) => at[axis] - clamp(at[axis], low[axis], high[axis])));
    const ambiguous = Number(Math.min(Infinity, ...others.map(away)) < AMBIGUOUS_RATIO * away(spot));
    const ends = [this.size, this.top + this.size];
    const outside = AXES.map((axis) => Math.max(0, 2 - low[axis]) + Math.max(0, high[axis] + 2 - ends[axis])).reduce(
      (a, b) => a + b,
    );
    const shift = AXES.map((axis) => (low[axis] + high[axis]) / 2 - spot[axis]);
    const from = AXES.map((axis) => spot[axis] - this.at([this.centre, this.centre])[axis]);
    const along =
      (shift[0] * from[0] + shift[1] * from[1]) / Math.max(1e-9, Math.hypot(...shift) * Math.hypot(...from));
    return 10 * (covered + touched) + 3 * ambiguous + outside - along;
  }
}

/**
 * Return the box [low, high] of a name at one side or corner of its point, or between the two.
 * @param {Point} spot
 * @param {number[]} size
 * @param {number[]} direction
 * @param {number} distance
 * @returns {Corners}
 */
function boxBeside(spot, size, direction, distance) {
  const low = AXES.map((axis) => spot[axis] + direction[axis] * distance - (size[axis] * (1 - direction[axis])) / 2);
  return [low, AXES.map((axis) => low[axis] + size[axis])];
}

/**
 * Draw an arrow between two pixels.
 * @param {Pen} pen
 * @param {Point} from
 * @param {Point} to
 * @param {LineStyle} style
 */
export function arrowTo(pen, [x1, y1], [x2, y2], { stroke, lineWidth = 2, alpha = 1 }) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  pen.line(x1, y1, x2, y2, { stroke, lineWidth, alpha });
  if (length < 2) return;
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const long = Math.min(ARROWHEAD_LENGTH, length);
  for (const side of [-0.5, 0.5]) {
    const [x, y] = [x2 - long * (dx + side * dy), y2 - long * (dy - side * dx)];
    pen.line(x, y, x2, y2, { stroke, lineWidth, alpha });
  }
}

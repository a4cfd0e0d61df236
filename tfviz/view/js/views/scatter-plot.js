// A view of labelled points in a plane. As many labels are drawn as fit; the point under the cursor is named below the
// plane.

import { axisTicks, logTicks } from "../base/axis-ticks.js";
import { chartCanvas, h } from "../base/elements.js";
import { ARROW_STEPS, consume, followPointer, followWheel, hasModifier } from "../base/events.js";
import { clamp, formatCount, formatNumber } from "../base/numbers.js";
import { Frame } from "../controls/frame.js";
import { Grid } from "../base/grid.js";
import { CanvasPen, textWidth } from "../base/pen.js";
import { table } from "../controls/table.js";
import { inkOf } from "../base/theme.js";
import { truncate } from "../base/visible-text.js";

/** @import { PointsDocument, PointsState } from "../documents.js" */
/** @import { Box, Choices, Pen, Point, ViewOptions } from "../types.js" */

const FEW_NAMES = 8; // that are found without a search
const MARGINS = { left: 64, right: 22, top: 36, bottom: 48 }; // around the points, for the legend and the axes
const FRAME_PADDING = 10; // between the outermost points and the frame
const TICK_SPACING = [60, 45]; // pixels between two numbers of an axis, at least
const DOT_STYLES = {
  strong: { radius: 4.5, alpha: 1 },
  grouped: { radius: 3, alpha: 0.85 },
  alone: { radius: 2.5, alpha: 0.55 },
};
const HIT_RADIUS = 24; // a pointer selects a point within this distance

/** A scatter plot that can be zoomed, moved and searched. */
export class ScatterPlot {
  /** @type {number | null} the point that is named below */
  cursor = null;
  width = 0;
  height = 0;
  /** @type {boolean[]} of each point, whether it is searched for */
  matches = [];

  /**
   * @param {HTMLElement} host
   * @param {import("../base/page-data.js").PageData<PointsDocument>} source
   * @param {Choices<PointsState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    const { names, axes, data, spread, labels: groupOf, legend, marked } = source.viewDocument;
    const values = source.numbers(data);
    /** of each point, the lowest and the highest coordinates over training runs */
    this.spread = spread && source.numbers(spread);
    this.store = store;
    this.range = source.viewDocument.range;
    this.scales = source.viewDocument.scales;
    this.names = names;
    this.axes = axes;
    this.values = values;
    this.groups = legend;
    this.groupOf = groupOf;
    this.marked = new Set(marked);
    this.grid = Grid.of(names, axes, values, new Uint8Array(values.length), {
      scale: "diverging",
      limit: source.viewDocument.limit,
    });
    this.frame = new Frame(host, source.viewDocument, store, {
      ...options,
      shortcuts: POINT_SHORTCUTS,
      grids: () => [{ name: "", grid: this.grid }],
      drawing: () => ({ width: this.width, height: this.height, draw: (pen) => this.paint(pen) }),
      tables: () => [table({ name: "", grid: this.grid, axes: ["name", "axis"] })],
      redraw: () => this.refresh(),
    });
    this.canvas = chartCanvas(
      "Points: arrows go to the next point that way, Space keeps its name, plus and minus zoom",
    );
    this.stage = h("div", { class: "stage" }, this.canvas);
    this.listen();
    this.find = h("input", {
      type: "search",
      placeholder: "find",
      "aria-label": "Find a name",
      oninput: () => this.refresh(),
    });
    if (source.viewDocument.names.length > FEW_NAMES)
      this.frame.body.append(h("div", { class: "controls" }, this.find));
    this.frame.enableZoom((factor) => this.zoom(factor));
    this.close = this.frame.open();
  }

  get window() {
    const side = 1 / this.store.get("zoom");
    const [x, y] = this.store.get("middle");
    const [left, top] = [x, y].map((v) => clamp(v, side / 2, 1 - side / 2) - side / 2);
    return { x: left, y: top, side };
  }

  /**
   * Return the position of a point in pixels. Coordinates grow to the right and upwards.
   * @param {number} point
   * @returns {[number, number]}
   */
  at(point) {
    return this.pixel([0, 1].map((axis) => this.share(this.values[2 * point + axis], axis)));
  }

  /** Return the pixel of two shares of the ranges. @param {number[]} shares @returns {[number, number]} */
  pixel([across, up]) {
    const { x, y, side } = this.window;
    const { width, height } = this.plane;
    return [MARGINS.left + ((across - x) / side) * width, MARGINS.top + ((1 - up - y) / side) * height];
  }

  /** The size of the area that the points may fill. */
  get plane() {
    return { width: this.width - MARGINS.left - MARGINS.right, height: this.height - MARGINS.top - MARGINS.bottom };
  }

  /** The frame around the area: left, top, right, bottom. @returns {Box} */
  get box() {
    const { width, height } = this.plane;
    const [left, top] = [MARGINS.left - FRAME_PADDING, MARGINS.top - FRAME_PADDING];
    return [left, top, left + width + 2 * FRAME_PADDING, top + height + 2 * FRAME_PADDING];
  }

  /** Return the share of an axis's range that lies below a value. @param {number} value @param {number} axis */
  share(value, axis) {
    const [low, high, here] = [...this.range[axis], value].map((one) => this.along(one, axis));
    return (here - low) / (high - low || 1);
  }

  /** Return the position of a value on an axis: its logarithm, if the axis is logarithmic. @param {number} value @param {number} axis */
  along(value, axis) {
    return this.scales[axis] === "log" ? Math.log10(value) : value;
  }

  /** Return the numbers of an axis between two shares of its range. @param {number} axis @param {number[]} shares @param {number} most */
  ticks(axis, shares, most) {
    const [low, high] = this.range[axis].map((end) => this.along(end, axis));
    const [first, last] = shares.map((share) => low + share * (high - low));
    return this.scales[axis] === "log" ? logTicks(10 ** first, 10 ** last, most) : axisTicks(first, last, most);
  }

  /** @param {number} x @param {number} y @param {number} [reach] @returns {number | null} */
  nearest(x, y, reach = HIT_RADIUS) {
    /** @type {number | null} */
    let best = null;
    let minDistance = reach;
    for (let point = 0; point < this.names.length; point++) {
      const [px, py] = this.at(point);
      const distance = Math.hypot(px - x, py - y);
      if (distance < minDistance) [best, minDistance] = [point, distance];
    }
    return best;
  }

  /** @param {number | null} at */
  setCursor(at) {
    this.cursor = at;
    const numbers = this.axes.map((axis, i) => `${axis} ${formatNumber(this.values[2 * (at ?? 0) + i])}`);
    this.frame.announce(at === null ? "" : `“${this.names[at]}”  ${numbers.join(", ")}`);
    this.draw();
  }

  /** @param {number} factor 0: all @param {number[]} [center] */
  zoom(factor, [x, y] = this.store.get("middle")) {
    const zoom = factor ? clamp(this.store.get("zoom") * factor, 1, 64) : 1;
    this.store.set({ zoom, middle: zoom === 1 ? [0.5, 0.5] : [x, y] });
  }

  listen() {
    const { canvas } = this;
    const keep = () => {
      if (this.cursor !== null) this.frame.lock("rows", this.cursor);
    };
    followPointer(
      canvas,
      ({ offsetX, offsetY }) => this.setCursor(this.nearest(offsetX, offsetY)),
      () => this.setCursor(null),
    );
    canvas.onpointerup = keep;
    canvas.onfocus = () => this.setCursor(this.cursor ?? 0);
    canvas.onblur = () => this.setCursor(null);
    followWheel(canvas, (factor, { offsetX, offsetY }) => this.zoom(factor, this.center(offsetX, offsetY)));
    canvas.onkeydown = (event) => {
      /** @type {Record<string, () => void>} */
      const acts = {
        " ": keep,
        "+": () => this.zoom(1.5, this.center(...this.at(this.cursor ?? 0))),
        "-": () => this.zoom(1 / 1.5),
        0: () => this.zoom(0),
        Escape: () => this.store.set({ locked_rows: [] }),
        ...Object.fromEntries(Object.entries(ARROW_STEPS).map(([key, direction]) => [key, () => this.step(direction)])),
      };
      const act = acts[event.key];
      if (!act || hasModifier(event)) return;
      act();
      consume(event);
    };
  }

  /**
   * Return the position of a pixel as a share of the whole plane.
   * @param {number} x
   * @param {number} y
   */
  center(x, y) {
    const { window, plane } = this;
    return [
      window.x + ((x - MARGINS.left) / plane.width) * window.side,
      window.y + ((y - MARGINS.top) / plane.height) * window.side,
    ];
  }

  /** Move to the next point that lies more in that direction than to either side. @param {number[]} direction */
  step([down, right]) {
    const [x, y] = this.at(this.cursor ?? 0);
    let [best, minDistance] = [this.cursor ?? 0, Infinity];
    for (let point = 0; point < this.names.length; point++) {
      const [px, py] = this.at(point);
      const along = right ? (px - x) * right : (py - y) * down;
      const across = Math.abs(right ? py - y : px - x);
      if (along > 0 && across <= along && along + 2 * across < minDistance)
        [best, minDistance] = [point, along + 2 * across];
    }
    this.setCursor(best);
  }

  refresh() {
    [this.width, this.height] = [this.frame.width, clamp(0.62 * this.frame.width, 320, 560)];
    const query = this.find.value.trim().toLowerCase();
    this.matches = this.names.map((name) => Boolean(query) && name.toLowerCase().includes(query));
    const many = this.matches.filter(Boolean).length;
    this.frame.showStage(
      this.stage,
      query ? `${many} of ${this.names.length} found` : `${formatCount(this.names.length, "point")}`,
    );
    this.draw();
    this.frame.updateTable();
  }

  draw() {
    this.paint(new CanvasPen(this.canvas, this.width, this.height));
  }

  /** @param {Pen} pen */
  paint(pen) {
    pen.rect(0, 0, this.width, this.height, { fill: this.frame.theme.page });
    this.drawAxes(pen);
    const [left, top, right, bottom] = this.box;
    const locked = new Set(this.store.get("locked_rows"));
    /** @param {number} point */
    const emphasized = (point) => point === this.cursor || locked.has(point) || this.matches[point];
    /** @param {number} point */
    const first = (point) => 2 * Number(emphasized(point)) + Number(this.marked.has(point));
    const order = this.names.map((_, point) => point).sort((a, b) => first(b) - first(a) || a - b);
    const visible = order
      .map((point) => /** @type {[number, number, number]} */ ([point, ...this.at(point)]))
      .filter(([, x, y]) => x > left && y > top && x < right && y < bottom);
    for (const [point, x, y] of visible) this.drawSpread(pen, point, [x, y]);
    for (const [point, x, y] of visible) this.drawDot(pen, point, [x, y], emphasized(point));
    /** @type {{ boxes: Box[], dots: number[][] }} */
    const taken = { boxes: [], dots: visible.length > MAX_DOTS ? [] : visible };
    for (const dot of visible) this.drawName(pen, dot, taken, dot[0] === this.cursor || locked.has(dot[0]));
    this.drawLegend(pen);
  }

  /** Draw the frame, the numbers and the names of both axes, and a line at each number. @param {Pen} pen */
  drawAxes(pen) {
    const { theme } = this.frame;
    const { x, y, side } = this.window;
    const [left, top, right, bottom] = this.box;
    const size = [right - left, bottom - top];
    const style = { fill: theme.soft, size: 12 };
    [x, 1 - y - side].forEach((start, axis) => {
      for (const [value, text] of this.ticks(axis, [start, start + side], size[axis] / TICK_SPACING[axis])) {
        const [across, down] = this.pixel([this.share(value, axis), this.share(value, axis)]);
        const stroke = { stroke: theme.line, lineWidth: value ? 0.5 : 1 };
        if (axis) pen.line(left, down, right, down, stroke);
        else pen.line(across, top, across, bottom, stroke);
        if (axis) pen.text(left - 6, down, text, { ...style, align: "right" });
        else pen.text(across, bottom + 12, text, { ...style, align: "center" });
      }
    });
    pen.rect(left, top, size[0], size[1], { stroke: theme.line, lineWidth: 1 });
    this.axes.forEach((axis, i) => {
      const [across, down] = i ? [10, (top + bottom) / 2] : [(left + right) / 2, this.height - 9];
      pen.text(across, down, `${axis} →`, { ...style, align: "center", rotated: Boolean(i) });
    });
  }

  /** Draw a line from the lowest to the highest coordinate along each axis. @param {Pen} pen @param {number} point @param {Point} at */
  drawSpread(pen, point, [x, y]) {
    const { spread } = this;
    if (!spread) return;
    const { theme } = this.frame;
    const group = this.groupOf[point] ?? -1;
    const style = { stroke: group < 0 ? theme.soft : inkOf(theme, group), lineWidth: 1.5, alpha: 0.6 };
    const ends = [0, 1].map((end) =>
      this.pixel([0, 1].map((axis) => this.share(spread[2 * (end * this.names.length + point) + axis], axis))),
    );
    pen.line(ends[0][0], y, ends[1][0], y, style);
    pen.line(x, ends[0][1], x, ends[1][1], style);
  }

  /** @param {Pen} pen @param {number} point @param {Point} at @param {boolean} emphasized */
  drawDot(pen, point, [x, y], emphasized) {
    const { theme } = this.frame;
    const group = this.groupOf[point] ?? -1;
    const colour = group < 0 ? theme.soft : inkOf(theme, group);
    let { radius, alpha } = group < 0 ? DOT_STYLES.alone : DOT_STYLES.grouped;
    if (emphasized || this.marked.has(point)) ({ radius, alpha } = DOT_STYLES.strong);
    pen.dot(x, y, radius, { fill: emphasized ? theme.mark : colour, alpha });
  }

  /** Draw the legend of the colours in a line at the top. @param {Pen} pen */
  drawLegend(pen) {
    const { theme } = this.frame;
    let x = MARGINS.left - FRAME_PADDING + 4;
    for (const [group, name] of this.groups) {
      const text = brief(name);
      pen.dot(x, 9, 4, { fill: group < 0 ? theme.soft : inkOf(theme, group) });
      pen.text(x + 8, 9, text, { fill: theme.soft, size: 12 });
      x += textWidth(text, 11) + 26;
    }
  }

  /**
   * Draw a name beside its point if it covers no other name or point; with `always`, in any case.
   * @param {Pen} pen
   * @param {[point: number, x: number, y: number]} dot
   * @param {{ boxes: Box[], dots: number[][] }} taken
   * @param {boolean} always
   */
  drawName(pen, [point, x, y], { boxes, dots }, always) {
    const text = brief(this.names[point]);
    const bold = always || this.marked.has(point);
    const nameWidth = textWidth(text, 11, bold);
    const offset = this.marked.has(point) ? 9 : 7;
    const left = x + offset + nameWidth > this.width - 4 ? x - offset - nameWidth : x + offset;
    const box = [left - 2, y - 8, left + nameWidth + 2, y + 8];
    /** @param {Box} other */
    const overlaps = ([a, b, c, d]) => a < box[2] && box[0] < c && b < box[3] && box[1] < d;
    /** @param {number[]} dot */
    const covers = ([other, a, b]) => other !== point && box[0] - 2 < a && a < box[2] + 2 && box[1] < b && b < box[3];
    if (!always && (boxes.length >= MAX_NAMES || boxes.some(overlaps) || dots.some(covers))) return;
    boxes.push(box);
    if (always) pen.rect(box[0], box[1], box[2] - box[0], 16, { fill: this.frame.theme.page, alpha: 0.85 });
    pen.text(left, y, text, { fill: this.frame.theme.ink, size: 12, bold });
  }
}

/** @param {string} name */
const brief = (name) => truncate(name, 40).join("");
const MAX_NAMES = 60;
const MAX_DOTS = 2000; // names avoid at most so many points
const POINT_SHORTCUTS = [
  ["arrows", "to the next point that way"],
  ["Space", "keep or drop a name"],
  ["+ − 0", "closer, farther, all"],
  ["Escape", "drop all names"],
];

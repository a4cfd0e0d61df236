// Points with names on a plane: the one under the cursor is named below, as many others as have room beside themselves.

import { following, h } from "../base/elements.js";
import { counted, formatted } from "../base/numbers.js";
import { Frame } from "../controls/frame.js";
import { Grid } from "../base/grid.js";
import { drawn } from "./headstage.js";
import { CanvasPen, measure } from "../base/pen.js";
import { STEPS } from "./pointing.js";
import { table } from "../controls/table.js";
import { inkAt } from "../base/theme.js";

const MARGIN = 22;
const REACH = 24; // pixels from a point at which it is meant

export class Points {
  cursor = null;
  width = 0;
  height = 0;

  constructor(host, source, store, options) {
    const { names, axes, data, kinds = [], groups = [], marks = [] } = source.document;
    const values = new Float32Array(source.slice(data).slice().buffer);
    this.store = store;
    this.names = names;
    this.axes = axes;
    this.values = values;
    this.kinds = kinds;
    this.groups = groups;
    this.marks = new Set(marks);
    this.grid = Grid.of(names, axes, values, new Uint8Array(values.length), {
      scale: "diverging",
      limit: source.document.limit,
    });
    this.frame = new Frame(host, source.document, store, {
      ...options,
      keys: POINT_KEYS,
      shown: () => [{ name: "", grid: this.grid }],
      drawing: () => ({ width: this.width, height: this.height, draw: (pen) => this.paint(pen) }),
      tables: () => [table({ name: "", grid: this.grid, axes: ["name", "axis"] })],
      redraw: () => this.refresh(),
    });
    this.canvas = drawn("Points: arrows go to the next point that way, Space keeps its name, plus and minus zoom");
    this.stage = h("div", { class: "stage" }, this.canvas);
    this.listen();
    this.find = h("input", {
      type: "search",
      placeholder: "find",
      "aria-label": "Find a name",
      oninput: () => this.refresh(),
    });
    this.frame.body.append(h("div", { class: "controls" }, this.find));
    this.frame.zoom((factor) => this.zoom(factor));
    this.close = this.frame.open();
  }

  get window() {
    const wide = 1 / this.store.get("zoom");
    const [x, y] = this.store.get("middle");
    const within = (v) => Math.min(1 - wide / 2, Math.max(wide / 2, v));
    return { x: within(x) - wide / 2, y: within(y) - wide / 2, wide };
  }

  // Where a point stands, in pixels; numbers grow to the right and up.
  at(point) {
    const { x, y, wide } = this.window;
    const [across, up] = [0, 1].map((axis) => this.share(point, axis));
    return [
      MARGIN + ((across - x) / wide) * (this.width - 2 * MARGIN),
      MARGIN + ((1 - up - y) / wide) * (this.height - 2 * MARGIN),
    ];
  }

  share(point, axis) {
    const [low, high] = this.frame.document.range[axis];
    return (this.values[2 * point + axis] - low) / (high - low || 1);
  }

  nearest(x, y, most = REACH) {
    let [best, least] = [null, most];
    for (let point = 0; point < this.names.length; point++) {
      const [px, py] = this.at(point);
      const far = Math.hypot(px - x, py - y);
      if (far < least) [best, least] = [point, far];
    }
    return best;
  }

  point(at) {
    this.cursor = at;
    const numbers = this.axes.map((axis, i) => `${axis} ${formatted(this.values[2 * at + i])}`);
    this.frame.announce(at === null ? "" : `“${this.names[at]}”  ${numbers.join(", ")}`);
    this.draw();
  }

  zoom(factor, [x, y] = this.store.get("middle")) {
    const zoom = factor ? Math.min(64, Math.max(1, this.store.get("zoom") * factor)) : 1;
    this.store.set({ zoom, middle: zoom === 1 ? [0.5, 0.5] : [x, y] });
  }

  listen() {
    const { canvas } = this;
    const place = (event) => [event.offsetX, event.offsetY];
    const keep = () => this.cursor !== null && this.frame.lock("rows", this.cursor);
    following(
      canvas,
      (event) => this.point(this.nearest(...place(event))),
      () => this.point(null),
    );
    canvas.onpointerup = keep;
    canvas.onfocus = () => this.point(this.cursor ?? 0);
    canvas.onblur = () => this.point(null);
    canvas.onwheel = (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
      event.preventDefault();
      this.zoom(2 ** (-event.deltaY / 200), this.middle(...place(event)));
    };
    canvas.onkeydown = (event) => {
      const act = {
        " ": keep,
        "+": () => this.zoom(1.5, this.middle(...this.at(this.cursor ?? 0))),
        "-": () => this.zoom(1 / 1.5),
        0: () => this.zoom(0),
        Escape: () => this.store.set({ rows: [] }),
        ...Object.fromEntries(Object.entries(STEPS).map(([key, way]) => [key, () => this.step(way)])),
      }[event.key];
      if (!act || event.metaKey || event.altKey || event.ctrlKey) return;
      act();
      event.preventDefault();
      event.stopPropagation();
    };
  }

  // Where a pixel lies, as a share of the whole.
  middle(x, y) {
    const window = this.window;
    return [
      window.x + ((x - MARGIN) / (this.width - 2 * MARGIN)) * window.wide,
      window.y + ((y - MARGIN) / (this.height - 2 * MARGIN)) * window.wide,
    ];
  }

  // To the next point that lies that way more than to either side.
  /** @param {number[]} way */
  step([down, right]) {
    const [x, y] = this.at(this.cursor ?? 0);
    let [best, least] = [this.cursor ?? 0, Infinity];
    for (let point = 0; point < this.names.length; point++) {
      const [px, py] = this.at(point);
      const along = right ? (px - x) * right : (py - y) * down;
      const aside = Math.abs(right ? py - y : px - x);
      if (along > 0 && aside <= along && along + 2 * aside < least) [best, least] = [point, along + 2 * aside];
    }
    this.point(best);
  }

  refresh() {
    [this.width, this.height] = [this.frame.width, Math.min(560, Math.max(320, 0.62 * this.frame.width))];
    const asked = this.find.value.trim().toLowerCase();
    this.found = this.names.map((name) => Boolean(asked) && name.toLowerCase().includes(asked));
    const many = this.found.filter(Boolean).length;
    this.frame.stage(
      this.stage,
      asked ? `${many} of ${this.names.length} found` : `${counted(this.names.length, "point")}`,
    );
    this.draw();
    this.frame.renewTable();
  }

  draw() {
    this.paint(new CanvasPen(this.canvas, this.width, this.height));
  }

  paint(pen) {
    const { theme } = this.frame;
    pen.rect(0, 0, this.width, this.height, { fill: theme.page });
    const kept = new Set(this.store.get("rows"));
    const loud = (point) => point === this.cursor || kept.has(point) || this.found[point];
    const first = (point) => 2 * Number(loud(point)) + Number(this.marks.has(point));
    const order = this.names.map((_, point) => point).sort((a, b) => first(b) - first(a) || a - b);
    const seen = order
      .map((point) => [point, ...this.at(point)])
      .filter(([, x, y]) => x > 0 && y > 0 && x < this.width && y < this.height);
    const taken = [];
    for (const [point, x, y] of seen) {
      const kind = this.groups[point] ?? -1;
      const own = kind < 0 ? theme.soft : inkAt(theme, kind);
      const strong = loud(point) || this.marks.has(point);
      pen.dot(x, y, strong ? 4.5 : kind < 0 ? 2.5 : 3, {
        fill: loud(point) ? theme.mark : own,
        alpha: strong ? 1 : kind < 0 ? 0.55 : 0.85,
      });
    }
    const free = seen.length > MOST_DOTS ? [] : seen;
    for (const [point, x, y] of seen)
      this.name(pen, point, x, y, [taken, free], point === this.cursor || kept.has(point));
    this.legend(pen);
    this.axes.forEach((axis, i) => {
      const [x, y] = i ? [10, this.height / 2] : [this.width / 2, this.height - 9];
      pen.text(x, y, `${axis} →`, { fill: theme.soft, size: 11, align: "center", up: Boolean(i) });
    });
  }

  // What the colours are, in a line at the top.
  legend(pen) {
    const { theme } = this.frame;
    let x = MARGIN;
    const said = [
      ...this.kinds.map((kind, at) => [kind, inkAt(theme, at)]),
      ...(this.groups.includes(-1) ? [["others", theme.soft]] : []),
    ];
    for (const [kind, fill] of this.kinds.length ? said : []) {
      const text = brief(kind);
      pen.dot(x, 9, 4, { fill });
      pen.text(x + 8, 9, text, { fill: theme.soft, size: 11 });
      x += measure(text, 11) + 26;
    }
  }

  // A name beside its point, where neither name nor point stands yet; always, if it must.
  name(pen, point, x, y, [taken, dots], must) {
    const text = brief(this.names[point]);
    const wide = measure(text, 11);
    const away = this.marks.has(point) ? 9 : 7;
    const left = x + away + wide > this.width - 4 ? x - away - wide : x + away;
    const box = [left - 2, y - 8, left + wide + 2, y + 8];
    const meets = ([a, b, c, d]) => a < box[2] && box[0] < c && b < box[3] && box[1] < d;
    const covers = ([other, a, b]) => other !== point && box[0] - 2 < a && a < box[2] + 2 && box[1] < b && b < box[3];
    if (!must && (taken.length >= MOST_NAMES || taken.some(meets) || dots.some(covers))) return;
    taken.push(box);
    if (must) pen.rect(box[0], box[1], box[2] - box[0], 16, { fill: this.frame.theme.page, alpha: 0.85 });
    pen.text(left, y, text, { fill: this.frame.theme.ink, size: 11, bold: must || this.marks.has(point) });
  }
}

const brief = (name) => ([...name].length > 40 ? `${[...name].slice(0, 39).join("")}…` : name);
const MOST_NAMES = 60;
const MOST_DOTS = 2000; // that names keep clear of
const POINT_KEYS = [
  ["arrows", "to the next point that way"],
  ["Space", "keep or drop a name"],
  ["+ − 0", "closer, farther, all"],
  ["Escape", "drop all names"],
];

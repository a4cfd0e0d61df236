// A control for points in the plane, which are dragged or moved by arrow keys.

import { h } from "../base/elements.js";
import { ARROW_STEPS, consume, followDrag, hasModifier, pointIn } from "../base/events.js";
import { clamp, formatNumber } from "../base/numbers.js";
import { CanvasPen } from "../base/pen.js";
import { Control } from "./control.js";
import { Plane } from "./plane.js";
import { inkOf } from "../base/theme.js";
import { label, quoted } from "../base/visible-text.js";
import { roundUp } from "../base/axis-ticks.js";

/** @import { PointsSpec } from "../documents.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Named } from "./control.js" */

const PLANE_SIDE = 340;
const NARROW_SCREEN = 720; // a narrower page has controls above the results, and a smaller plane
const NARROW_PLANE_SIDE = 270;
const UNUSED_TOP = 10; // no names stand at the top of the plane
const SHIFT_STEPS = 10; // steps of an arrow key with Shift

/** @param {number} value */
const coordinate = (value) => formatNumber(value, 3);

/** A square with a button for each point. @extends {Control<PointsSpec>} */
export class PointsControl extends Control {
  /** @param {Named<PointsSpec>} spec @param {(value: PointsSpec["start"]) => void} set @param {Theme} theme */
  constructor(spec, set, theme) {
    super(spec, set, theme);
    this.step = roundUp(spec.limit / 100, [1, 2, 5]);
    this.plane = new Plane(spec.limit, PLANE_SIDE, -UNUSED_TOP);
    this.zoom = 1;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.value = spec.start;
    this.buttons = spec.names.map((_, i) => this.button(i));
    const described = { class: "plane", role: "group", "aria-label": `${this.name}: points to move with arrow keys` };
    this.field = h("div", described, this.canvas, ...this.buttons);
    this.element = h("div", { class: "control" }, h("span", {}, this.name), this.field);
  }

  /** @param {number} i */
  button(i) {
    /** @type {HTMLButtonElement} */
    const button = h("button", { type: "button", class: "point" });
    /** @param {PointerEvent} event */
    const pointAt = (event) => pointIn(this.field, event).map((at) => at / this.zoom);
    followDrag(button, (pressed) => {
      const from = pointAt(pressed);
      const [left, top] = this.plane.at(this.value[i]).map((at, axis) => at - from[axis]); // from the pointer to the point
      return (event) => {
        const [x, y] = pointAt(event);
        this.move(i, this.plane.from(x + left, y + top));
      };
    });
    button.onkeydown = (event) => {
      const [down, right] = ARROW_STEPS[event.key] ?? [];
      if (down === undefined || hasModifier(event)) return;
      const by = this.step * (event.shiftKey ? SHIFT_STEPS : 1);
      const [x, y] = this.value[i];
      const { limit } = this.spec;
      this.move(i, [clamp(x + right * by, -limit, limit), clamp(y - down * by, -limit, limit)]);
      consume(event);
    };
    return button;
  }

  /**
   * Move a point to the nearest point of a fine grid, so that numbers stay short.
   * @param {number} i
   * @param {number[]} point
   */
  move(i, point) {
    /** @param {number} at */
    const net = (at) => Number((Math.round(at / this.step) * this.step).toPrecision(8));
    this.set(this.value.map((other, j) => (j === i ? point.map(net) : other)));
  }

  /** @param {number} screen @param {number} zoom */
  fit(screen, zoom) {
    const side = screen < NARROW_SCREEN ? NARROW_PLANE_SIDE : PLANE_SIDE;
    if (side === this.plane.size && zoom === this.zoom) return;
    this.zoom = zoom;
    this.plane = new Plane(this.spec.limit, side, -UNUSED_TOP);
    this.show(this.value);
  }

  /** @param {PointsSpec["start"]} value */
  show(value) {
    this.value = value;
    this.buttons.forEach((button, i) => {
      const [x, y] = this.plane.at(value[i]).map((at) => at * this.zoom);
      Object.assign(button.style, { left: `${x}px`, top: `${y}px` });
      button.setAttribute("aria-label", `${label(this.spec.names[i], 60)} at ${spot(value[i])}`);
    });
    const pen = new CanvasPen(this.canvas, this.plane.size, this.plane.size - UNUSED_TOP, this.zoom);
    this.plane.lines(pen, this.theme);
    value.forEach((point, i) => {
      const [x, y] = this.plane.at(point);
      pen.dot(x, y, 6, { fill: inkOf(this.theme, i) });
    });
    this.plane.names(pen, this.theme, this.spec.names, value);
  }

  /** @param {PointsSpec["start"]} value */
  input(value) {
    return { shape: [value.length, 2], data: value.flat() };
  }

  words() {
    return this.spec.names;
  }

  /** @param {PointsSpec["start"]} value */
  describe(value) {
    return value.map((point, i) => `${label(this.spec.names[i])} ${spot(point)}`).join(", ");
  }

  /** @param {PointsSpec["start"]} before @param {PointsSpec["start"]} after */
  describeChange(before, after) {
    const moved = after.findIndex((point, i) => String(point) !== String(before[i]));
    return moved < 0 ? "" : `${quoted(this.spec.names[moved], 30)} is at ${spot(after[moved])}`;
  }
}

/** @param {number[]} point */
const spot = ([x, y]) => `(${coordinate(x)}, ${coordinate(y)})`;

// A control for an angle: a dial that is turned by pointer or arrow keys.

import { h } from "../base/elements.js";
import { consume, followDrag, hasModifier } from "../base/events.js";
import { formatNumber } from "../base/numbers.js";
import { CanvasPen } from "../base/pen.js";
import { Control } from "./control.js";

/** @import { AngleSpec } from "../documents.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Named } from "./control.js" */

const DIAL_SIDE = 108;
const RADIANS_PER_DEGREE = Math.PI / 180;
/** @type {Record<string, number>} degrees */
const KEY_DEGREES = { ArrowUp: 5, ArrowRight: 5, ArrowDown: -5, ArrowLeft: -5, PageUp: 45, PageDown: -45 };

/** A dial for one angle. @extends {Control<AngleSpec>} */
export class AngleControl extends Control {
  /** @param {Named<AngleSpec>} spec @param {(value: AngleSpec["start"]) => void} set @param {Theme} theme */
  constructor(spec, set, theme) {
    super(spec, set, theme);
    this.value = spec.start;
    /** @type {HTMLCanvasElement} */
    this.canvas = h("canvas", { class: "dial", tabIndex: 0, role: "slider", "aria-label": this.name });
    this.canvas.setAttribute("aria-valuemin", "-180");
    this.canvas.setAttribute("aria-valuemax", "180");
    this.output = h("output");
    this.element = h("div", { class: "control" }, h("span", {}, this.name), this.canvas, this.output);
    /** @param {PointerEvent} event */
    const turn = (event) => {
      const { left, top } = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - left - DIAL_SIDE / 2, DIAL_SIDE / 2 - (event.clientY - top)];
      if (x || y) this.turn(Math.round(Math.atan2(y, x) / RADIANS_PER_DEGREE) * RADIANS_PER_DEGREE);
    };
    followDrag(this.canvas, (event) => {
      turn(event);
      return turn;
    });
    this.canvas.onkeydown = (event) => {
      const degrees = event.key === "Home" ? -Math.round(this.value / RADIANS_PER_DEGREE) : KEY_DEGREES[event.key];
      if (degrees === undefined || hasModifier(event)) return;
      this.turn(this.value + (event.shiftKey ? Math.sign(degrees) : degrees) * RADIANS_PER_DEGREE);
      consume(event);
    };
  }

  /** Turn to an angle; it stays between minus half a turn and half a turn. @param {number} angle */
  turn(angle) {
    const round = 2 * Math.PI;
    this.set(Number((angle - round * Math.round(angle / round)).toPrecision(12)));
  }

  /** @param {AngleSpec["start"]} value */
  show(value) {
    this.value = value;
    const pen = new CanvasPen(this.canvas, DIAL_SIDE, DIAL_SIDE);
    const [middle, radius] = [DIAL_SIDE / 2, DIAL_SIDE / 2 - 6];
    pen.dot(middle, middle, radius, { fill: this.theme.line });
    pen.dot(middle, middle, radius - 1.5, { fill: this.theme.page });
    for (let tick = 0; tick < 12; tick++) {
      const [x, y] = [Math.cos((tick * Math.PI) / 6), Math.sin((tick * Math.PI) / 6)];
      const from = radius - (tick % 3 ? 4 : 7);
      pen.line(middle + x * from, middle + y * from, middle + x * radius, middle + y * radius, {
        stroke: this.theme.soft,
      });
    }
    const [x, y] = [middle + radius * Math.cos(value), middle - radius * Math.sin(value)];
    pen.line(middle, middle, x, y, { stroke: this.theme.focus, lineWidth: 2 });
    pen.dot(x, y, 5, { fill: this.theme.focus });
    this.output.value = `${this.describe(value)}, ${formatNumber(value)} rad`;
    this.canvas.setAttribute("aria-valuenow", String(Math.round(value / RADIANS_PER_DEGREE)));
    this.canvas.setAttribute("aria-valuetext", this.output.value);
  }

  /** @param {AngleSpec["start"]} value */
  input(value) {
    return { shape: [], data: [value] };
  }

  /** @param {AngleSpec["start"]} value */
  describe(value) {
    return `${String(Math.round(value / RADIANS_PER_DEGREE)).replace("-", "−")}°`;
  }
}

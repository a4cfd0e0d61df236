// The legend of a scale below the pictures, once for all that share it: what its ends and hatched cells mean. The rules are
// those of `tfviz/view/figures/legends.py`.

import { codeOf, SCALES } from "../base/grid.js";
import { h } from "../base/elements.js";
import { formatNumber } from "../base/numbers.js";
import { CanvasPen, textWidth } from "../base/pen.js";
import { cssColour } from "../base/theme.js";
import { drawRamp } from "../views/legend.js";
import { isBinary } from "./scales.js";

/** @import { PanelContent } from "./panel.js" */
/** @import { Pen } from "../types.js" */
/** @import { Theme } from "../base/theme.js" */
/**
 * @typedef {object} ScaleLegend
 * @property {string} scale
 * @property {number} limit
 * @property {[value: number, text: string][]} ends
 * @property {boolean} even whether the scale is a ramp, not two values
 * @property {string} hatched
 */

const LAYOUT = { height: 22, swatch: 16, ramp: 140, gap: 8, apart: 28 }; // pixels
const FONT_SIZE = 13;

/** Return the legends that some results need. @param {(PanelContent & { kind?: string })[]} contents @returns {ScaleLegend[]} */
export function scaleLegends(contents) {
  /** @type {Map<string, PanelContent[]>} */
  const groups = new Map();
  for (const content of contents.filter((one) => one.kind !== "bars" && (one.ends || one.hatched))) {
    const { scale, limit, ends, hatched } = content;
    const group = JSON.stringify([scale, limit, ends, hatched]);
    groups.set(group, [...(groups.get(group) ?? []), content]);
  }
  return [...groups.values()].map(legendOf);
}

/** @param {PanelContent[]} contents @returns {ScaleLegend} */
function legendOf(contents) {
  const [{ scale, limit, ends, hatched = "" }] = contents;
  const values = contents.flatMap(({ tensor }) => Array.from(tensor.data));
  const hatchedName = values.includes(-Infinity) ? hatched : "";
  if (ends && isBinary(values)) {
    const texts = ends.map((text, i) => /** @type {[number, string]} */ ([i, text]));
    return { scale, limit, even: false, ends: texts.filter(([, text]) => text), hatched: hatchedName };
  }
  const low = SCALES[scale].diverging ? -limit : 0;
  const texts = [low, limit].map(
    (value, i) =>
      /** @type {[number, string]} */ ([value, ends?.[i] ? `${formatNumber(value)}: ${ends[i]}` : formatNumber(value)]),
  );
  return { scale, limit, even: true, ends: texts, hatched: hatchedName };
}

/** A drawing of a legend. */
export class LegendPanel {
  zoom = 1;
  width = 0;
  height = LAYOUT.height;
  title = "";
  /** @type {ScaleLegend} */
  legend = { scale: "linear", limit: 1, even: false, ends: [], hatched: "" };

  /** @param {Theme} theme */
  constructor(theme) {
    this.theme = theme;
    this.canvas = h("canvas", { role: "img" });
    this.element = h("figure", { class: "result key" }, this.canvas);
  }

  /** @param {ScaleLegend} legend */
  show(legend) {
    this.legend = legend;
    const texts = [...legend.ends.map(([, text]) => text), legend.hatched].filter(Boolean);
    this.canvas.setAttribute("aria-label", `Scale: ${texts.join("; ")}`);
    this.width = Math.ceil(this.paint(null));
    this.paint(new CanvasPen(this.canvas, this.width, this.height, this.zoom));
  }

  /** Draw the legend with a pen, or only measure it; return its width. @param {Pen | null} pen */
  paint(pen) {
    const { legend } = this;
    let x = 1;
    if (legend.even) {
      const [[, low], [, high]] = legend.ends;
      x = this.write(pen, x, low);
      if (pen) drawRamp(pen, this.lut, [x, 4, LAYOUT.ramp, 14], this.theme.soft);
      x = this.write(pen, x + LAYOUT.ramp + LAYOUT.gap, high) + LAYOUT.apart;
    } else
      for (const [value, text] of legend.ends) {
        if (pen) this.swatch(pen, x, cssColour(this.lut[codeOf(value, legend.scale, legend.limit)]));
        x = this.write(pen, x + LAYOUT.swatch + LAYOUT.gap, text) + LAYOUT.apart;
      }
    if (!legend.hatched) return x;
    if (pen) this.hatch(pen, x);
    return this.write(pen, x + LAYOUT.swatch + LAYOUT.gap, legend.hatched);
  }

  /** @param {Pen | null} pen @param {number} x @param {string} text */
  write(pen, x, text) {
    pen?.text(x, this.height / 2, text, { fill: this.theme.ink, size: FONT_SIZE });
    return x + textWidth(text, FONT_SIZE) + LAYOUT.gap;
  }

  get lut() {
    return this.theme.lut(SCALES[this.legend.scale]);
  }

  /** @param {Pen} pen @param {number} x @param {string} fill */
  swatch(pen, x, fill) {
    pen.rect(x, 3, LAYOUT.swatch, LAYOUT.swatch, { fill });
    pen.rect(x, 3, LAYOUT.swatch, LAYOUT.swatch, { stroke: this.theme.soft });
  }

  /** @param {Pen} pen @param {number} x */
  hatch(pen, x) {
    this.swatch(pen, x, this.theme.page);
    const style = { stroke: cssColour(this.theme.hatched) };
    for (const far of [5, 10, 15]) pen.line(x, 3 + far, x + far, 3, style);
    for (const far of [4, 9]) pen.line(x + far, 19, x + 16, 3 + far, style);
  }
}

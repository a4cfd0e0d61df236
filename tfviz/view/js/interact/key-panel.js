// The key of a scale below the pictures, once for all that share it: what its ends and hatched cells mean. The rules are
// those of `tfviz/view/figures/legends.py`.

import { codeOf, SCALES } from "../base/grid.js";
import { h } from "../base/elements.js";
import { formatNumber } from "../base/numbers.js";
import { CanvasPen, textWidth } from "../base/pen.js";
import { cssColour } from "../base/theme.js";
import { isBinary } from "./scales.js";

/** @import { PanelContent } from "./panel.js" */
/** @import { Pen } from "../types.js" */
/** @import { Theme } from "../base/theme.js" */
/**
 * @typedef {object} ScaleKey
 * @property {string} scale
 * @property {number} limit
 * @property {[value: number, text: string][]} ends
 * @property {boolean} even whether the scale is a ramp, not two values
 * @property {string} hatched
 */

const LAYOUT = { height: 22, swatch: 16, ramp: 140, gap: 8, apart: 28 }; // pixels
const FONT_SIZE = 13;
const RAMP_STEPS = 64;

/** Return the keys that some results need. @param {(PanelContent & { kind?: string })[]} contents @returns {ScaleKey[]} */
export function scaleKeys(contents) {
  /** @type {Map<string, PanelContent[]>} */
  const groups = new Map();
  for (const content of contents.filter((one) => one.kind !== "bars" && (one.ends || one.hatched))) {
    const { scale, limit, ends, hatched } = content;
    const group = JSON.stringify([scale, limit, ends, hatched]);
    groups.set(group, [...(groups.get(group) ?? []), content]);
  }
  return [...groups.values()].map(keyOf);
}

/** @param {PanelContent[]} contents @returns {ScaleKey} */
function keyOf(contents) {
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

/** A drawing of a key. */
export class KeyPanel {
  zoom = 1;
  width = 0;
  height = LAYOUT.height;
  title = "";
  /** @type {ScaleKey} */
  key = { scale: "linear", limit: 1, even: false, ends: [], hatched: "" };

  /** @param {Theme} theme */
  constructor(theme) {
    this.theme = theme;
    this.canvas = h("canvas", { role: "img" });
    this.element = h("figure", { class: "result key" }, this.canvas);
  }

  /** @param {ScaleKey} key */
  show(key) {
    this.key = key;
    const texts = [...key.ends.map(([, text]) => text), key.hatched].filter(Boolean);
    this.canvas.setAttribute("aria-label", `Scale: ${texts.join("; ")}`);
    this.width = Math.ceil(this.paint(null));
    this.paint(new CanvasPen(this.canvas, this.width, this.height, this.zoom));
  }

  /** Draw the key with a pen, or only measure it; return its width. @param {Pen | null} pen */
  paint(pen) {
    const { key } = this;
    let x = 1;
    if (key.even) {
      const [[, low], [, high]] = key.ends;
      x = this.write(pen, x, low);
      if (pen) this.ramp(pen, x);
      x = this.write(pen, x + LAYOUT.ramp + LAYOUT.gap, high) + LAYOUT.apart;
    } else
      for (const [value, text] of key.ends) {
        if (pen) this.swatch(pen, x, this.colour(codeOf(value, key.scale, key.limit)));
        x = this.write(pen, x + LAYOUT.swatch + LAYOUT.gap, text) + LAYOUT.apart;
      }
    if (!key.hatched) return x;
    if (pen) this.hatch(pen, x);
    return this.write(pen, x + LAYOUT.swatch + LAYOUT.gap, key.hatched);
  }

  /** @param {Pen | null} pen @param {number} x @param {string} text */
  write(pen, x, text) {
    pen?.text(x, this.height / 2, text, { fill: this.theme.ink, size: FONT_SIZE });
    return x + textWidth(text, FONT_SIZE) + LAYOUT.gap;
  }

  /** @param {number} code */
  colour(code) {
    const lut = SCALES[this.key.scale].diverging ? this.theme.diverging : this.theme.sequential;
    return cssColour(lut[code]);
  }

  /** @param {Pen} pen @param {number} x */
  ramp(pen, x) {
    const step = LAYOUT.ramp / RAMP_STEPS;
    for (let i = 0; i < RAMP_STEPS; i++)
      pen.rect(x + i * step, 4, step + 0.5, 14, { fill: this.colour(Math.round(((i + 0.5) / RAMP_STEPS) * 255)) });
    pen.rect(x, 4, LAYOUT.ramp, 14, { stroke: this.theme.soft, lineWidth: 0.5 });
  }

  /** @param {Pen} pen @param {number} x @param {string} fill */
  swatch(pen, x, fill) {
    pen.rect(x, 3, LAYOUT.swatch, LAYOUT.swatch, { fill });
    pen.rect(x, 3, LAYOUT.swatch, LAYOUT.swatch, { stroke: this.theme.soft });
  }

  /** @param {Pen} pen @param {number} x */
  hatch(pen, x) {
    this.swatch(pen, x, this.theme.page);
    const look = { stroke: cssColour(this.theme.hatched) };
    for (const far of [5, 10, 15]) pen.line(x, 3 + far, x + far, 3, look);
    for (const far of [4, 9]) pen.line(x + far, 19, x + 16, 3 + far, look);
  }
}

// A function that draws the colour scale of a grid with numbers.

import { SCALES } from "../base/grid.js";
import { formatted } from "../base/numbers.js";
import { cssColour } from "../base/theme.js";

/** @import { Pen } from "../types.d.ts" */

/**
 * Draw a vertical colour scale with its ticks.
 * @param {Pen} pen
 * @param {import("../base/theme.js").Theme} theme
 * @param {{ scale: string, limit?: number }} grid
 * @param {number} x
 * @param {number} y
 * @param {number} height
 * @param {number | null} [even] the even weight, marked on a scale from 0
 */
export function legend(pen, theme, { scale, limit = 1 }, x, y, height, even = null) {
  const { place, ticks, signed } = SCALES[scale];
  const lut = signed ? theme.signed : theme.weight;
  const steps = 64;
  const low = signed ? -1 : 0;
  /** @param {number} value */
  const at = (value) => y + height * (1 - (place(value) - low) / (1 - low));
  for (let i = 0; i < steps; i++)
    pen.rect(x, y + height * (1 - (i + 1) / steps), 10, height / steps + 0.5, {
      fill: cssColour(lut[Math.round(((i + 0.5) / steps) * 255)]),
    });
  pen.rect(x, y, 10, height, { stroke: theme.line, thick: 0.5 });
  const levels = even === null || signed ? [] : [at(even / limit)];
  for (const level of levels) {
    pen.rect(x - 2, level, 14, 1, { fill: theme.soft });
    pen.text(x + 15, level, `${formatted(even ?? 0)} even`, { fill: theme.soft, size: 10 });
  }
  const taken = [...levels]; // a tick must not touch other labels
  for (const tick of ticks) {
    if (taken.some((other) => Math.abs(other - at(tick)) < 12)) continue;
    taken.push(at(tick));
    pen.text(x + 15, at(tick), formatted(tick * limit), { fill: theme.soft, size: 10 });
  }
}

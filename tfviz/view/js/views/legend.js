// A function that draws the colour scale of a grid with numbers.

import { codeOf, FORBIDDEN, Grid, ALLOWED, SCALES, scaleTicks } from "../base/grid.js";
import { formatNumber } from "../base/numbers.js";
import { cssColour } from "../base/theme.js";

/** @import { Pen } from "../types.js" */

const RAMP_STEPS = 64;

/**
 * Return the values of a grid if they are two at most, the larger first; such a grid needs no scale, but a sign for each.
 * @param {import("../types.js").AnyGrid} grid
 * @returns {number[] | null}
 */
export function twoValues(grid) {
  if (!(grid instanceof Grid) || !grid.values) return null;
  const { values, state } = grid;
  /** @type {Set<number>} */
  const distinct = new Set();
  for (let i = 0; i < values.length; i++) {
    if (state[i] === ALLOWED) distinct.add(values[i]);
    if (distinct.size > 2) return null;
  }
  return [...distinct].sort((a, b) => b - a);
}

/**
 * Draw a swatch for each of two values, and for what a mask forbids.
 * @param {Pen} pen
 * @param {import("../base/theme.js").Theme} theme
 * @param {import("../types.js").AnyGrid} grid
 * @param {number[]} values
 * @param {number} x
 * @param {number} y
 */
export function swatches(pen, theme, grid, values, x, y) {
  const lut = theme.lut(grid);
  const swatch = (/** @type {number} */ i, /** @type {string} */ fill, /** @type {string} */ name) => {
    pen.rect(x, y + 22 * i, 14, 14, { fill });
    pen.rect(x, y + 22 * i, 14, 14, { stroke: theme.line, lineWidth: 0.5 });
    pen.text(x + 20, y + 22 * i + 7, name, { fill: theme.soft, size: 12 });
  };
  values.forEach((value, i) =>
    swatch(i, cssColour(lut[codeOf(value, grid.scale, grid.limit ?? 1)]), formatNumber(value)),
  );
  if (!(grid instanceof Grid) || !grid.state.includes(FORBIDDEN)) return;
  const top = y + 22 * values.length;
  swatch(values.length, theme.page, "not");
  const style = { stroke: cssColour(theme.hatched) };
  for (const far of [5, 10]) pen.line(x, top + far, x + far, top, style);
  for (const far of [1, 6]) pen.line(x + far, top + 14, x + 14, top + far, style);
}

/**
 * Draw the colours of a scale with an outline: from below in an upright box, else from the left.
 * @param {Pen} pen
 * @param {Uint32Array} lut
 * @param {import("../types.js").Box} box
 * @param {string} stroke
 */
export function drawRamp(pen, lut, [x, y, width, height], stroke) {
  for (let i = 0; i < RAMP_STEPS; i++) {
    const fill = cssColour(lut[Math.round(((i + 0.5) / RAMP_STEPS) * 255)]);
    if (height > width)
      pen.rect(x, y + height * (1 - (i + 1) / RAMP_STEPS), width, height / RAMP_STEPS + 0.5, { fill });
    else pen.rect(x + (width * i) / RAMP_STEPS, y, width / RAMP_STEPS + 0.5, height, { fill });
  }
  pen.rect(x, y, width, height, { stroke, lineWidth: 0.5 });
}

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
  const { toFraction, diverging } = SCALES[scale];
  const low = diverging ? -1 : 0;
  /** @param {number} value */
  const at = (value) => y + height * (1 - (toFraction(value / limit) - low) / (1 - low));
  drawRamp(pen, theme.lut({ diverging }), [x, y, 10, height], theme.line);
  const levels = even === null || diverging ? [] : [at(even)];
  for (const level of levels) {
    pen.rect(x - 2, level, 14, 1, { fill: theme.soft });
    pen.text(x + 15, level, `${formatNumber(even ?? 0)} even`, { fill: theme.soft, size: 10 });
  }
  const taken = [...levels]; // a tick must not touch other labels
  for (const tick of scaleTicks(scale, limit)) {
    if (taken.some((other) => Math.abs(other - at(tick)) < 12)) continue;
    taken.push(at(tick));
    pen.text(x + 15, at(tick), formatNumber(tick), { fill: theme.soft, size: 10 });
  }
}

export const SCALE_HEIGHT = 56; // pixels of a horizontal scale, with its name above and its ticks below

/**
 * Draw a horizontal square-root scale from 0, with its name above and its ticks below.
 * @param {Pen} pen
 * @param {import("../base/theme.js").Theme} theme
 * @param {{ limit: number, unit: string }} scale
 * @param {[number, number]} corner
 * @param {number} width
 */
export function horizontalLegend(pen, theme, { limit, unit }, [x, y], width) {
  const { toFraction } = SCALES.sqrt;
  pen.text(x, y + 6, `${unit}, square-root scale`, { fill: theme.soft, size: 12 });
  drawRamp(pen, theme.sequential, [x, y + 18, width, 10], theme.line);
  for (const tick of scaleTicks("sqrt", limit)) {
    const align = tick === 0 ? "left" : "center";
    pen.text(x + width * toFraction(tick / limit), y + 38, formatNumber(tick), { fill: theme.soft, size: 12, align });
  }
}

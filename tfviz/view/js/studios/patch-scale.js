// A function that makes the elements of the colour scale of patches: the numbers at both ends, and the value of even
// weights.

import { SCALES } from "../base/grid.js";
import { h } from "../base/elements.js";
import { fixed, percent } from "../base/numbers.js";
import { cssColour } from "../base/theme.js";

/** @import { Grid } from "../base/grid.js" */
/** @import { Theme } from "../base/theme.js" */

/**
 * Make the elements of a colour scale.
 * @param {Theme} theme
 * @param {Grid} grid
 * @param {number} tokens keys of a query
 * @param {string} label the label whose log-odds change
 */
export function scaleParts(theme, grid, tokens, label) {
  const lut = theme.lut(grid);
  const stops = [0, 64, 128, 192, 255].map((code) => cssColour(lut[code])).join(", ");
  const gradient = h("span", { class: "gradient", style: `background: linear-gradient(to right, ${stops})` });
  const number = (/** @type {string} */ text) => h("output", {}, text);
  const ends = (/** @type {string} */ low, /** @type {string} */ high) => [number(low), gradient, number(high)];
  if (grid.signed) {
    const limit = h("span", { class: "unit" }, `full colour: ${fixed(grid.limit, 1)} of log-odds`);
    return [...ends(`Patches speak against ${label}`, `for ${label}`), limit];
  }
  const even = 1 / tokens;
  gradient.append(h("i", { style: `left: ${100 * SCALES[grid.scale].place(even / grid.limit)}%` }));
  return ["attention", ...ends("0 %", percent(grid.limit)), `dashed: an even share, ${percent(even)}`];
}

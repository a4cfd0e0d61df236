// A function that makes the elements that say what the colours of patches are.

import { h } from "../base/elements.js";
import { fixed } from "../base/numbers.js";
import { cssColour } from "../base/theme.js";

/** @import { Grid } from "../base/grid.js" */
/** @import { Theme } from "../base/theme.js" */

/**
 * Make the elements of a colour scale.
 * @param {Theme} theme
 * @param {Grid} grid
 * @param {string} label the label whose log-odds change
 */
export function scaleParts(theme, grid, label) {
  const lut = theme.lut(grid);
  const stops = [0, 64, 128, 192, 255].map((code) => cssColour(lut[code])).join(", ");
  const gradient = h("span", { class: "gradient", style: `background: linear-gradient(to right, ${stops})` });
  const number = (/** @type {string} */ text) => h("output", {}, text);
  const ends = (/** @type {string} */ low, /** @type {string} */ high) => [number(low), gradient, number(high)];
  if (grid.signed) {
    const title = `full colour: ${fixed(grid.limit, 1)} of log-odds`;
    return [h("span", { title }, `Each patch makes ${label}`), ...ends("less likely", "more likely")];
  }
  return ["The darker a patch, the more the chosen head looks at it."]; // its colours are those of the small maps
}

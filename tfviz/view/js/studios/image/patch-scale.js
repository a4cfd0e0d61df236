// A function that makes the elements that say what the colours of patches are.

import { h } from "../../base/elements.js";
import { formatFixed } from "../../base/numbers.js";
import { gradient } from "../small-elements.js";

/** @import { Grid } from "../../base/grid.js" */
/** @import { Theme } from "../../base/theme.js" */

/**
 * Make the elements of a colour scale.
 * @param {Theme} theme
 * @param {Grid} grid
 * @param {string} label the label whose log-odds change
 */
export function scaleParts(theme, grid, label) {
  if (grid.diverging) {
    const title = `full colour: ${formatFixed(grid.limit, 1)} of log-odds`;
    const [low, high] = ["less likely", "more likely"].map((text) => h("output", {}, text));
    return [h("span", { title }, `Each patch makes ${label}`), low, gradient(theme.lut(grid)), high];
  }
  return ["The clearer a patch, the more the chosen head looks at it."]; // how much is said by the small maps
}

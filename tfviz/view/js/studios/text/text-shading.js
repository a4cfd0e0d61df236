// A function that returns the colours of a piece of a text shaded by a row of a map.

/** @import { Grid } from "../../base/grid.js" */
/** @import { Theme } from "../../base/theme.js" */

const MIN_CODE = 8; // of the 256 codes of a map: what is below has no colour in a text

/**
 * Return the colours of a piece of text and the code of its weight, the largest of its tokens, `first` to `last`, in a row of a map.
 * @param {Theme} theme
 * @param {Grid} grid
 * @param {number} row
 * @param {number} first
 * @param {number} last
 */
export function shadeOf(theme, grid, row, first, last) {
  let code = 0;
  for (let key = first; key <= last; key++) code = Math.max(code, grid.codes[row * grid.cols.length + key]);
  if (code < MIN_CODE) return null;
  return { ...theme.shadeOfText(grid, code), code };
}

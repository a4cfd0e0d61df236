// Functions that write tokens as parts of a running text, and shade them.

import { label } from "../../base/visible-text.js";

/** @import { Grid } from "../../base/grid.js" */
/** @import { Theme } from "../../base/theme.js" */
/** @import { Tokenizer } from "../../types.js" */

const MIN_CODE = 8; // of the 256 codes of a map: what is below has no colour in a text
/** @type {Record<string, string>} */
const UNIT_NAMES = { characters: "letter", bytes: "byte" };

/** Return the word for one token of a kind of tokenizer. @param {string} [kind] of the tokenizer */
export const tokenName = (kind = "") => UNIT_NAMES[kind] ?? "token";

/** Tell whether tokens stand apart in a running text, since they carry no spaces of their own. @param {Tokenizer} tokenizer */
export const spaceSeparated = (tokenizer) => ["spaces", "pieces"].includes(tokenizer.joiner?.kind ?? "");

/**
 * Return the text of one token for a running text: unchanged if it is visible, else as signs.
 * @param {Tokenizer} tokenizer
 * @param {number} id
 */
export function pieceText(tokenizer, id) {
  const text = tokenizer.decode([id]);
  return text && !/[\uFFFD\p{C}]/u.test(text.replace(/\n/g, "")) ? text : label(tokenizer.tokens([id])[0], 40);
}

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
  for (let key = first; key <= last; key++) code = Math.max(code, grid.codes[row * grid.columns.length + key]);
  if (code < MIN_CODE) return null;
  return { ...theme.shadeOfText(grid, code), code };
}

// Functions that write tokens as parts of a running text.

import { label } from "../../base/visible-text.js";

/** @import { Tokenizer } from "../../types.js" */

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

// Functions that write tokens as parts of a running text.

import { label } from "../base/visible-text.js";

/** @import { Vocabulary } from "../types.d.ts" */

/** @type {Record<string, string>} */
const UNIT_NAMES = { characters: "letter", bytes: "byte" };

/** Return the word for one token of a kind of vocabulary. @param {string} [kind] of the vocabulary */
export const tokenName = (kind = "") => UNIT_NAMES[kind] ?? "token";

/** Tell whether tokens stand apart in a running text, since they carry no spaces of their own. @param {Vocabulary} vocab */
export const spaceSeparated = (vocab) => ["spaces", "pieces"].includes(vocab.joiner?.kind ?? "");

/**
 * Return the text of one token for a running text: unchanged if it is visible, else as signs.
 * @param {Vocabulary} vocab
 * @param {number} id
 */
export function pieceText(vocab, id) {
  const text = vocab.decode([id]);
  return text && !/[\uFFFD\p{C}]/u.test(text.replace(/\n/g, "")) ? text : label(vocab.words([id])[0], 40);
}

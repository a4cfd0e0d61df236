// A prompt as a model reads it: its token ids, truncated to the model's context, or the reason why it cannot be read.

import { EncodedText } from "./encoded-text.js";

/** @import { Tokenizer } from "../../types.js" */
/**
 * @typedef {{ text: string, ids: number[] | null, cut?: boolean, error?: string }} Prompted ids, or why there are none
 */

const MAX_LETTERS = 50_000; // only the end of a longer prompt is read

/** A cache of the encoding of the last prompt. @extends {EncodedText<Prompted>} */
export class Prompt extends EncodedText {
  /** @param {Tokenizer} tokenizer @param {number} context */
  constructor(tokenizer, context) {
    super(tokenizer);
    this.context = context;
  }

  /** @param {string} text */
  textsToEncode(text) {
    return [lastLetters(text)];
  }

  /** @param {string} text @returns {Prompted} */
  encode(text) {
    try {
      const ids = this.tokenizer.encode(lastLetters(text));
      if (!ids.length) return { text, ids: null, error: "type a text: the model goes on from it" };
      return { text, ids: ids.slice(-this.context), cut: text.length > MAX_LETTERS || ids.length > this.context };
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      return { text, ids: null, error: `${message}: what the model says is of the last text that could be read` };
    }
  }
}

/** Return the last `MAX_LETTERS` of a text, without half of a surrogate pair. @param {string} text */
function lastLetters(text) {
  return text.length > MAX_LETTERS ? text.slice(-MAX_LETTERS).replace(/^[\udc00-\udfff]/, "") : text;
}

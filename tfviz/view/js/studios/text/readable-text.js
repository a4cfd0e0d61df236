// A typed text as a model reads it: its words, or those of the last readable text, and what is wrong with it.

import { EncodedText } from "./encoded-text.js";
import { segmentsOf, segmentsWithin, textsOf } from "./word-segments.js";

/** @import { Tokenizer } from "../../types.js" */
/** @import { Segment } from "./word-segments.js" */
/** @typedef {{ text: string, segments: Segment[] | null, problem: string, note?: string }} ReadText */

const MAX_LETTERS = 10000; // only the beginning of a longer text is read

/** A cache of the words and ids of the last text. @extends {EncodedText<ReadText>} */
export class ReadableText extends EncodedText {
  /** @param {Tokenizer} tokenizer @param {number} maxTokens */
  constructor(tokenizer, maxTokens) {
    super(tokenizer);
    this.maxTokens = maxTokens;
  }

  /** @param {string} text */
  textsToEncode(text) {
    return textsOf(text.slice(0, MAX_LETTERS));
  }

  /** @param {string} text @returns {ReadText} */
  encode(text) {
    const segments = this.latest?.segments ?? null;
    try {
      const all = segmentsOf(this.tokenizer, text.slice(0, MAX_LETTERS));
      const read = segmentsWithin(all, this.maxTokens);
      const { length } = read;
      const problem = all.length ? "its first word is longer than the model reads" : "type a text";
      if (!length) return { text, segments, problem };
      const longer = length < all.length || text.length > MAX_LETTERS;
      const words = length > 1 ? `${length} words are` : "word is";
      const note = longer ? `the text is longer than the model reads: its first ${words} shown` : undefined;
      return { text, segments: read, problem: "", note };
    } catch (error) {
      const problem = /** @type {Error} */ (error).message;
      const others = segments ? ": the words below are the last that could be read" : "";
      return { text, segments, problem: `${problem}${others}` };
    }
  }
}

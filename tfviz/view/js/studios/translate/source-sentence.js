// A source sentence as the encoder reads it.

import { quoted } from "../../base/visible-text.js";
import { EncodedText } from "../text/encoded-text.js";

/** @import { TranslateDocument } from "../../documents.js" */
/** @import { Tokenizer } from "../../types.js" */
/** @typedef {{ text: string, ids: number[] | null, note: string }} Source note: the part that is left out, or the reason why there are no ids */

const MAX_LETTERS = 4000; // only the beginning of a longer sentence is read

/** A cache of the encoding of the last source sentence. @extends {EncodedText<Source>} */
export class SourceSentence extends EncodedText {
  /** @param {Tokenizer} tokenizer @param {TranslateDocument} viewDocument */
  constructor(tokenizer, { source_eos_ids: eosIds, max_source: maxSource }) {
    super(tokenizer);
    this.eosIds = eosIds;
    this.maxTokens = (maxSource ?? Infinity) - eosIds.length;
  }

  /** @param {string} text */
  textsToEncode(text) {
    return [text.slice(0, MAX_LETTERS)];
  }

  /** @param {string} text @returns {Source} */
  encode(text) {
    try {
      const ids = this.tokenizer.encode(text.slice(0, MAX_LETTERS));
      const read = [...ids.slice(0, this.maxTokens), ...this.eosIds];
      if (!read.length) return { text, ids: null, note: "type a sentence to translate" };
      return { text, ids: read, note: this.noteOn(text, ids) };
    } catch (error) {
      return { text, ids: null, note: /** @type {Error} */ (error).message };
    }
  }

  /** Describe what the model does not read. @param {string} text @param {number[]} ids */
  noteOn(text, ids) {
    const { tokenizer, maxTokens } = this;
    const count = Math.min(maxTokens, ids.length);
    if (ids.length > maxTokens || text.length > MAX_LETTERS)
      return `the sentence is longer than the model reads: its first ${count} tokens are translated`;
    const { unk: unknown } = tokenizer.special;
    const lacking = ids.filter((id) => id === unknown).length;
    if (!lacking) return "";
    return `the vocabulary lacks ${lacking} of these words: the model reads ${quoted(tokenizer.tokens([unknown])[0])} for each`;
  }
}

// A sentence as the encoder reads it.

import { quoted } from "../base/pen.js";

/** @import { TranslateDocument } from "../documents.d.ts" */
/** @import { Vocabulary } from "../types.d.ts" */
/** @typedef {{ sentence: string, ids: number[] | null, note: string }} Source note: what is left out, or why there are no ids */

const MAX_LETTERS = 4000; // that are looked at

export class SourceSentence {
  /** @type {Source | null} */
  latest = null;

  /** @param {Vocabulary} vocab @param {TranslateDocument} document */
  constructor(vocab, { source_end, max_source }) {
    this.vocab = vocab;
    this.end = source_end;
    this.maxTokens = (max_source ?? Infinity) - source_end.length;
  }

  /** @param {string} sentence @returns {Source} */
  read(sentence) {
    return this.latest?.sentence === sentence ? this.latest : (this.latest = this.readAnew(sentence));
  }

  /** @param {string} sentence @returns {Source} */
  readAnew(sentence) {
    try {
      const ids = this.vocab.encode(sentence.slice(0, MAX_LETTERS));
      const read = [...ids.slice(0, this.maxTokens), ...this.end];
      if (!read.length) return { sentence, ids: null, note: "type a sentence to translate" };
      return { sentence, ids: read, note: this.noteOn(sentence, ids) };
    } catch (error) {
      return { sentence, ids: null, note: /** @type {Error} */ (error).message };
    }
  }

  /** Describe what the model does not read. @param {string} sentence @param {number[]} ids */
  noteOn(sentence, ids) {
    const { vocab, maxTokens } = this;
    const count = Math.min(maxTokens, ids.length);
    if (ids.length > maxTokens || sentence.length > MAX_LETTERS)
      return `the sentence is longer than the model reads: its first ${count} tokens are translated`;
    const { unknown } = vocab.special;
    const lacking = ids.filter((id) => id === unknown).length;
    if (!lacking) return "";
    return `the vocabulary lacks ${lacking} of these words: the model reads ${quoted(vocab.words([unknown])[0])} for each`;
  }

  /**
   * Let Python encode the sentence, where it does that; false if it could not.
   * @param {string} sentence
   * @param {(vocab: Vocabulary, texts: string[]) => Promise<boolean | null>} learn as `Studio.learn`
   */
  async learned(sentence, learn) {
    const learned = await learn(this.vocab, [sentence.slice(0, MAX_LETTERS)]);
    if (learned) this.latest = null;
    return learned !== null;
  }
}

// A text as a model reads it: encoded once, also where Python has to be asked.

/** @import { Vocabulary } from "../types.d.ts" */

/** @template {{ text: string }} Read what is known of a text */
export class EncodedText {
  /** @type {Read | null} */
  latest = null;
  /** Whether it has to be encoded again. */
  expired = false;

  /** @param {Vocabulary} vocab */
  constructor(vocab) {
    this.vocab = vocab;
  }

  /** @abstract @param {string} _text @returns {Read} */
  encode(_text) {
    return /** @type {any} */ (null);
  }

  /** @abstract @param {string} text @returns {string[]} all that is encoded of it */
  textsToEncode(text) {
    return [text];
  }

  /** @param {string} text @returns {Read} */
  read(text) {
    if (this.latest?.text === text && !this.expired) return this.latest;
    this.expired = false;
    return (this.latest = this.encode(text));
  }

  /**
   * Let Python encode the text first, where it does that; false if it could not.
   * @param {string} text
   * @param {(vocab: Vocabulary, texts: string[]) => Promise<boolean | null>} learn as `Studio.learn`
   */
  async prepare(text, learn) {
    const learned = await learn(this.vocab, this.textsToEncode(text));
    if (learned) this.expired = true;
    return learned !== null;
  }
}

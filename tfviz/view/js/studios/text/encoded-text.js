// The base class of texts as a model reads them. Each text is encoded once, in the page or in Python.

/** @import { Tokenizer } from "../../types.js" */

/** A cache of the encoding of the last text. @template {{ text: string }} Read the encoded text */
export class EncodedText {
  /** @type {Read | null} */
  latest = null;
  /** Whether the text has to be encoded again. */
  expired = false;

  /** @param {Tokenizer} tokenizer */
  constructor(tokenizer) {
    this.tokenizer = tokenizer;
  }

  /** @abstract @param {string} _text @returns {Read} */
  encode(_text) {
    return /** @type {any} */ (null);
  }

  /** @abstract @param {string} text @returns {string[]} the parts of the text that are encoded */
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
   * Encode the text in Python, for a tokenizer that is not in the page; return false if that failed.
   * @param {string} text
   * @param {(tokenizer: Tokenizer, texts: string[]) => Promise<boolean | null>} preload as `Studio.preloadEncodings`
   */
  async prepare(text, preload) {
    const isNew = await preload(this.tokenizer, this.textsToEncode(text));
    if (isNew) this.expired = true;
    return isNew !== null;
  }
}

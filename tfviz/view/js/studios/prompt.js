// A prompt as a model reads it: its ids, cut where it is longer than that, or why there are none.

const PROMPT_LETTERS = 50_000; // that are looked at, from its end

/** @import { Vocabulary } from "../types.d.ts" */
/**
 * @typedef {{ text: string, ids: number[] | null, cut?: boolean, error?: string }} Prompted ids, or why there are none
 */

export class Prompt {
  /** @type {Prompted | null} */
  known = null;

  /** @param {Vocabulary} vocab @param {number} context */
  constructor(vocab, context) {
    this.vocab = vocab;
    this.context = context;
  }

  /** @param {string} text @returns {Prompted} */
  read(text) {
    const known = this.known?.text === text ? this.known : { text, ...this.encoded(text) };
    return (this.known = known);
  }

  /** @param {string} text */
  encoded(text) {
    try {
      const ids = this.vocab.encode(lastLetters(text));
      if (!ids.length) return { ids: null, error: "type a text: the model goes on from it" };
      return { ids: ids.slice(-this.context), cut: text.length > PROMPT_LETTERS || ids.length > this.context };
    } catch (error) {
      return {
        ids: null,
        error: `${/** @type {Error} */ (error).message}: what the model says is of the last text that could be read`,
      };
    }
  }

  /**
   * Let Python encode the text first, where it does that. learn: as `Studio.learn`; false if it could not.
   * @param {string} text
   * @param {(vocab: any, texts: string[]) => Promise<boolean | null>} learn
   */
  async learned(text, learn) {
    const learned = await learn(this.vocab, [lastLetters(text)]);
    if (learned) this.known = null;
    return learned !== null;
  }
}

/** Return as many letters as are looked at, and no half of one. @param {string} text */
function lastLetters(text) {
  return text.length > PROMPT_LETTERS ? text.slice(-PROMPT_LETTERS).replace(/^[\udc00-\udfff]/, "") : text;
}

// The special tokens around a text.

/** @import { ClassifyDocument } from "../documents.d.ts" */

export class SpecialTokens {
  /** @param {Pick<ClassifyDocument, "special_tokens" | "context">} document */
  constructor({ special_tokens: { before, after }, context }) {
    this.before = before === null ? [] : [before];
    this.after = after === null ? [] : [after];
    /** How many tokens a text may have besides them. */
    this.maxTokens = context - this.before.length - this.after.length;
  }

  /** Put them around a text, which is cut to what the model reads. @param {number[]} ids */
  around(ids) {
    return [...this.before, ...ids.slice(0, this.maxTokens), ...this.after];
  }

  /**
   * Return the first token of each word in a text with special tokens, and one past the last word's.
   * @param {number[]} counts tokens of each word
   * @param {number[]} ids
   */
  startsIn(counts, ids) {
    const end = ids.length - this.after.length;
    let at = this.before.length;
    return [...counts, 0].map((count) => {
      at += count;
      return Math.min(end, at - count);
    });
  }
}

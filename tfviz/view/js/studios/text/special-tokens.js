// The special tokens that a tokenizer adds around a text.

/** @import { ClassifyDocument } from "../../documents.js" */

/** The special tokens before and after a text, and functions to add them. */
export class SpecialTokens {
  /** @param {Pick<ClassifyDocument, "special_tokens" | "context">} viewDocument */
  constructor({ special_tokens: { prefix_id: prefixId, suffix_id: suffixId }, context }) {
    this.prefixIds = prefixId === null ? [] : [prefixId];
    this.suffixIds = suffixId === null ? [] : [suffixId];
    /** The maximum number of tokens of a text besides the special tokens. */
    this.maxTokens = context - this.prefixIds.length - this.suffixIds.length;
  }

  /** Add the special tokens to a text, which is truncated to the model's context. @param {number[]} ids */
  around(ids) {
    return [...this.prefixIds, ...ids.slice(0, this.maxTokens), ...this.suffixIds];
  }

  /**
   * Return the first token of each word in a text with special tokens, and one past the last word's.
   * @param {number[]} counts tokens of each word
   * @param {number[]} ids
   */
  startsIn(counts, ids) {
    const end = ids.length - this.suffixIds.length;
    let at = this.prefixIds.length;
    return [...counts, 0].map((count) => {
      at += count;
      return Math.min(end, at - count);
    });
  }
}

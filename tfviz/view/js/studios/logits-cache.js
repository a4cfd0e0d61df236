// A cache of a model's logits, by the tokens, edits and program that they were computed from.

import { notFinite } from "./logits.js";
import { LruCache } from "../base/lru-cache.js";

/** @import { Edit, Pattern } from "../types.js" */
/** @import { Studio } from "./studio.js" */
/**
 * @typedef {{ key: string, logits: Float32Array, patterns: Record<string, Pattern[]> | null }} Answer a model's logits; patterns: null in a cached answer
 * @typedef {{ program?: string, edits?: Edit[], capture?: boolean }} AskOptions capture: whether to capture the maps
 */

/** @param {number[]} question @param {Edit[]} edits */
export const answerKey = (question, edits, program = "read") => JSON.stringify([program, question, edits]);

/** A component that runs a studio's model and caches its logits. */
export class LogitsCache {
  /** @param {Studio<any> & { answer: Answer | null }} studio with the answer that is shown @param {number} capacity */
  constructor(studio, capacity) {
    this.studio = studio;
    /** @type {LruCache<Answer>} */
    this.cache = new LruCache(capacity);
  }

  /**
   * Request an answer; null if a newer request on this channel replaced it, or if the logits are not finite.
   * @param {string} channel
   * @param {number[]} question
   * @param {Record<string, any>} inputs the program's inputs that encode the question
   * @param {AskOptions} options
   * @returns {Promise<Answer | null>}
   */
  async ask(channel, question, inputs, { program = "read", edits = [], capture = false }) {
    const { studio, cache } = this;
    const key = answerKey(question, edits, program);
    if (studio.answer?.key === key) return studio.answer;
    const known = cache.get(key);
    if (known && !capture) return known;
    const result = await studio.run(channel, program, inputs, { edits, capture });
    if (!result) return null;
    const logits = result.outputs.logits.data;
    if (!logits.every(Number.isFinite)) {
      studio.frame.showError(notFinite("it has nothing to say"));
      return null;
    }
    cache.set(key, { key, logits, patterns: null }); // maps are large
    return { key, logits, patterns: result.patterns };
  }
}

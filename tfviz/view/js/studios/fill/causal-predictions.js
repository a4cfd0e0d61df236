// The predictions for masked words by a model that reads from the left only, for comparison with the masked model.

import { MAX_PREDICTIONS } from "./predictions.js";
import { logitsAt, softmax, topK } from "../logits.js";

/** @import { CausalModel } from "../../documents.js" */
/** @import { Tokenizer } from "../../types.js" */
/** @import { FillStudio } from "./fill-studio.js" */
/** @import { Segment } from "../text/word-segments.js" */
/**
 * @typedef {{ probabilities: Float64Array, tokenizer: Tokenizer, text: string }} LeftPrediction of a tokenizer's words, after a text
 */
/**
 * @typedef {LeftPrediction | { problem: string } | null | undefined} Left or why there is none; null: there is no text on the left; undefined: not known yet
 */

/** A component that runs the left-to-right model on the words before each masked one. */
export class CausalPredictions {
  /** @type {Map<number, Left>} at each word */
  words = new Map();

  /** @param {FillStudio} studio */
  constructor(studio) {
    this.studio = studio;
  }

  /**
   * Run the left-to-right model over the text. After a masked word it continues with its own likeliest prediction.
   * @param {() => boolean} isCurrent
   * @param {CausalModel} model
   * @returns {Promise<boolean>} whether the result is still wanted
   */
  async ask(isCurrent, model) {
    const { studio } = this;
    const { ids } = studio;
    /** @type {number[]} */
    const tokens = [];
    let text = "";
    for (const [i, segment] of studio.segments.entries()) {
      const now = studio.textOf(segment);
      if (now !== null) {
        tokens.push(...studio.positionsOf(segment).map((position) => ids[position]));
        text += segment.leadingSpace + now;
        continue;
      }
      const left = await this.predict(segment, model, text, tokens);
      if (!isCurrent()) return false;
      this.words.set(i, left);
      if (!left || "problem" in left) continue;
      const [id] = await this.encodePredictions(segment, left);
      const word = left.tokenizer.decode([id]);
      tokens.push(id);
      text += /^\s/.test(word) ? word : segment.leadingSpace + word;
    }
    return true;
  }

  /**
   * Return the prediction of the left-to-right model for a masked word.
   * @param {Segment} segment
   * @param {CausalModel} model
   * @param {string} text before it
   * @param {number[]} tokens the same, where both models have one tokenizer
   * @returns {Promise<LeftPrediction | { problem: string } | null>}
   */
  async predict(segment, { prefix_id: prefixId, tokenizer: index, context }, text, tokens) {
    const { studio } = this;
    const tokenizer = studio.tokenizers[index];
    await studio.preloadEncodings(tokenizer, [text, segment.leadingSpace + segment.text]);
    const read = index ? idsOrNull(tokenizer, text) : tokens;
    if (!read) return { problem: "its vocabulary lacks a character that stands there" };
    const left = [...(prefixId === null ? [] : [prefixId]), ...read].slice(-context);
    const answer = left.length ? await studio.ask("comparison", left, { program: "comparison" }) : null;
    return answer && { probabilities: softmax(logitsAt(answer, left.length - 1, tokenizer.size)), tokenizer, text };
  }

  /**
   * Encode the likeliest words in Python, for a tokenizer that is not in the page, and return their ids.
   * @param {Segment} segment
   * @param {LeftPrediction} left
   */
  async encodePredictions(segment, { probabilities, tokenizer }) {
    const ids = topK(probabilities, MAX_PREDICTIONS);
    await this.studio.preloadEncodings(
      this.studio.tokenizer,
      ids.map((id) => predictionText(segment, tokenizer, id)),
    );
    return ids;
  }
}

/**
 * Return the text of a prediction in place of a word.
 * @param {Segment} segment
 * @param {Tokenizer} tokenizer
 * @param {number} id
 */
export const predictionText = (segment, tokenizer, id) => segment.leadingSpace + tokenizer.decode([id]).trim();

/** Return the tokens of a text, or null if the tokenizer cannot write it. @param {Tokenizer} tokenizer @param {string} text */
export function idsOrNull(tokenizer, text) {
  try {
    return tokenizer.encode(text);
  } catch {
    return null;
  }
}

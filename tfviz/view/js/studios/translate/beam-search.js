// Beam search as in `tfviz.generate.beam`: the arithmetic only, without model and page.

import { logSoftmax, notFinite, topK } from "../logits.js";

/** @import { NumberList } from "../../base/grid.js" */
/**
 * A text of the search.
 * @typedef {object} Beam
 * @property {number[]} tokens
 * @property {number} sum log of its probability
 * @property {boolean} ended
 * @property {boolean} endedBefore it had ended before this step
 * @property {number} parent its rank at the step before
 */

/** @param {number} length @param {number} alpha */
const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

/** @param {Pick<Beam, "tokens" | "sum">} text @param {number} alpha */
export const scoreOf = ({ tokens, sum }, alpha) => sum / lengthPenalty(tokens.length, alpha);

/** @type {Readonly<Beam>} */
export const EMPTY_BEAM = Object.freeze({ tokens: [], sum: 0, ended: false, endedBefore: false, parent: 0 });

/**
 * Return the log-probabilities of all tokens: -Infinity for the suppressed ones, which leaves the others unchanged.
 * @param {NumberList} logits
 * @param {number[]} [suppressed]
 */
export function logProbabilities(logits, suppressed = []) {
  for (const logit of logits) if (Number.isNaN(logit)) throw notFinite("it cannot translate");
  const logs = logSoftmax(logits);
  for (const token of suppressed) logs[token] = -Infinity;
  return logs;
}

/** Return the likeliest tokens, without impossible ones. @param {NumberList} logs @param {number} count */
export const likeliestTokens = (logs, count) => topK(logs, count).filter((token) => logs[token] > -Infinity);

/**
 * Return a beam extended by a token.
 * @param {Beam} text
 * @param {number} parent
 * @param {number} token
 * @param {number} log
 * @param {number} end
 * @returns {Beam}
 */
export function extendedBeam(text, parent, token, log, end) {
  return { tokens: [...text.tokens, token], sum: text.sum + log, ended: token === end, endedBefore: false, parent };
}

/**
 * Return the best of all continuations.
 * @param {Beam[]} texts
 * @param {(NumberList | null)[]} logs of the next token of each text; null if the text has ended
 * @param {{ width: number, alpha: number, end: number }} options
 * @returns {Beam[]}
 */
export function nextBeam(texts, logs, { width, alpha, end }) {
  const continuations = texts.flatMap((text, parent) => {
    const next = logs[parent];
    if (text.ended || !next) return [{ ...text, endedBefore: true, parent }];
    return likeliestTokens(next, width).map((token) => extendedBeam(text, parent, token, next[token], end));
  });
  const scores = new Map(continuations.map((text) => [text, scoreOf(text, alpha)]));
  return continuations.sort((a, b) => Number(scores.get(b)) - Number(scores.get(a))).slice(0, width);
}

/**
 * Return the rank of a text at each step, from the first step on.
 * @param {Beam[][]} columns
 * @param {number} column
 * @param {number} rank
 */
export function ranksUpTo(columns, column, rank) {
  /** @type {number[]} */
  const ranks = [];
  for (let step = column, at = rank; step >= 0; at = columns[step][at].parent, step--) ranks.unshift(at);
  return ranks;
}

// Beam search as in `tfviz.generate.beam`: the arithmetic only, without model and page.

import { logSoftmax, notFinite, topK } from "../logits.js";

/** @import { NumberList } from "../../base/grid.js" */
/**
 * A text of the search, finished or not.
 * @typedef {object} Hypothesis
 * @property {number[]} tokens
 * @property {number} sum log of its probability
 * @property {boolean} ended
 * @property {boolean} endedBefore it had ended before this step
 * @property {number} parent its rank at the step before
 */

/** @param {number} length @param {number} lengthPenalty */
const divisor = (length, lengthPenalty) => ((5 + length) / 6) ** lengthPenalty;

/** @param {Pick<Hypothesis, "tokens" | "sum">} text @param {number} lengthPenalty */
export const scoreOf = ({ tokens, sum }, lengthPenalty) => sum / divisor(tokens.length, lengthPenalty);

/** @type {Readonly<Hypothesis>} */
export const EMPTY_HYPOTHESIS = Object.freeze({ tokens: [], sum: 0, ended: false, endedBefore: false, parent: 0 });

/**
 * Return the log-probabilities of all tokens: -Infinity for suppressed ones, which leaves the others unchanged.
 * @param {NumberList} logits
 * @param {number[]} [suppressedIds]
 */
export function logProbabilities(logits, suppressedIds = []) {
  for (const logit of logits) if (Number.isNaN(logit)) throw notFinite("it cannot translate");
  const logs = logSoftmax(logits);
  for (const token of suppressedIds) logs[token] = -Infinity;
  return logs;
}

/** Return the likeliest tokens, without impossible ones. @param {NumberList} logs @param {number} count */
export const likeliestTokens = (logs, count) => topK(logs, count).filter((token) => logs[token] > -Infinity);

/**
 * Return a hypothesis with one more token.
 * @param {Hypothesis} text
 * @param {number} parent
 * @param {number} token
 * @param {number} log
 * @param {number} eosId
 * @returns {Hypothesis}
 */
export function extendedHypothesis(text, parent, token, log, eosId) {
  return { tokens: [...text.tokens, token], sum: text.sum + log, ended: token === eosId, endedBefore: false, parent };
}

/**
 * Return the best of all continuations, the next beam.
 * @param {Hypothesis[]} texts
 * @param {(NumberList | null)[]} logs of the next token of each text; null if the text has ended
 * @param {{ numBeams: number, lengthPenalty: number, eosId: number }} options
 * @returns {Hypothesis[]}
 */
export function nextHypotheses(texts, logs, { numBeams, lengthPenalty, eosId }) {
  const continuations = texts.flatMap((text, parent) => {
    const next = logs[parent];
    if (text.ended || !next) return [{ ...text, endedBefore: true, parent }];
    return likeliestTokens(next, numBeams).map((token) => extendedHypothesis(text, parent, token, next[token], eosId));
  });
  const scores = new Map(continuations.map((text) => [text, scoreOf(text, lengthPenalty)]));
  return continuations.sort((a, b) => Number(scores.get(b)) - Number(scores.get(a))).slice(0, numBeams);
}

/**
 * Return the rank of a text at each step, from the first step on.
 * @param {Hypothesis[][]} columns
 * @param {number} column
 * @param {number} rank
 */
export function ranksUpTo(columns, column, rank) {
  /** @type {number[]} */
  const ranks = [];
  for (let step = column, at = rank; step >= 0; at = columns[step][at].parent, step--) ranks.unshift(at);
  return ranks;
}

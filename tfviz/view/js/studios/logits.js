// Functions on logits: softmax, log-softmax, losses, log-odds and the largest values, all computed in float64.

/** @import { NumberList } from "../base/grid.js" */

/** @param {string} consequence */
export const notFinite = (consequence) => new Error(`the model's logits are not finite; ${consequence}`);

/** Return the largest value; NaN where one is NaN. @param {NumberList} values */
export function largest(values) {
  let top = -Infinity;
  for (const value of values) top = Math.max(top, value);
  return top;
}

/**
 * Return the softmax of logits divided by a temperature above 0.
 * @param {NumberList} logits
 * @param {number} [temperature]
 */
export function softmax(logits, temperature = 1) {
  const top = largest(logits);
  const weights = Float64Array.from(logits, (logit) => Math.exp((logit - top) / temperature));
  return normalized(weights);
}

/** Divide numbers by their sum. @param {Float64Array} weights */
export function normalized(weights) {
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}

/** Return the log of the sum of the exponentials; of no logits it is -Infinity. @param {NumberList} logits */
export function logSumExp(logits) {
  const top = largest(logits);
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - top);
  return top + Math.log(sum);
}

/** Return the logs of the softmax. @param {NumberList} logits */
export function logSoftmax(logits) {
  const all = logSumExp(logits);
  return Float64Array.from(logits, (logit) => logit - all);
}

/**
 * Return the loss of each token of a text after the first, in nats: minus the log of the probability that the logits
 * before it gave.
 * @param {Float32Array} logits a row for each token
 * @param {number[]} ids
 * @param {number} vocabSize
 */
export function tokenLosses(logits, ids, vocabSize) {
  return ids.slice(1).map((id, i) => {
    const row = logits.subarray(i * vocabSize, (i + 1) * vocabSize);
    return logSumExp(row) - row[id];
  });
}

/**
 * Return the logits of a tokenizer's tokens at one position of a text; the model may have more.
 * @param {{ ids: number[], logits: Float32Array }} answer a row of logits for each token
 * @param {number} position
 * @param {number} vocabSize
 */
export function logitsAt({ ids, logits }, position, vocabSize) {
  const each = logits.length / ids.length;
  return logits.subarray(position * each, position * each + vocabSize);
}

/** Return the log-odds of one label, log p / (1 - p). @param {Float32Array} logits @param {number} label */
export const logOdds = (logits, label) => logits[label] - logSumExp(logits.filter((_, i) => i !== label));

/**
 * Return the indices of the largest values, the largest first, of equal ones the first.
 * @param {NumberList} values none of them NaN
 * @param {number} count
 */
export function topK(values, count) {
  /** @type {number[]} */
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && !(values[i] > values[best[count - 1]])) continue;
    let rank = best.length;
    while (rank > 0 && values[i] > values[best[rank - 1]]) rank--;
    best.splice(rank, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

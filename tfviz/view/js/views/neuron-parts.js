// Functions that compute one query's weights step by step, in float64: products of query and key in each dimension,
// their sum, the score, the weight.

import { FORBIDDEN, Grid, ALLOWED } from "../base/grid.js";

/** @import { GridPanel } from "../types.js" */
/**
 * @typedef {object} HeadVectors what one head multiplies
 * @property {Float32Array} query [dim]
 * @property {Float32Array} keys [key, dim]
 * @property {number} scale
 * @property {Float32Array | null} bias what is added for each key
 * @property {Uint8Array} state ALLOWED or FORBIDDEN for each key
 */
/**
 * @typedef {object} NeuronParts of one query
 * @property {number} dim
 * @property {Float64Array} products [key, dim]
 * @property {Float64Array} sums of the products, for each key
 * @property {Float64Array} scores sum x scale + bias; -Infinity where the query may not look
 * @property {Float64Array} weights the softmax of the scores
 */

/** @param {HeadVectors} vectors @returns {NeuronParts} */
export function neuronParts({ query, keys, scale, bias, state }) {
  const dim = query.length;
  const products = Float64Array.from(keys, (value, i) => value * query[i % dim]);
  const sums = Float64Array.from(state, (_, key) =>
    products.subarray(key * dim, (key + 1) * dim).reduce((sum, product) => sum + product, 0),
  );
  const scores = sums.map((sum, key) => (state[key] === ALLOWED ? sum * scale + (bias?.[key] ?? 0) : -Infinity));
  const top = scores.reduce((most, score) => Math.max(most, score), -Infinity);
  const shares = scores.map((score) => (top > -Infinity ? Math.exp(score - top) : 0));
  const total = shares.reduce((sum, share) => sum + share, 0) || 1;
  return { dim, products, sums, scores, weights: shares.map((share) => share / total) };
}

/**
 * Choose the keys that are shown: all, or those with the largest weights, in the order of the text.
 * @param {NeuronParts} parts
 * @param {number} maxCount
 */
export function visibleKeys({ weights }, maxCount) {
  const keys = [...weights.keys()];
  if (keys.length <= maxCount) return keys;
  return keys
    .sort((a, b) => weights[b] - weights[a] || a - b)
    .slice(0, maxCount)
    .sort((a, b) => a - b);
}

/**
 * Return the numbers of a query as tables: the way to the weights, then the products.
 * @param {HeadVectors} vectors
 * @param {NeuronParts} parts
 * @param {string[]} words of the keys
 * @param {string} word of the query
 * @returns {GridPanel<Grid>[]}
 */
export function neuronPanels(
  { query, keys, scale, bias, state },
  { dim, products, sums, scores, weights },
  words,
  word,
) {
  const steps = ["sum of q × k", "scale", "bias", "score", "weight"];
  const values = words.flatMap((_, key) => [sums[key], scale, bias?.[key] ?? 0, scores[key], weights[key]]);
  const states = Uint8Array.from(values, (_, i) =>
    state[Math.floor(i / 5)] === ALLOWED || i % 5 < 2 ? ALLOWED : FORBIDDEN,
  );
  const dimensions = Array.from({ length: dim }, (_, i) => String(i));
  /** @type {(name: string, rows: string[], numbers: ArrayLike<number> & Iterable<number>) => GridPanel<Grid>} */
  const vectors = (name, rows, numbers) => ({
    name,
    grid: signedGrid(rows, dimensions, numbers),
    axes: [name === "query" ? "query" : "key", "dimension"],
  });
  return [
    {
      name: `from query ${word}`,
      grid: Grid.of(words, steps, values, states, { scale: "diverging" }),
      axes: ["key", ""],
    },
    vectors("query × key", words, products),
    vectors("query", [word], query),
    vectors("keys", words, keys),
  ];
}

/**
 * Return a grid of numbers with signs, whose scale ends at the largest.
 * @param {string[]} rows
 * @param {string[]} columns
 * @param {ArrayLike<number> & Iterable<number>} numbers
 * @param {number} [limit]
 */
export function signedGrid(rows, columns, numbers, limit = largestSize(numbers)) {
  return Grid.of(rows, columns, numbers, new Uint8Array(numbers.length), { scale: "diverging", limit });
}

/** Return the largest size of some numbers, 1 if all are 0. @param {Iterable<number>} numbers */
export function largestSize(numbers) {
  let most = 0;
  for (const number of numbers) most = Math.max(most, Math.abs(number));
  return most || 1;
}

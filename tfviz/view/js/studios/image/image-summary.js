// Functions that summarize where a head attends on a picture, and the effect of hidden patches, in numbers and words.

import { FORBIDDEN, Grid, ALLOWED } from "../../base/grid.js";
import { formatCount, formatNumber, percent } from "../../base/numbers.js";
import { profile } from "../../base/patch-grid.js";
import { topK } from "../logits.js";

/** @import { Profile } from "../../base/patch-grid.js" */
/** @import { Patches } from "../../documents.js" */

const MAX_EVEN_RATIO = 1.5; // times the even weight: a head that gives no token more looks at all of them alike

/**
 * Return a query's weight for each key; without a query, the mean over all queries that may attend somewhere.
 * @param {Grid} grid
 * @param {number | null} query
 */
export function attentionProfile(grid, query) {
  if (query !== null) return profile(grid, grid, "rows", query);
  const { rows, columns } = grid;
  const values = new Float32Array(columns.length);
  const state = new Uint8Array(columns.length).fill(FORBIDDEN);
  const queries = [...rows.keys()].filter((row) => !grid.isFullyMasked(row));
  for (const row of queries)
    for (let col = 0; col < columns.length; col++) {
      values[col] += grid.at(row, col) / queries.length;
      state[col] = Math.min(state[col], grid.stateAt(row, col));
    }
  return /** @type {Profile} */ (new Grid(columns, ["mean"], new Uint8Array(0), state, { values }));
}

/**
 * Return the patches with the largest weights, the first of equal ones before others.
 * @param {ArrayLike<number>} weights of all tokens
 * @param {Patches} patches
 * @param {number} maxCount
 */
export function topPatches(weights, { first, rows, columns }, maxCount) {
  const ofPatches = Array.from({ length: rows * columns }, (_, patch) => weights[first + patch]);
  return topK(ofPatches, maxCount);
}

/**
 * Describe the behaviour of a head on a picture in a sentence.
 * @param {Profile} weights of one query, or the mean of all
 * @param {string[]} words of the tokens
 * @param {Patches} patches
 * @param {string} from the query in words
 */
export function attentionSentence(weights, words, patches, from) {
  const { values, state } = weights;
  const count = state.reduce((sum, kind) => sum + Number(kind === ALLOWED), 0);
  const even = 1 / count;
  const top = values.reduce((best, value, token) => (value > values[best] ? token : best), 0);
  const times = (/** @type {number} */ value) => `${percent(value)}, ${formatNumber(value / even)} times an even share`;
  if (values[top] < MAX_EVEN_RATIO * even)
    return `looks ${from} almost evenly at all ${formatCount(count, "token")}: at most ${percent(values[top])}.`;
  const [patch] = topPatches(values, patches, 1);
  const best = patches.first + patch;
  if (top === best) return `looks ${from} most at the patch in ${words[best]}: ${times(values[best])}.`;
  return `looks ${from} most at ${words[top]} (${percent(values[top])}), and of the patches at that in ${words[best]}: ${times(values[best])}.`;
}

/**
 * Name the changes, as the beginning of a sentence; empty if there are none.
 * @param {number} hidden patches
 * @param {number} ablatedHeadCount
 */
function withoutWords(hidden, ablatedHeadCount) {
  const these = (/** @type {number} */ count, /** @type {string} */ one, /** @type {string} */ many) =>
    count === 1 ? `this ${one}` : `these ${formatNumber(count)} ${many}`;
  const lost = [
    hidden && these(hidden, "patch", "patches"),
    ablatedHeadCount && formatCount(ablatedHeadCount, "head"),
  ].filter(Boolean);
  return lost.length ? `Without ${lost.join(" and ")}` : "";
}

/**
 * Describe in a sentence how the probability of a label moves without some patches and heads.
 * @param {string} label
 * @param {number} baseline
 * @param {number} edited
 * @param {number} hidden
 * @param {number} ablatedHeadCount
 */
export function effectSentence(label, baseline, edited, hidden, ablatedHeadCount) {
  const without = withoutWords(hidden, ablatedHeadCount);
  if (!without) return "";
  const [from, to] = [percent(baseline), percent(edited)];
  if (from === to) return `${without} ${label} stays at ${to}.`;
  return `${without} ${label} ${edited < baseline ? "falls" : "rises"} from ${from} to ${to}.`;
}

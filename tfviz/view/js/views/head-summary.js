// Functions that summarize what a head attends to, in words and numbers.

/** @import { AnyGrid } from "../types.js" */

import { Grid, ALLOWED } from "../base/grid.js";
import { formatCount, formatNumber, percent } from "../base/numbers.js";
import { tokenPhrase } from "../base/token-names.js";
import { visibleText } from "../base/visible-text.js";

const MIN_TOP_KEY_RATIO = 1.5; // times the even share: a key that draws less is not named
const MAX_ROUNDING = 0.1; // of the sum of a row, whose weights have 8 bits
const EVEN_RATIO = 1.1; // times the even share: a row whose largest weight is no more looks evenly, up to the rounding
const MAX_DISTANCE = 9; // tokens between a query and its key that have a name
const NUMBER_WORDS = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** @type {(distance: number, unit: string) => string} */
function distanceWords(distance, unit) {
  if (distance === 0) return `looks at the ${unit} itself`;
  const far = Math.abs(distance);
  return `looks ${NUMBER_WORDS[far]} ${unit}${far > 1 ? "s" : ""} ${distance < 0 ? "back" : "ahead"}`;
}

/** @type {(distance: number) => string} */
const distanceTag = (distance) => (distance ? `${Math.abs(distance)} ${distance < 0 ? "back" : "ahead"}` : "itself");

/**
 * @typedef {object} AttentionKind where the strongest key of a query lies
 * @property {string} kind
 * @property {string} tag the same in a word or two
 * @property {(unit: string) => string} words
 * @property {(query: number, key: number, ids: number[]) => boolean} is
 * @property {number} [distance] of the key, where that is the kind: few queries may have a key so far away
 */

/** @type {AttentionKind[]} in the order of preference among equal counts */
const ATTENTION_KINDS = [
  ...[0, ...Array.from({ length: MAX_DISTANCE }, (_, i) => [-i - 1, i + 1]).flat()].map((distance) => ({
    kind: `at ${distance}`,
    tag: distanceTag(distance),
    distance,
    words: (/** @type {string} */ unit) => distanceWords(distance, unit),
    is: (/** @type {number} */ query, /** @type {number} */ key) => key - query === distance,
  })),
  {
    kind: "induction",
    tag: "induction",
    words: (unit) => `looks at what followed the same ${unit} before`,
    is: (query, key, ids) => ids.length > 0 && key > 0 && key < query && ids[key - 1] === ids[query],
  },
  {
    kind: "duplicate",
    tag: "the same",
    words: (unit) => `looks at the same ${unit} before`,
    is: (query, key, ids) => key < query && ids.length > 0 && ids[key] === ids[query],
  },
  { kind: "first", tag: "first", words: (unit) => `looks at the first ${unit}`, is: (_, key) => key === 0 },
];

/**
 * Return the key with the largest weight, the first of equal ones; -1 where a query may look nowhere. A sort would take too
 * long.
 */
function topKeyOf(/** @type {Grid} */ grid, /** @type {number} */ query) {
  let best = -1;
  for (let key = 0; key < grid.columns.length; key++)
    if (grid.hasState(query, key, ALLOWED) && (best < 0 || grid.at(query, key) > grid.at(query, best))) best = key;
  return best;
}

/** Return how many keys a query may look at. @param {Grid} grid @param {number} query */
export const countAllowed = (grid, query) => grid.columns.filter((_, key) => grid.hasState(query, key, ALLOWED)).length;

/** Tell whether a query looks at all keys alike. @param {Grid} grid @param {number} query @param {number} top its strongest key */
function isEven(grid, query, top) {
  const allowed = countAllowed(grid, query);
  return allowed > 1 && grid.at(query, top) <= EVEN_RATIO / allowed;
}

/**
 * Count how often each kind holds for the strongest key of a query, without the first query, which may see no other.
 * @param {Grid} grid
 * @param {number[]} ids of rows and columns if both are the same text, else empty
 * @returns {{ kind: string, tag: string, words: (unit: string) => string, count: number, of: number, queries: number }[]} the most
 *   frequent first; `of`: of how many queries that may look at such a key
 */
export function countKinds(grid, ids) {
  const topKeys = grid.rows.map((_, query) => topKeyOf(grid, query));
  const queries = topKeys.flatMap((key, query) => (key < 0 || query === 0 ? [] : [[query, key]]));
  const uneven = queries.filter(([query, key]) => !isEven(grid, query, key));
  const mayLook = (/** @type {number} */ query, /** @type {number} */ key) =>
    key >= 0 && key < grid.columns.length && grid.hasState(query, key, ALLOWED);
  return ATTENTION_KINDS.map(({ kind, tag, words, is, distance }) => ({
    kind,
    tag,
    words,
    count: uneven.filter(([query, key]) => is(query, key, ids)).length,
    of: distance === undefined ? queries.length : queries.filter(([query]) => mayLook(query, query + distance)).length,
    queries: queries.length,
  })).sort((a, b) => b.count - a.count);
}

/**
 * Return the median number of keys over which a query spreads its weights: e to the power of the entropy.
 * @param {Grid} grid
 */
export function attentionBreadth(grid) {
  const breadths = grid.rows.map((_, row) => {
    let entropy = 0;
    for (let col = 0; col < grid.columns.length; col++) {
      const weight = grid.at(row, col);
      if (weight > 0) entropy -= weight * Math.log(weight);
    }
    return Math.exp(entropy);
  });
  return breadths.sort((a, b) => a - b)[Math.floor(breadths.length / 2)] ?? 0;
}

/**
 * Describe what one query looks at most, or that it looks at all alike; empty where it may look nowhere.
 * @param {Grid} grid
 * @param {number} query
 * @param {(query: string) => string} from how it begins
 */
export function querySentence(grid, query, from = (word) => `looks from ${word}`) {
  const key = topKeyOf(grid, query);
  if (key < 0) return "";
  const [row, col] = [grid.rows[query], grid.columns[key]].map(tokenPhrase);
  if (isEven(grid, query, key)) return `${from(row)} evenly at all ${countAllowed(grid, query)} that it may look at.`;
  return `${from(row)} most at ${key === query && row === col ? "itself" : col}: ${percent(grid.at(query, key))} of its attention.`;
}

/**
 * Return the query with the largest weight among those that may look at several keys, since a single key gets all; the first
 * of equal ones.
 * @param {Grid} grid
 */
export function sharpestQuery(grid) {
  const largest = grid.rows.map((_, query) =>
    countAllowed(grid, query) > 1 ? grid.at(query, topKeyOf(grid, query)) : -1,
  );
  return largest.indexOf(Math.max(...largest));
}

/**
 * Describe what one query looks at most, by default that with the largest weight; empty where numbers are no weights.
 * @param {Grid} grid
 * @param {number} [query]
 */
export function strongestQuerySentence(grid, query) {
  if (!summaryOf(grid)) return "";
  return querySentence(grid, query ?? sharpestQuery(grid), (word) => `${word} looks`);
}

/**
 * Describe which key draws most of the attention of all queries, where one draws clearly more than an even share.
 * @param {Grid} grid
 */
function topKeySentence(grid) {
  const queries = [...grid.rows.keys()].filter((query) => !grid.isFullyMasked(query));
  const means = grid.columns.map(
    (_, key) => queries.reduce((sum, query) => sum + grid.at(query, key), 0) / queries.length,
  );
  const top = means.indexOf(Math.max(...means));
  if (!(means[top] > MIN_TOP_KEY_RATIO / means.length)) return "";
  return `looks most at ${tokenPhrase(grid.columns[top])}: ${percent(means[top])} of its attention, on average.`;
}

/** Tell whether a map is one of attention weights. @param {Grid} grid */
export const isAttention = (grid) => summaryOf(grid) !== null;

/** Tell whether the rows of a grid are weights, which add up to 1, up to the rounding of their codes. @param {Grid} grid */
function hasWeights(grid) {
  return grid.rows.every((_, row) => {
    const sum = grid.columns.reduce(
      (total, _, col) => total + (grid.hasState(row, col, ALLOWED) ? grid.at(row, col) : 0),
      0,
    );
    return Math.abs(sum - 1) < MAX_ROUNDING || grid.isFullyMasked(row);
  });
}

/** The summary of each map, which does not depend on the query, kept since it is asked for at each move of the pointer. @type {WeakMap<Grid, { kind: string, tag: string, unit: string, sameText: boolean, name: string, share: number } | null>} null: not of weights */
const summaries = new WeakMap();

/** @param {Grid} grid */
function summarized(grid) {
  const { rows, columns } = grid;
  const unit = rows.every((token) => [...visibleText(token)].length === 1) ? "letter" : "token";
  const sameText = rows.length === columns.length && rows.every((token, i) => token === columns[i]);
  const ids = rows.map((token) => rows.indexOf(token)); // equal tokens have one id
  const kind = sameText ? mainKind(grid, ids) : null;
  if (!kind) return { unit, sameText, kind: "", tag: "", name: "", share: 0 };
  const name = kind.words(unit).replace(/^looks /, "");
  return { unit, sameText, kind: kindSentence(kind, unit), tag: kind.tag, name, share: kind.count / kind.of };
}

/** Return the summary of a map, computed once; null if its numbers are no weights. @param {Grid} grid */
function summaryOf(grid) {
  let summary = summaries.get(grid);
  if (summary === undefined) summaries.set(grid, (summary = hasWeights(grid) ? summarized(grid) : null));
  return summary;
}

/** Return what the tokens of a map of one text are, "letter" or "token"; empty for a map between two texts, or of other numbers. @param {Grid} grid */
export function selfAttentionUnit(grid) {
  const summary = summaryOf(grid);
  return summary?.sameText ? summary.unit : "";
}

/** Return in a word or two what a head looks at from at least half of the queries; empty if there is no such kind. @param {Grid} grid */
export const tagOf = (grid) => summaryOf(grid)?.tag ?? "";

/**
 * Find the heads of each kind, such as "one token back": the clearest first, and the kind of the most heads first.
 * @param {Map<string, AnyGrid>} grids by "layer.head"
 * @returns {{ name: string, heads: [layer: number, head: number][] }[]}
 */
export function headsByKind(grids) {
  /** @type {Map<string, { head: [number, number], share: number }[]>} */
  const kinds = new Map();
  for (const [key, grid] of grids) {
    const summary = grid instanceof Grid ? summaryOf(grid) : null;
    if (!summary?.name) continue;
    const [layer, head] = key.split(".").map(Number);
    kinds.set(summary.name, [...(kinds.get(summary.name) ?? []), { head: [layer, head], share: summary.share }]);
  }
  const clearest = [...kinds].map(([name, heads]) => ({
    name,
    heads: heads.sort((a, b) => b.share - a.share).map(({ head }) => head),
  }));
  return clearest.sort((a, b) => b.heads.length - a.heads.length);
}

/**
 * Describe in a sentence what a head does, from its map alone: by kinds of keys where both axes are one text, else by
 * what a query looks at; empty if the numbers are no weights.
 * @param {Grid} grid
 * @param {number} query
 */
export function describeMap(grid, query) {
  const summary = summaryOf(grid);
  return summary === null ? "" : summary.kind || describeQuery(grid, summary.unit, query);
}

/** Return the kind of key that a head looks at from at least half of the queries, if there is one. @param {Grid} grid @param {number[]} ids */
function mainKind(grid, ids) {
  const [best] = countKinds(grid, ids);
  return best.queries > 1 && best.count >= best.queries / 2 ? best : null;
}

/** Describe the main kind of key that a head looks at; empty without one. @param {ReturnType<typeof mainKind>} best @param {string} unit */
function kindSentence(best, unit) {
  return best ? `${best.words(unit)} in ${formatNumber(best.count)} of ${formatCount(best.of, "place")}.` : "";
}

/**
 * Describe what a query looks at, else what all look at, else how far they spread.
 * @param {Grid} grid
 * @param {string} unit
 * @param {number | null} query
 */
function describeQuery(grid, unit, query) {
  const sentence = query === null || query >= grid.rows.length ? topKeySentence(grid) : querySentence(grid, query);
  return (
    sentence || `spreads its look over ${formatCount(Math.max(1, Math.round(attentionBreadth(grid))), unit)} or so.`
  );
}

/**
 * Describe in a sentence what a head does in a text: its kind, else what the query that is pointed at looks at, else
 * what all look at, else how far it spreads.
 * @param {Grid} grid
 * @param {number[]} ids
 * @param {string} unit "letter", "token"
 * @param {number | null} [query]
 */
export function describeHead(grid, ids, unit, query = null) {
  return kindSentence(mainKind(grid, ids), unit) || describeQuery(grid, unit, query);
}

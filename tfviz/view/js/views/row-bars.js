// Two lists beside the map of a head, as bars: the keys that one query looks at most, and how far back all queries look.

import { ALLOWED } from "../base/grid.js";
import { percent } from "../base/numbers.js";
import { tokenPhrase } from "../base/token-names.js";
import { countAllowed, selfAttentionUnit } from "./head-summary.js";
import { fitted } from "./heatmap.js";

/** @import { Grid } from "../base/grid.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Box, Pen } from "../types.js" */
/** @typedef {{ name: string, weight: number }} WeightBar */

const MAX_WIDTH = 340; // pixels
const [ROW_HEIGHT, TITLE_HEIGHT, BAR_HEIGHT, LIST_GAP] = [26, 30, 12, 18];
const [MAX_KEYS, MAX_DISTANCES, MIN_WEIGHT] = [8, 4, 0.005];
const [NAME_SHARE, NUMBER_WIDTH] = [0.38, 52]; // of the width; pixels
const FONT_SIZE = 13;

/**
 * Draw the keys with the largest weights of a query: their names, bars and percentages, the strongest first; below them,
 * where there is room, the distances at which all queries look, on average.
 * @param {Pen} pen
 * @param {Theme} theme
 * @param {Grid} grid
 * @param {number} query
 * @param {Box} box the room for the lists
 */
export function drawRowBars(pen, theme, grid, query, [x, y, available, height]) {
  const width = Math.min(available, MAX_WIDTH);
  const draw = (/** @type {string} */ title, /** @type {WeightBar[]} */ bars, /** @type {number} */ top) =>
    bars.length ? drawBars(pen, theme, title, bars, [x, top, width, y + height - top]) : 0;
  const used = draw(`${tokenPhrase(grid.rows[query])} looks at`, keyBars(grid, query), y);
  const unit = selfAttentionUnit(grid);
  if (used && unit) draw(`All ${unit}s look, on average`, distanceBars(grid), y + used + LIST_GAP);
}

/** @param {Grid} grid @param {number} query @returns {WeightBar[]} the strongest first */
function keyBars(grid, query) {
  const keys = grid.strongestPairs(query, "row", MAX_KEYS).filter(([, weight], i) => !i || weight >= MIN_WEIGHT);
  return keys.map(([key, weight]) => ({ name: tokenPhrase(grid.columns[key]), weight }));
}

/**
 * Draw a list with its title, as many bars as there is room for.
 * @param {Pen} pen
 * @param {Theme} theme
 * @param {string} title
 * @param {WeightBar[]} bars
 * @param {Box} box
 * @returns {number} the height of what is drawn
 */
function drawBars(pen, theme, title, bars, [x, y, width, height]) {
  const listed = bars.slice(0, Math.max(0, Math.floor((height - TITLE_HEIGHT) / ROW_HEIGHT)));
  if (!listed.length) return 0;
  pen.text(x, y + FONT_SIZE / 2, fitted(title, width, FONT_SIZE), { fill: theme.ink, size: FONT_SIZE, bold: true });
  const left = x + NAME_SHARE * width;
  const length = width * (1 - NAME_SHARE) - NUMBER_WIDTH;
  listed.forEach(({ name, weight }, i) => {
    const middle = y + TITLE_HEIGHT + ROW_HEIGHT * (i + 0.5);
    const top = middle - BAR_HEIGHT / 2;
    pen.text(x, middle, fitted(name, NAME_SHARE * width - 10, FONT_SIZE), { fill: theme.ink, size: FONT_SIZE });
    pen.rect(left, top, length, BAR_HEIGHT, { fill: theme.line, alpha: 0.45, radius: 3 });
    pen.rect(left, top, Math.max(1, weight * length), BAR_HEIGHT, { fill: theme.ramp, radius: 3 });
    pen.text(x + width, middle, percent(weight), { fill: theme.ink, size: FONT_SIZE, align: "right" });
  });
  return TITLE_HEIGHT + ROW_HEIGHT * listed.length;
}

/** The bars of each map, kept since they are drawn at each move of the pointer. @type {WeakMap<Grid, WeightBar[]>} */
const barsOfDistances = new WeakMap();

/** @param {Grid} grid of one text @returns {WeightBar[]} the strongest first, and what is left */
function distanceBars(grid) {
  const known = barsOfDistances.get(grid);
  if (known) return known;
  const sorted = [...distanceWeights(grid)].sort(([a, left], [b, right]) => right - left || Math.abs(a) - Math.abs(b));
  const nearest = sorted.slice(0, MAX_DISTANCES).filter(([, weight], i) => !i || weight >= MIN_WEIGHT);
  const rest = sorted.slice(nearest.length).reduce((sum, [, weight]) => sum + weight, 0);
  const bars = nearest.map(([distance, weight]) => ({ name: distanceName(distance), weight }));
  if (rest >= MIN_WEIGHT) bars.push({ name: "elsewhere", weight: rest });
  barsOfDistances.set(grid, bars);
  return bars;
}

/** @param {number} distance of a key from its query */
const distanceName = (distance) =>
  distance ? `${Math.abs(distance)} ${distance < 0 ? "back" : "ahead"}` : "at itself";

/**
 * Return the mean weight at each distance between a query and its key, negative for an earlier key, over the queries that
 * may look at several keys, since a single key gets all.
 * @param {Grid} grid of one text
 * @returns {Map<number, number>}
 */
export function distanceWeights(grid) {
  const count = grid.columns.length;
  const queries = [...grid.rows.keys()].filter((query) => countAllowed(grid, query) > 1);
  /** @type {Map<number, number>} */
  const means = new Map();
  for (const query of queries)
    for (let key = 0; key < count; key++)
      if (grid.hasState(query, key, ALLOWED))
        means.set(key - query, (means.get(key - query) ?? 0) + grid.at(query, key) / queries.length);
  return means;
}

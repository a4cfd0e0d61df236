// A list of the keys that one query looks at most, as bars beside the map of a head.

import { percent } from "../base/numbers.js";
import { tokenPhrase } from "../base/token-names.js";
import { fitted } from "./heatmap.js";

/** @import { Grid } from "../base/grid.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Box, Pen } from "../types.js" */

export const MIN_ROW_BARS_WIDTH = 210; // pixels; with less room there is no list
const MAX_WIDTH = 340;
const [ROW_HEIGHT, TITLE_HEIGHT, BAR_HEIGHT] = [26, 30, 12];
const [MAX_KEYS, MIN_WEIGHT] = [8, 0.005];
const [NAME_SHARE, NUMBER_WIDTH] = [0.38, 52]; // of the width; pixels
const FONT_SIZE = 13;

/**
 * Draw the keys with the largest weights of a query: their names, bars and percentages, the strongest first.
 * @param {Pen} pen
 * @param {Theme} theme
 * @param {Grid} grid
 * @param {number} query
 * @param {Box} box the room for the list
 */
export function drawRowBars(pen, theme, grid, query, [x, y, room, height]) {
  const width = Math.min(room, MAX_WIDTH);
  const count = Math.min(MAX_KEYS, Math.floor((height - TITLE_HEIGHT) / ROW_HEIGHT));
  const keys = grid.strongestPairs(query, "row", count).filter(([, weight], i) => !i || weight >= MIN_WEIGHT);
  if (!keys.length || count < 1) return;
  const title = fitted(`${tokenPhrase(grid.rows[query])} looks at`, width, FONT_SIZE);
  pen.text(x, y + FONT_SIZE / 2, title, { fill: theme.ink, size: FONT_SIZE, bold: true });
  const left = x + NAME_SHARE * width;
  const length = width * (1 - NAME_SHARE) - NUMBER_WIDTH;
  keys.forEach(([key, weight], i) => {
    const middle = y + TITLE_HEIGHT + ROW_HEIGHT * (i + 0.5);
    const top = middle - BAR_HEIGHT / 2;
    const name = fitted(tokenPhrase(grid.cols[key]), NAME_SHARE * width - 10, FONT_SIZE);
    pen.text(x, middle, name, { fill: theme.ink, size: FONT_SIZE });
    pen.rect(left, top, length, BAR_HEIGHT, { fill: theme.line, alpha: 0.45, radius: 3 });
    pen.rect(left, top, Math.max(1, weight * length), BAR_HEIGHT, { fill: theme.ramp, radius: 3 });
    pen.text(x + width, middle, percent(weight), { fill: theme.ink, size: FONT_SIZE, align: "right" });
  });
}

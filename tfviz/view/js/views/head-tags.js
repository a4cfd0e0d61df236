// Tags of small maps: what a head looks at, in a word or two, in the corner that a causal mask leaves free.

import { Grid, ALLOWED } from "../base/grid.js";
import { textWidth } from "../base/pen.js";
import { tagOf } from "./head-summary.js";

const [PADDING, MAX_SHARE] = [8, 0.7]; // pixels beside a tag; the part of a map's width that it may take

/**
 * Return the tag of a map as it fits into its upper right corner; empty if there is no room, or nothing to say.
 * @param {import("../types.js").AnyGrid} grid
 * @param {number} width pixels of the map
 * @param {number} fontSize pixels
 */
export function cornerTag(grid, width, fontSize) {
  const fits = (/** @type {string} */ tag) => textWidth(tag, fontSize) + PADDING <= MAX_SHARE * width;
  if (!(grid instanceof Grid) || !fits("−1") || !hasFreeCorner(grid)) return "";
  const tag = tagOf(grid);
  const short = tag.replace(/^(\d+) (back|ahead)$/, (_, n, way) => (way === "back" ? "−" : "+") + n);
  return [tag, short].find(fits) ?? "";
}

/** Tell whether no cell of the upper right corner may be looked at. @param {Grid} grid */
function hasFreeCorner({ rows, columns, state }) {
  return [0, 0.2].every((at) => state[Math.floor(at * rows.length) * columns.length + columns.length - 1] !== ALLOWED);
}

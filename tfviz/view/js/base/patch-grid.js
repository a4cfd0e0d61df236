// The positions of tokens that are patches of a picture, and the weights between one token and the patches.

import { ABSENT, Grid } from "./grid.js";
import spec from "./spec.json" with { type: "json" };
import { quoted } from "./visible-text.js";

/** @import { Patches, PatchSides } from "../documents.js" */
/** @import { AnyGrid, Side } from "../types.js" */
/** @typedef {{ rows: string[], columns: string[] }} Words */
/** @typedef {{ side: Side, index: number }} Token */
/** @typedef {Grid & { values: Float32Array }} Profile */

/** Return the other side of a map: columns for rows, rows for columns. @param {Side} side @returns {Side} */
export const otherSide = (side) => (side === "rows" ? "columns" : "rows");

/** A rectangular arrangement of consecutive tokens as the patches of a picture. */
export class PatchGrid {
  /** @param {Patches} patches @param {string[]} words */
  constructor({ first, rows, columns, upward }, words) {
    this.first = first;
    this.rows = rows;
    this.columns = columns;
    this.upward = upward;
    this.words = words;
  }

  /**
   * Return the position of a token on the picture: [row, col] from the upper left; null if it has none.
   * @param {number} index
   * @returns {[number, number] | null}
   */
  cell(index) {
    const at = index - this.first;
    if (at < 0 || at >= this.rows * this.columns) return null;
    return [this.transposed(Math.floor(at / this.columns)), at % this.columns];
  }

  /** @param {number} row @param {number} col */
  token(row, col) {
    return this.first + this.transposed(row) * this.columns + col;
  }

  /** @param {number} row */
  transposed(row) {
    return this.upward ? this.rows - 1 - row : row;
  }

  /** The tokens that have no position on the picture. */
  get others() {
    return [...this.words.keys()].filter((index) => !this.cell(index));
  }
}

/**
 * Return where the tokens of both sides lie on the picture; null for a side of words.
 * @param {Words & { patches?: PatchSides }} part
 * @returns {Record<Side, PatchGrid | null>}
 */
export function patchGrids({ patches, rows, columns }) {
  /** @param {Side} side @param {string[]} words */
  const of = (side, words) => (patches?.[side] ? new PatchGrid(patches[side], words) : null);
  return { rows: of("rows", rows), columns: of("columns", columns) };
}

/**
 * Describe what a picture shows of a token.
 * @param {Words} part
 * @param {Token} token
 */
export function describeToken(part, { side, index }) {
  const word = quoted(part[side][index], 40);
  return side === "rows" ? `what ${word} looks at` : `what looks at ${word}`;
}

/**
 * Return what a query looks at (side "rows") or what looks at a key ("columns"): a grid with a row for each token of the
 * other side.
 * @param {AnyGrid} grid
 * @param {Words} part
 * @param {Side} side
 * @param {number} index
 */
export function profile(grid, part, side, index) {
  const other = part[otherSide(side)];
  const values = new Float32Array(other.length);
  const state = new Uint8Array(other.length);
  const [row, col] = [finder(grid, part, "rows"), finder(grid, part, "columns")];
  let poolSize = 1;
  for (let i = 0; i < other.length; i++) {
    const cell = side === "rows" ? [row(index), col(i)] : [row(i), col(index)];
    const exists = !cell.includes(-1);
    state[i] = exists ? grid.stateAt(cell[0], cell[1]) : ABSENT;
    values[i] = exists ? grid.at(cell[0], cell[1]) : 0;
    if (exists) poolSize = Math.max(poolSize, grid.blockAt(cell[0], cell[1]));
  }
  const { scale } = grid;
  const column = new Grid(other, [part[side][index]], new Uint8Array(0), state, { values, scale, poolSize });
  return /** @type {Profile} */ (column);
}

/**
 * Make a function that finds a token in a grid, which may be in blocks or lack some keys.
 * @param {AnyGrid} grid
 * @param {Words} part
 * @param {Side} axis
 */
function finder(grid, part, axis) {
  const visibleKeys = axis === "columns" && grid instanceof Grid ? grid.visibleKeys : null;
  const count = visibleKeys && grid instanceof Grid ? grid.keys : grid[axis].length;
  let poolSize = 1; // as Python cuts them
  while (Math.ceil(part[axis].length / poolSize) > count) poolSize *= 2;
  const at = visibleKeys && new Map(visibleKeys.map((col, i) => [col, i]));
  return (/** @type {number} */ index) =>
    at ? (at.get(Math.floor(index / poolSize)) ?? -1) : Math.floor(index / poolSize);
}

/**
 * Arrange a profile as a grid of the picture's patches, in which the largest weight has the strongest colour.
 * @param {Profile} tokenProfile
 * @param {PatchGrid} patches
 * @param {number} limit
 */
export function spread(tokenProfile, patches, limit) {
  const order = Array.from({ length: patches.rows * patches.columns }, (_, i) =>
    patches.token(Math.floor(i / patches.columns), i % patches.columns),
  );
  const values = Float32Array.from(order, (index) => tokenProfile.values[index]);
  const state = Uint8Array.from(order, (index) => tokenProfile.state[index]);
  return Grid.of(numbered(patches.rows), numbered(patches.columns), values, state, {
    scale: tokenProfile.scale,
    limit,
  });
}

/** Return the end of the common scale of some profiles: their largest number. @param {Pick<Profile, "values">[]} profiles */
export const largest = (profiles) =>
  profiles.reduce((max, { values }) => values.reduce((peak, value) => Math.max(peak, Math.abs(value)), max), 0) || 1;

/**
 * Return the end of the common scale of weights on a picture, as `picture_scale` of `spec.py` does. It is well above
 * the even weight, so that the picture stays visible under a head with even weights.
 * @param {Pick<Profile, "values">[]} profiles
 * @param {number} keys
 */
export const weightLimit = (profiles, keys) =>
  Math.max(profiles.length ? largest(profiles) : 0, Math.min(1, spec.min_scale_even_weights / keys));

/**
 * Return what a token looks at, or what looks at it, in each head: a sheet shows this instead of the heads themselves.
 * @template {Words & { patches?: PatchSides }} Part
 * @param {Map<string, AnyGrid>} grids
 * @param {Part} part
 * @param {Token} token
 */
export function spreadAll(grids, part, { side, index }) {
  const patches = patchGrids(part)[otherSide(side)];
  if (!patches) return null;
  const profiles = [...grids].map(([key, grid]) => /** @type {const} */ ([key, profile(grid, part, side, index)]));
  const limit = weightLimit(
    profiles.map(([, tokenProfile]) => tokenProfile),
    part.columns.length,
  );
  const thumbs = new Map(profiles.map(([key, tokenProfile]) => [key, spread(tokenProfile, patches, limit)]));
  return { thumbs, limit, placed: { ...part, rows: numbered(patches.rows), columns: numbered(patches.columns) } };
}

/** Return the numbers from 0 as labels. @param {number} count */
export const numbered = (count) => Array.from({ length: count }, (_, i) => String(i));

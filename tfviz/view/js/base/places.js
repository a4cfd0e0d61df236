// Tokens that lie on a picture: where each has its cell, and what one of them looks at, or what looks at it.

import { ABSENT, Grid } from "./grid.js";
import { quoted } from "./pen.js";

export class Places {
  // first: tokens before those of the picture; upward: whether the first row of cells is the lowest
  constructor({ first, down, across, upward }, words) {
    this.first = first;
    this.down = down;
    this.across = across;
    this.upward = upward;
    this.words = words;
  }

  // [row, col] from the upper left; null for a token that lies nowhere.
  cell(index) {
    const at = index - this.first;
    if (at < 0 || at >= this.down * this.across) return null;
    return [this.transposed(Math.floor(at / this.across)), at % this.across];
  }

  token(row, col) {
    return this.first + this.transposed(row) * this.across + col;
  }

  transposed(row) {
    return this.upward ? this.down - 1 - row : row;
  }

  // The tokens beside the picture.
  get others() {
    return [...this.words.keys()].filter((index) => !this.cell(index));
  }
}

// Where the tokens of both sides lie; null for a side of words.
export function placesOf({ places, rows, cols }) {
  const of = (side, words) => (places?.[side] ? new Places(places[side], words) : null);
  return { rows: of("rows", rows), cols: of("cols", cols) };
}

// What a picture shows of a token, in words.
export function asks(part, { side, index }) {
  const word = quoted(part[side][index], 40);
  return side === "rows" ? `what ${word} looks at` : `what looks at ${word}`;
}

// What a query looks at (side "rows"), or what looks at a key ("cols"): a grid with a row for each token of the other side.
export function profile(grid, part, side, index) {
  const other = part[side === "rows" ? "cols" : "rows"];
  const values = new Float32Array(other.length);
  const state = new Uint8Array(other.length);
  const [row, col] = ["rows", "cols"].map((axis) => finder(grid, part, axis));
  let block = 1;
  for (let i = 0; i < other.length; i++) {
    const cell = side === "rows" ? [row(index), col(i)] : [row(i), col(index)];
    const there = !cell.includes(-1);
    state[i] = there ? grid.kind(...cell) : ABSENT;
    values[i] = there ? grid.at(...cell) : 0;
    if (there) block = Math.max(block, grid.blockAt(...cell));
  }
  return new Grid(other, [part[side][index]], null, state, { values, scale: grid.scale, block });
}

// Where a grid has a token: it may be in blocks, or without some keys.
function finder(grid, part, axis) {
  const kept = axis === "cols" ? grid.kept : null;
  const count = kept ? grid.before : grid[axis].length;
  let block = 1; // as Python cuts them
  while (Math.ceil(part[axis].length / block) > count) block *= 2;
  const at = kept && new Map(kept.map((col, i) => [col, i]));
  return (index) => (at ? (at.get(Math.floor(index / block)) ?? -1) : Math.floor(index / block));
}

// The cells of a picture from a profile: the largest weight is the strongest ink.
export function spread(found, places, limit) {
  const order = Array.from({ length: places.down * places.across }, (_, i) =>
    places.token(Math.floor(i / places.across), i % places.across),
  );
  const taken = (from) => from.constructor.from(order, (index) => from[index]);
  return Grid.of(numbered(places.down), numbered(places.across), taken(found.values), taken(found.state), {
    scale: found.scale,
    limit,
  });
}

// Where the scale of some profiles ends: at their largest number.
export const largest = (profiles) =>
  profiles.reduce((most, { values }) => values.reduce((so, value) => Math.max(so, Math.abs(value)), most), 0) || 1;

// What a token looks at, or what looks at it, in each head: what a sheet shows instead of the heads themselves.
export function spreadAll(grids, part, { side, index }) {
  const places = placesOf(part)[side === "rows" ? "cols" : "rows"];
  if (!places) return null;
  const profiles = [...grids].map(([key, grid]) => [key, profile(grid, part, side, index)]);
  const limit = largest(profiles.map(([, found]) => found));
  const thumbs = new Map(profiles.map(([key, found]) => [key, spread(found, places, limit)]));
  return { thumbs, limit, placed: { ...part, rows: numbered(places.down), cols: numbered(places.across) } };
}

const numbered = (count) => Array.from({ length: count }, (_, i) => String(i));

// The values of one heatmap with the labels of both axes, and functions that combine, filter and compare such grids.

/** @import { AnyGrid } from "../types.js" */
/** @typedef {ArrayLike<number> & Iterable<number>} NumberList */
/** @typedef {{ scale?: string, limit?: number }} GridScale */

import { roundDown, roundUp } from "./axis-ticks.js";
import { clamp } from "./numbers.js";
import spec from "./spec.json" with { type: "json" };

export const ALLOWED = 0;
export const FORBIDDEN = 1;
export const ABSENT = 2; // a query may look at the key; it may not; the pair does not exist at this step
export const MAX_MUTED_NUMBER = spec.max_muted_number; // of a scale's limit: smaller numbers are soft
export const MAX_NUMBERED_CELLS = spec.max_numbered_cells; // a grid of more cells does not show its numbers

/** @type {Record<string, (v: number) => number>} */
const FRACTION_FUNCTIONS = { root: (v) => Math.sign(v) * Math.sqrt(Math.abs(v)), linear: (v) => v };

/**
 * The scales by name. `toFraction` maps a value to its position on the scale, as in `tfviz/view/spec.py`: 0 to 1, or -1 to 1
 * on a diverging scale.
 * @type {Record<string, { toFraction: (v: number) => number, ticks: number[], diverging: boolean }>}
 */
export const SCALES = Object.fromEntries(
  Object.entries(spec.scales).map(([kind, { root, diverging, ticks }]) => [
    kind,
    { toFraction: root ? FRACTION_FUNCTIONS.root : FRACTION_FUNCTIONS.linear, ticks, diverging },
  ]),
);

/**
 * Return the numbers beside a scale: those of its rule, or round ones if it does not end at 1, and its ends; as
 * `Scale.ticks` of `tfviz/view/spec.py`.
 * @param {string} scale
 * @param {number} limit
 */
export function scaleTicks(scale, limit) {
  const { root, ticks, diverging } = spec.scales[/** @type {keyof typeof spec.scales} */ (scale)];
  if (limit === 1) return ticks;
  if (!(limit > 0)) return [0];
  const parts = ticks.filter((tick) => tick > 0 && tick < 1).map((tick) => roundDown(tick * limit));
  const step = roundUp(limit / 4, spec.tick_factors);
  const steps = [1, 2, 3].map((n) => n * step).filter((tick) => tick <= spec.max_inner_tick * limit);
  const positive = [...new Set(root ? parts : steps), limit];
  return [...(diverging ? positive.map((tick) => -tick).reverse() : []), 0, ...positive];
}

/** Return the weight of a code on the square-root scale. @param {number} code */
const weightOf = (code) => (code / 255) ** 2;

/**
 * A matrix of colour codes, one for each pair of a row and a column, with the state of each cell and the labels of both
 * axes.
 */
export class Grid {
  /** @type {Grid | null} */
  halved = null;
  /** @type {Float32Array | null} for each row, the total weight of the keys that are left out */
  rest = null;
  /** @type {number[] | null} the indices of the keys that are not hidden */
  visibleKeys = null;
  /** The number of keys before some were hidden. */
  keys = 0;

  /**
   * Make a grid. `codes` are colour indices (0 to 255; on a diverging scale 128 is zero). `state` is ALLOWED, FORBIDDEN or ABSENT for
   * each cell. `values` are the numbers themselves, where codes are not exact enough.
   * @param {string[]} rows
   * @param {string[]} columns
   * @param {Uint8Array} codes
   * @param {Uint8Array} state
   * @param {GridScale & { values?: NumberList | null, poolSize?: number }} [options]
   */
  constructor(rows, columns, codes, state, { values = null, scale = "sqrt", limit = 1, poolSize = 1 } = {}) {
    this.rows = rows;
    this.columns = columns;
    this.codes = codes;
    this.state = state;
    this.values = values;
    this.scale = scale;
    this.limit = limit;
    this.poolSize = poolSize;
  }

  /**
   * @param {string[]} rows
   * @param {string[]} columns
   * @param {NumberList} values
   * @param {Uint8Array} state
   * @param {GridScale} [gridScale]
   */
  static of(rows, columns, values, state, { scale = "sqrt", limit = 1 } = {}) {
    const codes = new Uint8Array(values.length);
    for (let i = 0; i < values.length; i++) codes[i] = codeOf(values[i], scale, limit);
    return new Grid(rows, columns, codes, state, { values, scale, limit });
  }

  get diverging() {
    return Boolean(SCALES[this.scale].diverging);
  }

  /** @param {number} row @param {number} col */
  at(row, col) {
    const i = row * this.columns.length + col;
    if (this.values) return this.values[i];
    return weightOf(this.codes[i]);
  }

  /** @param {number} row @param {number} col */
  stateAt(row, col) {
    return this.state[row * this.columns.length + col];
  }

  /** @param {number} row @param {number} col @param {number} state */
  hasState(row, col, state) {
    return this.stateAt(row, col) === state;
  }

  /**
   * Return how many cells one number stands for, down and across.
   * @param {number} [_row]
   * @param {number} [_col]
   */
  blockAt(_row, _col) {
    return this.poolSize;
  }

  /** @param {number} row */
  isFullyMasked(row) {
    // nothing that exists is allowed
    for (let col = 0; col < this.columns.length; col++) if (this.hasState(row, col, ALLOWED)) return false;
    return true;
  }

  /**
   * List the keys that a query looks at, or the queries that look at a key, strongest first: [index, value].
   * @param {number} index
   * @param {"row" | "col"} along
   * @param {number} maxCount
   */
  strongestPairs(index, along, maxCount) {
    const count = along === "row" ? this.columns.length : this.rows.length;
    /** @type {[index: number, value: number][]} */
    const pairs = [];
    for (let i = 0; i < count; i++) {
      const [row, col] = along === "row" ? [index, i] : [i, index];
      if (this.hasState(row, col, ALLOWED)) pairs.push([i, this.at(row, col)]);
    }
    return pairs.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]) || a[0] - b[0]).slice(0, maxCount);
  }

  /**
   * Return the grid at half the size. Each cell is the strongest of four, so that a small picture still shows every
   * peak.
   */
  downsample() {
    if (this.halved) return this.halved;
    const [n, m] = [this.rows.length, this.columns.length];
    const [rowCount, colCount] = [(n + 1) >> 1, (m + 1) >> 1];
    const codes = new Uint8Array(rowCount * colCount);
    const state = new Uint8Array(rowCount * colCount);
    /** @type {(a: number, b: number) => number} */
    const stronger = this.diverging ? (a, b) => (Math.abs(a - 128) > Math.abs(b - 128) ? a : b) : Math.max;
    for (let row = 0, i = 0; row < rowCount; row++) {
      const below = 2 * row + 1 < n ? m : 0; // at an odd edge, the last cell also stands for the missing one
      for (let col = 0, at = 2 * row * m; col < colCount; col++, at += 2, i++) {
        const right = 2 * col + 1 < m ? 1 : 0;
        codes[i] = stronger(
          stronger(this.codes[at], this.codes[at + right]),
          stronger(this.codes[at + below], this.codes[at + below + right]),
        );
        state[i] = Math.min(
          this.state[at],
          this.state[at + right],
          this.state[at + below],
          this.state[at + below + right],
        );
      }
    }
    /** @param {string[]} words */
    const every = (words) => words.filter((_, i) => i % 2 === 0);
    this.halved = new Grid(every(this.rows), every(this.columns), codes, state, {
      scale: this.scale,
      limit: this.limit,
    });
    return this.halved;
  }
}

/**
 * Return the colour index of a value.
 * @param {number} value
 * @param {string} scale
 * @param {number} limit
 */
export function codeOf(value, scale, limit) {
  const { toFraction, diverging } = SCALES[scale];
  const at = clamp(toFraction(value / limit), diverging ? -1 : 0, 1);
  return Math.round(diverging ? 128 + 127 * at : 255 * at);
}

/**
 * Combine several heads into one: the mean or the maximum of each cell.
 * @param {Grid[]} grids
 * @param {"mean" | "max"} how
 */
export function combine(grids, how) {
  const [first] = grids;
  if (grids.length === 1) return first;
  const values = new Float32Array(first.codes.length);
  const state = new Uint8Array(first.codes.length).fill(ABSENT);
  for (const grid of grids) {
    for (let i = 0; i < values.length; i++) {
      const value = grid.values ? grid.values[i] : weightOf(grid.codes[i]);
      values[i] = how === "max" ? Math.max(values[i], value) : values[i] + value / grids.length;
      state[i] = Math.min(state[i], grid.state[i]);
    }
  }
  return Grid.of(first.rows, first.columns, values, state);
}

/**
 * Put a grid on a linear scale if it has so few cells that each can show its number.
 * @template {AnyGrid} G
 * @param {G} grid
 * @returns {G}
 */
export function linear(grid) {
  if (!(grid instanceof Grid) || grid.scale !== "sqrt" || grid.codes.length > MAX_NUMBERED_CELLS) return grid;
  const { columns, codes, limit } = grid;
  const values = Float32Array.from(codes, (_, i) => grid.at(Math.floor(i / columns.length), i % columns.length));
  const linearized = {
    values,
    codes: Uint8Array.from(values, (value) => codeOf(value, "linear", limit)),
    scale: "linear",
  };
  return Object.assign(Object.create(Object.getPrototypeOf(grid)), grid, linearized);
}

/**
 * Return a grid without some keys, whose rows are divided by the sum of the remaining weights.
 * @param {Grid} grid
 * @param {Set<number>} hidden
 */
export function without(grid, hidden) {
  if (!hidden.size) return grid;
  const keys = grid.columns.length;
  const visibleKeys = [...grid.columns.keys()].filter((col) => !hidden.has(col));
  const values = new Float32Array(grid.rows.length * visibleKeys.length);
  const state = new Uint8Array(values.length);
  for (let row = 0; row < grid.rows.length; row++) {
    const left = visibleKeys.reduce((sum, col) => sum + grid.at(row, col), 0);
    visibleKeys.forEach((col, i) => {
      values[row * visibleKeys.length + i] = left > 0 ? grid.at(row, col) / left : 0;
      state[row * visibleKeys.length + i] = grid.state[row * keys + col];
    });
  }
  const filtered = Grid.of(
    grid.rows,
    visibleKeys.map((col) => grid.columns[col]),
    values,
    state,
  );
  return Object.assign(filtered, { visibleKeys, keys });
}

/**
 * Merge word pieces into words: weights are summed over the keys of a word and averaged over its queries.
 * @param {Grid} grid
 * @param {number[]} rowGroups
 * @param {number[]} colGroups
 */
export function merge(grid, rowGroups, colGroups) {
  const rows = mergedWords(grid.rows, rowGroups);
  const columns = mergedWords(grid.columns, colGroups);
  const values = new Float32Array(rows.length * columns.length);
  const state = new Uint8Array(values.length).fill(ABSENT);
  const sizes = rows.map((_, group) => rowGroups.filter((g) => g === group).length);
  for (let row = 0; row < grid.rows.length; row++) {
    for (let col = 0; col < grid.columns.length; col++) {
      const i = rowGroups[row] * columns.length + colGroups[col];
      values[i] += grid.at(row, col) / sizes[rowGroups[row]];
      state[i] = Math.min(state[i], grid.state[row * grid.columns.length + col]);
    }
  }
  return Grid.of(rows, columns, values, state);
}

/** Join the word pieces of each group. @param {string[]} words @param {number[]} groups */
function mergedWords(words, groups) {
  /** @type {string[]} */
  const merged = [];
  words.forEach((word, i) => {
    merged[groups[i]] = (merged[groups[i]] ?? "") + (groups[i] === groups[i - 1] ? word.replace(/^##/, "") : word);
  });
  return merged;
}

/** Return the words of two texts position by position, both where they differ. @param {string[]} first @param {string[]} second */
const bothWords = (first, second) => first.map((word, i) => (word === second[i] ? word : `${word}/${second[i]}`));

/**
 * Subtract the first grid from the second, cell by cell; names of rows and columns that differ are both given.
 * @param {Grid} first
 * @param {Grid} second
 */
export function difference(first, second) {
  const values = Float32Array.from(first.codes, (_, i) => {
    const [row, col] = [Math.floor(i / first.columns.length), i % first.columns.length];
    return second.at(row, col) - first.at(row, col);
  });
  const state = first.state.map((kind, i) => Math.min(kind, second.state[i]));
  const [rows, columns] = [bothWords(first.rows, second.rows), bothWords(first.columns, second.columns)];
  return Grid.of(rows, columns, values, state, { scale: "diverging-sqrt" });
}

/**
 * Find attention sinks: keys that draw much of the weight of all queries that may see them (Xiao et al. 2023).
 * @param {Grid} grid
 * @param {number} [threshold]
 */
export function sinks(grid, threshold = 0.3) {
  /** @type {Set<number>} */
  const sinkKeys = new Set();
  for (let col = 0; col < grid.columns.length; col++) {
    let [sum, count] = [0, 0];
    for (let row = 0; row < grid.rows.length; row++)
      if (grid.hasState(row, col, ALLOWED)) [sum, count] = [sum + grid.at(row, col), count + 1];
    if (count > 1 && sum / count >= threshold) sinkKeys.add(col);
  }
  return sinkKeys;
}

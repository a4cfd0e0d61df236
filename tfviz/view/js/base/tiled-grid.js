// A head that is too large to be held in full: a coarse overview, a finer grid of the part that is zoomed to, and exact
// rows loaded on request.

import { Grid } from "./grid.js";
import { LatestRequest } from "./latest-request.js";

/** @import { Window } from "../types.js" */
/** @typedef {{ grid: Grid, at: number[] }} Part a grid, and the row and column at which it begins */

const BLOCKS_PER_PIXEL = 1.2; // blocks of a tile for each pixel that shows it
const MARGIN_SHARE = 1 / 8; // of a tile's size, loaded around it, so that a small step needs no other tile

/** A grid that loads finer data for the visible part. It has the interface of `Grid`. */
export class TiledGrid {
  diverging = false;
  /** @type {Float32Array | null} as of a `Grid` */
  rest = null;
  /** @type {Part & { ends: number[] } | null} the last part that was loaded in detail */
  closeUp = null;
  /** @type {Map<number, Grid>} rows that were asked for */
  exactRows = new Map();
  requests = new LatestRequest();
  version = 0;

  /**
   * @param {string[]} rows
   * @param {string[]} columns
   * @param {Grid} overview in blocks
   * @param {(rows: [from: number, to: number], columns: [from: number, to: number], poolSize: number) => Promise<Grid>} ask gives a part
   */
  constructor(rows, columns, overview, ask) {
    this.rows = rows;
    this.columns = columns;
    this.overview = overview;
    this.ask = ask;
    this.scale = overview.scale;
    this.limit = overview.limit;
  }

  /**
   * Return the grid that shows a window best, and the window in that grid's cells.
   * @param {Window} window
   * @returns {[Grid, Window]}
   */
  partFor(window) {
    const part = this.finestPart(window);
    return [part.grid, inCells(part, window)];
  }

  /**
   * Return the finest grid that covers a window, and where it begins.
   * @param {Window} window
   * @returns {Part}
   */
  finestPart(window) {
    return this.closeUp && covers(this.closeUp, window) ? this.closeUp : { grid: this.overview, at: [0, 0] };
  }

  /**
   * Load a finer grid or another part if this window needs it; return whether anything was loaded.
   * @param {Window} window
   * @param {number} pixels
   */
  async refine(window, pixels) {
    let poolSize = 1;
    while (Math.max(window.width, window.height) / poolSize > BLOCKS_PER_PIXEL * pixels) poolSize *= 2;
    if (
      poolSize >= this.overview.poolSize ||
      (this.closeUp && this.closeUp.grid.poolSize <= poolSize && covers(this.closeUp, window))
    )
      return false;
    const isCurrent = this.requests.begin();
    /** @type {(from: number, size: number, count: number) => [from: number, to: number]} */
    const span = (from, size, count) => {
      const low = Math.max(0, Math.floor((from - size * MARGIN_SHARE) / poolSize) * poolSize);
      return [low, Math.min(count, Math.ceil((from + size * (1 + MARGIN_SHARE)) / poolSize) * poolSize)];
    };
    const [rows, columns] = [
      span(window.y, window.height, this.rows.length),
      span(window.x, window.width, this.columns.length),
    ];
    const grid = await this.ask(rows, columns, poolSize);
    if (!isCurrent()) return false;
    this.closeUp = { grid, at: [rows[0], columns[0]], ends: [rows[1], columns[1]] };
    this.version++;
    return true;
  }

  /**
   * Load the exact weights of a query.
   * @param {number} index
   * @returns {Promise<Grid>}
   */
  async row(index) {
    const row = this.exactRows.get(index) ?? (await this.ask([index, index + 1], [0, this.columns.length], 1));
    this.exactRows.set(index, row);
    return row;
  }

  /** The rows that were loaded. */
  get exactGrid() {
    const entries = [...this.exactRows].sort(([a], [b]) => a - b);
    /** @param {"codes" | "state"} name */
    const joined = (name) => {
      const bytes = new Uint8Array(entries.length * this.columns.length);
      entries.forEach(([, grid], i) => bytes.set(grid[name], i * this.columns.length));
      return bytes;
    };
    return new Grid(
      entries.map(([i]) => this.rows[i]),
      this.columns,
      joined("codes"),
      joined("state"),
    );
  }

  /**
   * Return the finest grid that holds a cell, and the cell's indices in it.
   * @param {number} row
   * @param {number} col
   * @returns {[Grid, number, number]}
   */
  finestCell(row, col) {
    const exact = this.exactRows.get(row);
    if (exact) return [exact, 0, col];
    const { grid, at } = this.finestPart({ x: col, y: row, width: 1, height: 1 });
    return [grid, Math.floor((row - at[0]) / grid.poolSize), Math.floor((col - at[1]) / grid.poolSize)];
  }

  /** @param {number} row @param {number} col */
  at(row, col) {
    const [grid, ...cell] = this.finestCell(row, col);
    return grid.at(...cell);
  }

  /** @param {number} row @param {number} col */
  stateAt(row, col) {
    const [grid, ...cell] = this.finestCell(row, col);
    return grid.stateAt(...cell);
  }

  /** @param {number} row @param {number} col */
  blockAt(row, col) {
    return this.finestCell(row, col)[0].poolSize;
  }

  /** @param {number} index @param {"row" | "col"} along @param {number} maxCount */
  strongestPairs(index, along, maxCount) {
    return (along === "row" && this.exactRows.get(index)?.strongestPairs(0, "row", maxCount)) || [];
  }
}

/** @param {Part & { ends: number[] }} part @param {Window} window */
const covers = ({ at, ends }, { x, y, width, height }) =>
  y >= at[0] && x >= at[1] && Math.ceil(y + height) <= ends[0] && Math.ceil(x + width) <= ends[1];

/** @param {Part} part @param {Window} window @returns {Window} */
const inCells = ({ at, grid: { poolSize } }, { x, y, width, height }) => ({
  x: (x - at[1]) / poolSize,
  y: (y - at[0]) / poolSize,
  width: width / poolSize,
  height: height / poolSize,
});

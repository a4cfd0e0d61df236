// A head too large to be held whole: an overview in blocks, a part as fine as it is looked at, rows that were asked for.

import { Grid } from "./grid.js";

const ROOM = 1.2; // blocks of a part for each pixel that shows it
const BESIDE = 1 / 8; // of a part's size, around it: so that a small step needs no other

export class TiledGrid {
  signed = false;
  close = null;
  known = new Map();
  turn = 0;
  version = 0;

  // overview: a Grid in blocks; ask: ([from, to] of rows, of columns, block) -> promise of a Grid of that part
  constructor(rows, cols, overview, ask) {
    this.rows = rows;
    this.cols = cols;
    this.overview = overview;
    this.ask = ask;
    this.scale = overview.scale;
    this.limit = overview.limit;
  }

  // What shows a window of cells best, and the window in its own cells.
  part(window) {
    const found = this.finest(window);
    return [found.grid, inCells(found, window)];
  }

  // The finest grid that covers a window, and where it begins.
  finest(window) {
    return this.close && covers(this.close, window) ? this.close : { grid: this.overview, at: [0, 0] };
  }

  // Finer, or another part, if this window needs it; whether something came.
  async look(window, pixels) {
    let block = 1;
    while (Math.max(window.wide, window.tall) / block > ROOM * pixels) block *= 2;
    if (block >= this.overview.block || (this.close && this.close.grid.block <= block && covers(this.close, window)))
      return false;
    const turn = ++this.turn;
    const span = (from, size, count) => {
      const low = Math.max(0, Math.floor((from - size * BESIDE) / block) * block);
      return [low, Math.min(count, Math.ceil((from + size * (1 + BESIDE)) / block) * block)];
    };
    const [rows, cols] = [span(window.y, window.tall, this.rows.length), span(window.x, window.wide, this.cols.length)];
    const grid = await this.ask(rows, cols, block);
    if (turn !== this.turn) return false; // what was asked last wins
    this.close = { grid, at: [rows[0], cols[0]], ends: [rows[1], cols[1]] };
    this.version++;
    return true;
  }

  // A query's weights, each exact.
  async row(index) {
    if (!this.known.has(index)) this.known.set(index, await this.ask([index, index + 1], [0, this.cols.length], 1));
    return this.known.get(index);
  }

  // The rows that were asked for.
  get exact() {
    const found = [...this.known].sort(([one], [other]) => one - other);
    const whole = (name) => {
      const made = new Uint8Array(found.length * this.cols.length);
      found.forEach(([, grid], i) => made.set(grid[name], i * this.cols.length));
      return made;
    };
    return new Grid(
      found.map(([i]) => this.rows[i]),
      this.cols,
      whole("codes"),
      whole("state"),
    );
  }

  // The finest grid that has a cell, and where it has it.
  near(row, col) {
    if (this.known.has(row)) return [this.known.get(row), 0, col];
    const { grid, at } = this.finest({ x: col, y: row, wide: 1, tall: 1 });
    return [grid, Math.floor((row - at[0]) / grid.block), Math.floor((col - at[1]) / grid.block)];
  }

  at(row, col) {
    const [grid, ...cell] = this.near(row, col);
    return grid.at(...cell);
  }

  kind(row, col) {
    const [grid, ...cell] = this.near(row, col);
    return grid.kind(...cell);
  }

  blockAt(row, col) {
    return this.near(row, col)[0].block;
  }

  strongest(index, along, most) {
    return along === "row" && this.known.has(index) ? this.known.get(index).strongest(0, "row", most) : [];
  }
}

const covers = ({ at, ends }, { x, y, wide, tall }) =>
  y >= at[0] && x >= at[1] && Math.ceil(y + tall) <= ends[0] && Math.ceil(x + wide) <= ends[1];

const inCells = ({ at, grid: { block } }, { x, y, wide, tall }) => ({
  x: (x - at[1]) / block,
  y: (y - at[0]) / block,
  wide: wide / block,
  tall: tall / block,
});

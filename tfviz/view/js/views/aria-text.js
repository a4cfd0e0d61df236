// Functions that describe the cell under the cursor and the locked rows and columns of a grid, for the status line and
// screen readers.

import { ABSENT, ALLOWED } from "../base/grid.js";
import { formatNumber } from "../base/numbers.js";
import { quoted } from "../base/visible-text.js";

/** @import { AnyGrid, Locked, Point } from "../types.js" */

/**
 * Describe the cell under the cursor. `name`: the grid's, if there are several. `top`: whether only the strongest of
 * each row are known.
 * @param {AnyGrid} grid
 * @param {Point} cell
 * @param {string} name
 * @param {boolean} top
 */
export function describeCell(grid, [row, col], name, top) {
  const where = `${quoted(grid.rows[row], 200)} → ${quoted(grid.columns[col], 200)}`;
  return `${name && `${name}: `}${where}  ${weightAt(grid, row, col, top)}`;
}

/** @param {AnyGrid} grid @param {number} row @param {number} col @param {boolean} top */
function weightAt(grid, row, col, top) {
  const kind = grid.stateAt(row, col);
  if (kind === ALLOWED) return `${grid.blockAt(row, col) > 1 ? "at most " : ""}${formatNumber(grid.at(row, col))}`;
  if (kind !== ABSENT) return "may not look";
  return top ? leftOut(grid, row) : "not there yet";
}

/** @param {AnyGrid} grid @param {number} row */
function leftOut(grid, row) {
  if (!grid.rest || grid.blockAt(row, 0) > 1) return "left out";
  return `left out; all that is left out of this row holds ${formatNumber(grid.rest[row])}`;
}

/**
 * Describe what the locked queries look at most, and what looks most at the locked keys.
 * @param {AnyGrid} grid
 * @param {Locked} locked
 */
export function describeLocked(grid, { rows, columns }) {
  /** @param {number} i @param {"row" | "col"} along @param {string[]} other */
  const pairs = (i, along, other) =>
    grid.strongestPairs(i, along, 3).map(([j, value]) => `${quoted(other[j], 40)} ${formatNumber(value)}`);
  /** @param {string} word @param {string} sign @param {string[]} entries */
  const line = (word, sign, entries) => `${quoted(word, 40)} ${sign} ${entries.join(", ") || "nothing"}`;
  const lines = [
    ...rows.map((i) => line(grid.rows[i], "→", pairs(i, "row", grid.columns))),
    ...columns.map((i) => line(grid.columns[i], "←", pairs(i, "col", grid.rows))),
  ];
  return lines.slice(0, 8).join("\n");
}

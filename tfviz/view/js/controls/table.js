// Functions that write the values a view shows as an HTML table and as CSV.

import { h } from "../base/elements.js";
import { ABSENT, ALLOWED } from "../base/grid.js";
import { formatNumber, exportedNumber } from "../base/numbers.js";
import { label } from "../base/visible-text.js";

/** @import { Grid } from "../base/grid.js" */
/** @import { AnyGrid, GridPanel } from "../types.js" */

const MAX_CELLS = 1600;
const MAX_ROWS = 100;
const MAX_KEYS = 5;

const FORBIDDEN_TEXT = "–"; // written where the mask forbids the query to look

/** @param {string} name @param {string} text */
const withName = (name, text) => (name ? `${name}: ${text}` : text);
/** @param {"row" | "col"} scope @param {string} text */
const heading = (scope, text) => h("th", { scope }, text);

/**
 * Make the table of a grid: all of a small one, the strongest keys of each query of a large one.
 * @param {GridPanel} panel
 */
export function table({ name, grid, axes = ["query", "key"] }) {
  if (grid.rows.length * grid.columns.length > MAX_CELLS) return topKeysTable(grid, axes, name);
  const rows = grid.rows.map((word, row) => [label(word), ...grid.columns.map((_, col) => cellText(grid, row, col))]);
  const caption = rows.some((cells) => cells.includes(FORBIDDEN_TEXT, 1))
    ? withName(name, `${FORBIDDEN_TEXT} may not look`)
    : name;
  return tableElement(caption, [`${axes[0]} ↓ ${axes[1]} →`, ...grid.columns.map((word) => label(word))], rows);
}

/**
 * Make a table of the strongest keys of each query.
 * @param {AnyGrid} grid
 * @param {string[]} axes
 * @param {string} name
 */
function topKeysTable(grid, axes, name) {
  const rows = grid.rows.slice(0, MAX_ROWS).map((word, row) => {
    const pairs = grid
      .strongestPairs(row, "row", MAX_KEYS)
      .map(([col, value]) => `${label(grid.columns[col])} ${formatNumber(value)}`);
    return [`${row} ${label(word)}`, pairs.join(", ") || "–"];
  });
  const caption =
    grid.rows.length > MAX_ROWS
      ? `the first ${MAX_ROWS} of ${grid.rows.length} rows; CSV has them all`
      : `the ${MAX_KEYS} strongest of each row; CSV has them all`;
  return tableElement(withName(name, caption), [axes[0], `${axes[1]} with weight`], rows, "text");
}

/**
 * Make a table with a number for each head, such as its sharpness.
 * @param {{ layers: number, heads: number }} part
 * @param {(layer: number, head: number) => string} value
 */
export function headTable(part, value) {
  const heads = [...Array(part.heads).keys()];
  const rows = Array.from({ length: part.layers }, (_, layer) => [
    `${layer}`,
    ...heads.map((head) => value(layer, head)),
  ]);
  return tableElement(
    "weight of the strongest key, mean over the queries",
    ["layer ↓ head →", ...heads.map(String)],
    rows,
  );
}

/**
 * Make a table of texts.
 * @param {string} caption
 * @param {string[]} head the names of the columns
 * @param {string[][]} rows the name of each, then its cells
 * @param {string} [kind] the class of its cells
 */
export const tableElement = (caption, head, rows, kind) =>
  h(
    "table",
    {},
    caption && h("caption", {}, caption),
    h("thead", {}, h("tr", {}, ...head.map((text) => heading("col", text)))),
    h(
      "tbody",
      {},
      ...rows.map(([name, ...cells]) =>
        h("tr", {}, heading("row", name), ...cells.map((text) => h("td", { class: kind }, text))),
      ),
    ),
  );

/**
 * Write a cell of a table: its number, or a sign where there is none.
 * @param {AnyGrid} grid
 * @param {number} row
 * @param {number} col
 */
function cellText(grid, row, col) {
  const kind = grid.stateAt(row, col);
  if (kind === ALLOWED || !Number.isFinite(grid.at(row, col))) return formatNumber(grid.at(row, col));
  return kind === ABSENT ? "" : FORBIDDEN_TEXT;
}

/** Join grids as CSV, one after another, each below its name if it has one; the corner names the axes. @param {GridPanel<Grid>[]} panels */
export const csvs = (panels) =>
  panels
    .map(({ name, grid, axes }) => (name ? `${cell(name)}\r\n` : "") + csv(grid, axes?.filter(Boolean).join("/")))
    .join("\r\n");

// A word that a spreadsheet would run as a formula has an apostrophe before it, as OWASP advises; a number is none.
const FORMULA = /^(?![+-]?\d+([.,]\d+)?$)[=+\-@\t\r\n＝＋－＠]/;
/** @param {string} text */
const cell = (text) => `"${FORMULA.test(text) ? "'" : ""}${text.replace(/"/g, '""')}"`;

/**
 * Write a grid as CSV: a line for each query; cells that may not be looked at are empty.
 * @param {Grid} grid
 * @param {string} [corner]
 */
export function csv(grid, corner = "query/key") {
  const lines = [[corner, ...grid.columns].map(cell).join(",")];
  grid.rows.forEach((word, row) => {
    const cells = grid.columns.map((_, col) =>
      grid.hasState(row, col, ALLOWED) ? exportedNumber(grid.at(row, col)) : "",
    );
    lines.push([cell(word), ...cells].join(","));
  });
  return lines.join("\r\n") + "\r\n";
}

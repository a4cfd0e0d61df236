// The part of a heatmap that is shown: zoom, pan, reveal, and the cell under a point.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { near, stub } from "./helpers.js";
import { Grid } from "../../tfviz/view/js/base/grid.js";
import { Heatmap } from "../../tfviz/view/js/views/heatmap.js";

/** @param {number} count @param {string} letter */
const words = (count, letter) => Array.from({ length: count }, (_, i) => `${letter}${i}`);

/** A heatmap of `rows` x `columns` cells, placed in 600 pixels. */
function placed(rows = 20, columns = 40) {
  const grid = new Grid(
    words(rows, "q"),
    words(columns, "k"),
    new Uint8Array(rows * columns),
    new Uint8Array(rows * columns),
  );
  const map = new Heatmap(stub({}));
  map.layout(grid, 600);
  return map;
}

/** @param {Heatmap} map */
const shown = ({ window: { x, y, width, height } }) => [x, y, width, height];

test("at first all cells are shown", () => {
  assert.deepEqual(shown(placed()), [0, 0, 40, 20]);
  assert.equal(placed().zoomed, false);
});

test("zoom keeps the point it is about, across and down each by itself", () => {
  const map = placed();
  map.zoom(2, 0.25, 0.75);
  near(shown(map), [5, 7.5, 20, 10]);
  near([map.window.x + 0.25 * 20, map.window.y + 0.75 * 10], [0.25 * 40, 0.75 * 20]);
  assert.ok(map.zoomed);
});

test("zoom out ends where all cells are shown, zoom in at four cells", () => {
  const map = placed();
  map.zoom(1000, 1, 1);
  near(shown(map), [36, 18, 4, 2]);
  map.zoom(1 / 1000, 0, 0);
  near(shown(map), [0, 0, 40, 20]);
});

test("pan goes as far as there are cells", () => {
  const map = placed();
  map.zoom(2, 0, 0);
  map.pan(3, -5);
  near(shown(map), [3, 0, 20, 10]);
  map.pan(100, 100);
  near(shown(map), [20, 10, 20, 10]);
});

test("reveal brings a cell in whole, by the shortest way, and leaves one in sight alone", () => {
  const map = placed();
  map.zoom(2, 0, 0); // columns 0 to 19, rows 0 to 9
  map.reveal([9, 19]);
  near(shown(map), [0, 0, 20, 10]);
  map.reveal([10, 20]);
  near(shown(map), [1, 1, 20, 10]);
  map.reveal([0, 5]);
  near(shown(map), [1, 0, 20, 10]);
  map.reveal([19, 0]);
  near(shown(map), [0, 10, 20, 10]);
});

test("a point is in the cell whose box holds it, also where the map is zoomed", () => {
  const map = placed();
  map.zoom(2, 0.5, 0.5);
  for (const [row, col] of [
    [5, 10],
    [14, 29],
    [9, 17],
  ]) {
    const [x, y, width, height] = map.box(row, col);
    assert.deepEqual(map.cell(x + 0.01 * width, y + 0.01 * height), [row, col]);
    assert.deepEqual(map.cell(x + 0.99 * width, y + 0.99 * height), [row, col]);
  }
  const [x, y] = map.box(5, 10);
  assert.deepEqual(map.cell(map.left, map.top), [5, 10]);
  assert.deepEqual(map.cell(map.left + map.mapWidth, map.top + map.mapHeight), [null, null]);
  assert.deepEqual(map.cell(x - 1, y + 1), [5, null]);
  assert.deepEqual(map.cell(x + 1, y - 1), [null, 10]);
});

test("cells are square in a square map, and no cell is more than four times as long as wide", () => {
  /** @param {Heatmap} map */
  const side = (map) => map.box(0, 0).slice(2);
  const [wide, tall] = side(placed(9, 9));
  assert.equal(wide, tall);
  const [broad, low] = side(placed(200, 2));
  assert.ok(broad <= 4 * low + 1e-9);
});

test("another grid of the same size keeps the part that is shown, one of another size does not", () => {
  const map = placed();
  map.zoom(2, 0, 0);
  map.layout(placed().grid, 500);
  near(shown(map), [0, 0, 20, 10]);
  map.layout(placed(7, 9).grid, 500);
  near(shown(map), [0, 0, 9, 7]);
});

test("the numbers of a scale with signs have room beside the cells", () => {
  const cells = 20 * 40;
  const grid = Grid.of(words(20, "q"), words(40, "k"), new Float32Array(cells), new Uint8Array(cells), {
    scale: "diverging",
    limit: 0.71,
  });
  const map = new Heatmap(stub({}));
  map.layout(grid, 600);
  const [gap, bar] = [14, 15];
  assert.ok(map.width - map.left - map.mapWidth >= gap + bar + 6 * "−0.36".length);
});

test("numbers below a twentieth of the scale are soft, the others have the ink of their shade", () => {
  const [wide, cells] = [3, [0.049, 0.051, 0.9]];
  const grid = Grid.of(["q"], words(wide, "k"), Float32Array.from(cells), new Uint8Array(wide), { scale: "linear" });
  const theme = stub({ soft: "soft", lut: () => [], inkOn: () => "ink" });
  const map = new Heatmap(theme);
  map.layout(grid, 600);
  /** @type {[string, string][]} */
  const written = [];
  const pen = stub({
    text: (/** @type {[number, number, string, { fill: string }]} */ ...[, , text, { fill }]) =>
      written.push([text, fill]),
  });
  map.drawCellTexts(pen);
  assert.deepEqual(written, [
    ["0.05", "soft"],
    ["0.05", "ink"],
    ["0.90", "ink"],
  ]);
});

test("the mark of a row ends where the map does, and is left out where the row is out of sight", () => {
  const map = placed();
  map.zoom(2, 0, 0); // rows 0 to 9
  map.pan(0, 4.5); // rows 4.5 to 14.5
  /** @type {[number, number][]} */
  const marks = [];
  const pen = stub({
    rect: (/** @type {[number, number, number, number]} */ ...[, top, , height]) => marks.push([top, height]),
  });
  for (const row of [0, 3, 4, 14, 15, 19]) map.drawRowMark(pen, row);
  const rowHeight = map.mapHeight / 10;
  near(marks.flat(), [map.top, rowHeight / 2, map.top + 9.5 * rowHeight, rowHeight / 2]);
});

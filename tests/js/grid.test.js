// Grids: values and codes, what is made of several, halves, the strongest cells; and cells as pixels.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { near, stub } from "./helpers.js";

import * as grids from "../../tfviz/view/js/base/grid.js";
import { paint } from "../../tfviz/view/js/base/paint.js";

const { ABSENT, codeOf, combine, difference, FORBIDDEN, Grid, linear, merge, ALLOWED, without } = grids;

/** @param {string[]} rows @param {string[]} columns @param {number[]} values @param {number[]} [state] @param {object} [options] */
const grid = (rows, columns, values, state = values.map(() => ALLOWED), options = {}) =>
  Grid.of(rows, columns, Float32Array.from(values), Uint8Array.from(state), options);

test("a code is the root of a weight, and 128 is zero where values have a sign", () => {
  assert.deepEqual(
    [0, 0.25, 1, 2].map((value) => codeOf(value, "sqrt", 1)),
    [0, 128, 255, 255],
  );
  assert.deepEqual(
    [-2, 0, 1, 2].map((value) => codeOf(value, "diverging", 2)),
    [1, 128, 192, 255],
  );
  near([new Grid(["q"], ["k"], Uint8Array.of(51), Uint8Array.of(ALLOWED)).at(0, 0)], [0.04]);
});

test("a row is dead where nothing in it is open", () => {
  const some = grid(["a", "b"], ["c", "d"], [0, 0, 0, 0], [FORBIDDEN, FORBIDDEN, FORBIDDEN, ALLOWED]);
  assert.deepEqual([some.isFullyMasked(0), some.isFullyMasked(1)], [true, false]);
});

test("the strongest are open cells, largest first whatever their sign, of equal ones the first", () => {
  const some = grid(["q"], [..."abcde"], [0.1, 0.4, -0.4, 0.9, 0.2], [0, 0, 0, FORBIDDEN, 0], { scale: "diverging" });
  assert.deepEqual(
    some.strongestPairs(0, "row", 3).map(([col]) => col),
    [1, 2, 4],
  );
  assert.deepEqual(some.strongestPairs(3, "col", 3), []);
  assert.deepEqual(
    some.strongestPairs(1, "col", 3).map(([row]) => row),
    [0],
  );
});

test("half a grid keeps the strongest of four cells, also at odd edges", () => {
  const half = grid(
    [..."abc"],
    [..."def"],
    [0, 0.04, 0.16, 0.01, 0, 0, 0, 0, 1],
    [1, 1, 1, 0, 1, 1, 2, 2, 2],
  ).downsample();
  assert.deepEqual(
    [half.rows, half.columns],
    [
      ["a", "c"],
      ["d", "f"],
    ],
  );
  near([half.at(0, 0), half.at(0, 1), half.at(1, 0), half.at(1, 1)], [0.04, 0.16, 0, 1]);
  assert.deepEqual([...half.state], [ALLOWED, FORBIDDEN, ABSENT, ABSENT]);
  const signed = grid([..."ab"], [..."cd"], [0.2, -0.5, 0, 0.1], undefined, { scale: "diverging" }).downsample();
  assert.equal(signed.codes[0], codeOf(-0.5, "diverging", 1));
});

test("several heads are their mean or their maximum, open where any of them is", () => {
  const two = [grid(["q"], ["a", "b"], [0.2, 0], [ALLOWED, FORBIDDEN]), grid(["q"], ["a", "b"], [0.6, 0.4])];
  near(combine(two, "mean").values, [0.4, 0.2]);
  near(combine(two, "max").values, [0.6, 0.4]);
  assert.deepEqual([...combine(two, "mean").state], [ALLOWED, ALLOWED]);
});

test("without some keys each row is divided by what is left of it", () => {
  const made = without(grid(["q", "r"], [..."abc"], [0.5, 0.3, 0.2, 1, 0, 0]), new Set([0]));
  near(made.values, [0.6, 0.4, 0, 0]);
  assert.deepEqual([made.columns, made.visibleKeys, made.keys], [["b", "c"], [1, 2], 3]);
});

test("pieces become words: summed over the keys of a word, averaged over its queries", () => {
  const made = merge(
    grid(["un", "##do", "it"], ["a", "##b", "c"], [0.1, 0.2, 0.7, 0.3, 0.4, 0.3, 0, 0, 1]),
    [0, 0, 1],
    [0, 0, 1],
  );
  assert.deepEqual(
    [made.rows, made.columns],
    [
      ["undo", "it"],
      ["ab", "c"],
    ],
  );
  near(made.values, [0.5, 0.5, 0, 1]);
});

test("a difference is the second minus the first", () => {
  const made = difference(grid(["q"], ["a", "b"], [0.5, 0.5]), grid(["q"], ["a", "b"], [0.25, 0.75]));
  near(made.values, [-0.25, 0.25]);
  assert.ok(made.diverging);
});

test("few cells stand on a linear scale", () => {
  assert.equal(linear(grid(["q"], ["a"], [0.25])).codes[0], Math.round(255 / 4));
  const many = grid(Array(11).fill("q"), Array(10).fill("k"), Array(110).fill(0.25));
  assert.equal(linear(many), many);
});

test("a pixel is the strongest cell under it, a forbidden cell is hatched", () => {
  globalThis.ImageData = stub(
    class {
      constructor(/** @type {number} */ width, /** @type {number} */ height) {
        Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) });
      }
    },
  );
  const lut = Uint32Array.from({ length: 256 }, (_, code) => code);
  const theme = stub({ lut: () => lut, blank: 1000, hatched: 2000 });
  /** @param {ReturnType<typeof grid>} some @param {import("../../tfviz/view/js/types.js").Window} window @param {number} width @param {number} height */
  const pixels = (some, window, width, height) =>
    new Uint32Array(paint(some, window, width, height, theme).data.buffer);
  const some = grid([..."ab"], [..."cdef"], [0, 0.04, 0.16, 0, 0, 0, 0, 1], [0, 0, 0, 0, FORBIDDEN, FORBIDDEN, 0, 0]);
  const all = { x: 0, y: 0, width: 4, height: 2 };
  assert.deepEqual([...pixels(some, all, 4, 2)], [0, 51, 102, 0, 1000, 1000, 0, 255]);
  assert.deepEqual([...pixels(some, all, 2, 1)], [51, 255]);
  assert.deepEqual([...pixels(some, { x: 2, y: 0, width: 2, height: 1 }, 4, 1)], [102, 102, 0, 0]);
  assert.deepEqual(
    [...pixels(grid(["a"], [..."bc"], [0.04, 0], [ALLOWED, FORBIDDEN]), { ...all, width: 2, height: 1 }, 1, 1)],
    [51],
  );
  const hatched = pixels(grid(["a"], ["b"], [0], [FORBIDDEN]), { x: 0, y: 0, width: 1, height: 1 }, 12, 12);
  assert.equal(hatched.filter((pixel) => pixel === 2000).length, 24); // a stripe each six pixels
});

test("a difference names both words of a row or column where they differ", () => {
  const grid = (/** @type {string[]} */ rows, /** @type {string[]} */ columns) =>
    Grid.of(rows, columns, Float32Array.of(0.25, 0.5), new Uint8Array(2));
  const found = difference(grid(["the"], ["the", "cat"]), grid(["a"], ["the", "dog"]));
  assert.deepEqual([found.rows, found.columns], [["the/a"], ["the", "cat/dog"]]);
});

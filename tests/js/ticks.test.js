// The numbers beside a line chart, and the names below it.

import assert from "node:assert/strict";
import { test } from "node:test";
import "./stubs.js";
import { axisTicks, logTicks } from "../../tfviz/view/js/base/axis-ticks.js";
import { levels, ticks } from "../../tfviz/view/js/interact/ticks.js";

/** @type {[number, number, number[]][]} */
const HEIGHTS = [
  [0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  [0, 1.5, [0, 0.5, 1, 1.5]],
  [0, 2, [0, 0.5, 1, 1.5, 2]],
  [0, 3, [0, 1, 2, 3]],
  [0, 80, [0, 20, 40, 60, 80]],
  [0, 0.006, [0, 0.002, 0.004, 0.006]],
  [-2, 0, [-2, -1.5, -1, -0.5, 0]],
  [-1, 3, [-1, 0, 1, 2, 3]],
  [-0.3, 8, [0, 2, 4, 6, 8]], // the lower end would lie on 0's number
];
for (const [min, max, expected] of HEIGHTS)
  test(`heights from ${min} to ${max}`, () => assert.deepEqual(levels(min, max), expected));

test("heights of a scale with the last bit off", () =>
  assert.deepEqual(levels(0, 0.30000000000000004), [0, 0.1, 0.2, 0.3]));

const names = (/** @type {number} */ count, /** @type {(i: number) => string} */ name) =>
  Array.from({ length: count }, (_, i) => name(i));
const shown = (/** @type {string[]} */ all, /** @type {number} */ most) => ticks(all, most).map(([, name]) => name);

test("numbers have ticks at round ones, and whole ones no decimals", () => {
  assert.deepEqual(
    shown(
      names(41, (i) => (i / 2).toFixed(1)),
      8,
    ),
    ["0", "5", "10", "15", "20"],
  );
  assert.deepEqual(
    shown(
      names(60, (i) => String(i + 1)),
      7,
    ),
    ["10", "20", "30", "40", "50", "60"],
  );
  assert.deepEqual(
    shown(
      names(9, (i) => (i / 8).toFixed(3)),
      4,
    ),
    ["0.000", "0.500", "1.000"],
  );
});

test("a tick stands at the place of its number", () =>
  assert.deepEqual(
    ticks(
      names(60, (i) => String(i + 1)),
      7,
    )[0],
    [9, "10"],
  ));

test("words, and numbers that are not evenly spaced, have a tick every so many", () => {
  assert.deepEqual(shown(["a", "b", "c", "d"], 9), ["a", "b", "c", "d"]);
  assert.deepEqual(
    shown(
      names(12, (i) => `w${i}`),
      4,
    ),
    ["w0", "w5", "w10"],
  );
  assert.deepEqual(shown(["1", "2", "4", "8", "16"], 9), ["1", "2", "4", "8", "16"]);
  assert.deepEqual(shown(["3", "2", "1"], 9), ["3", "2", "1"]);
  assert.deepEqual(shown(["", "1", "2"], 9), ["", "1", "2"]);
});

test("a single place has its name", () => {
  assert.deepEqual(ticks(["one"], 3), [[0, "one"]]);
  assert.deepEqual(ticks(["7"], 3), [[0, "7"]]);
});

/** @type {[number, number, number, string[]][]} */
const AXES = [
  [0, 1, 5, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]],
  [-3.2, 41, 4, ["0", "20", "40"]],
  [0.013, 0.0412, 3, ["0.02", "0.03", "0.04"]],
  [-0.6, 0.6, 3, ["−0.5", "0.0", "0.5"]],
  [12_000, 31_000, 2, ["20,000", "30,000"]],
  [5, 5, 4, []],
  [3, 2, 4, []],
];
for (const [low, high, most, expected] of AXES)
  test(`an axis from ${low} to ${high}`, () =>
    assert.deepEqual(
      axisTicks(low, high, most).map(([, text]) => text),
      expected,
    ));

/** @type {[number, number, number, string[]][]} */
const DECADES = [
  [0.006, 1.3, 8, ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]],
  [0.006, 1.3, 3, ["0.01", "0.1", "1"]],
  [1, 1e6, 4, ["1", "100", "10,000", "1,000,000"]],
  [0.3, 0.4, 5, []],
];
for (const [low, high, most, expected] of DECADES)
  test(`powers of ten from ${low} to ${high}, at most ${most}`, () =>
    assert.deepEqual(
      logTicks(low, high, most).map(([, text]) => text),
      expected,
    ));

// The numbers beside a line chart, and the names below it.

import assert from "node:assert/strict";
import { test } from "node:test";
import "./stubs.js";
import { axisTicks, logTicks } from "../../tfviz/view/js/base/axis-ticks.js";
import { levels } from "../../tfviz/view/js/interact/ticks.js";

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

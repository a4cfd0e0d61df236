// The list of the keys that a query looks at most.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { stub } from "./helpers.js";
import { FORBIDDEN, Grid } from "../../tfviz/view/js/base/grid.js";
import { drawRowBars } from "../../tfviz/view/js/views/row-bars.js";

/** The texts and the lengths of the bars that are drawn for one row. @param {number[]} weights @param {number} height @param {number[]} [forbidden] */
function listed(weights, height, forbidden = []) {
  const tokens = weights.map((_, i) => "abcdefghij"[i]);
  const state = new Uint8Array(weights.length).map((_, i) => (forbidden.includes(i) ? FORBIDDEN : 0));
  const grid = Grid.of(["q"], tokens, Float32Array.from(weights), state, { scale: "sqrt" });
  /** @type {string[]} */
  const texts = [];
  /** @type {number[]} */
  const bars = [];
  const pen = stub({
    text: (/** @type {[number, number, string]} */ ...[, , text]) => texts.push(text.replace(/[\u2068\u2069]/g, "")),
    rect: (/** @type {[number, number, number, number, { fill: string }]} */ ...[, , width, , { fill }]) => {
      if (fill === "ramp") bars.push(width);
    },
  });
  drawRowBars(pen, stub({ ramp: "ramp" }), grid, 0, [0, 0, 300, height]);
  return { texts, bars };
}

test("the keys of a query are listed by weight, small ones left out", () => {
  const { texts, bars } = listed([0.25, 0.004, 0.5, 0.246], 400);
  assert.deepEqual(texts, ["“q” looks at", "“c”", "50%", "“a”", "25%", "“d”", "25%"]);
  assert.ok(Math.abs(bars[0] / bars[1] - 2) < 1e-6);
});

test("a forbidden key is not listed, and one key always is", () => {
  assert.deepEqual(listed([0.9, 0.001, 0.002], 400, [0]).texts, ["“q” looks at", "“c”", "0.2%"]);
});

test("a low map has room for fewer keys, or none", () => {
  assert.equal(listed([0.3, 0.3, 0.2, 0.2], 30 + 2 * 26).bars.length, 2);
  assert.deepEqual(listed([0.5, 0.5], 40), { texts: [], bars: [] });
});

// The lists beside a map: the keys that a query looks at most, and the distances at which all queries look.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { stub } from "./helpers.js";
import { FORBIDDEN, Grid } from "../../tfviz/view/js/base/grid.js";
import { distanceWeights, drawRowBars } from "../../tfviz/view/js/views/row-bars.js";

/** What is drawn for one row between two texts. @param {number[]} weights @param {number} height @param {number[]} [forbidden] */
function listed(weights, height, forbidden = []) {
  const tokens = weights.map((_, i) => "abcdefghij"[i]);
  const state = new Uint8Array(weights.length).map((_, i) => (forbidden.includes(i) ? FORBIDDEN : 0));
  return drawn(Grid.of(["q"], tokens, Float32Array.from(weights), state, { scale: "sqrt" }), 0, height);
}

/** A causal map of these tokens. @param {string} tokens @param {number[][]} weights of each query */
function causal(tokens, weights) {
  const padded = weights.map((row, i) => Float32Array.from({ length: weights.length }, (_, j) => (j > i ? 0 : row[j])));
  const state = padded.flatMap((row, i) => [...row].map((_, j) => (j > i ? FORBIDDEN : 0)));
  const values = padded.flatMap((row) => [...row]);
  return Grid.of([...tokens], [...tokens], values, Uint8Array.from(state), { scale: "sqrt" });
}

/** The texts and the lengths of the bars that are drawn. @param {Grid} grid @param {number} query @param {number} height */
function drawn(grid, query, height) {
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
  drawRowBars(pen, stub({ ramp: "ramp" }), grid, query, [0, 0, 300, height]);
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

test("distances are averaged over the queries that may look at several keys", () => {
  const grid = causal("abc", [[1], [0.8, 0.2], [0.1, 0.6, 0.3]]);
  const means = [...distanceWeights(grid)].sort().map(([distance, weight]) => [distance, Number(weight.toFixed(6))]);
  assert.deepEqual(means, [[-1, 0.7], [-2, 0.05], [0, 0.25]]); // prettier-ignore
});

test("distances are listed below the keys, the nearest four and what is left, where there is room", () => {
  const grid = causal("abcdef", [
    [1],
    [0.5, 0.5],
    [0, 1, 0],
    [0.1, 0.1, 0.8, 0],
    [0, 0.2, 0, 0.6, 0.2],
    [0.2, 0, 0.2, 0, 0.6, 0],
  ]);
  const { texts } = drawn(grid, 1, 500);
  assert.deepEqual(texts.slice(0, 5), ["“b” looks at", "“a”", "50%", "“b”", "50%"]);
  assert.deepEqual(texts.slice(5), ["All letters look, on average", "1 back", "70%", "at itself", "14%", "3 back", "10%", "5 back", "4%", "elsewhere", "2%"]); // prettier-ignore
  assert.equal(drawn(grid, 1, 30 + 2 * 26 + 40).texts.length, 5);
});

test("distances mean nothing between two texts, or for numbers that are no weights", () => {
  assert.deepEqual(listed([0.6, 0.4], 400).texts, ["“q” looks at", "“a”", "60%", "“b”", "40%"]);
  assert.deepEqual(drawn(causal("ab", [[3], [0.5, 2]]), 1, 400).texts.length, 5);
});

// How the weights of one query are computed, by hand.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { near } from "./helpers.js";
import { FORBIDDEN, ALLOWED } from "../../tfviz/view/js/base/grid.js";
import { visibleKeys, neuronPanels, neuronParts } from "../../tfviz/view/js/views/neuron-parts.js";

const VECTORS = {
  query: Float32Array.of(2, -1),
  keys: Float32Array.of(1, 1, 0, 3, 4, 0),
  scale: 0.5,
  bias: Float32Array.of(0, -1, 9),
  state: Uint8Array.of(ALLOWED, ALLOWED, FORBIDDEN),
};

test("sum x scale + bias is the score, whose softmax is the weight", () => {
  const { products, sums, scores, weights } = neuronParts(VECTORS);
  near([...products], [2, -1, 0, -3, 8, 0]);
  near([...sums], [1, -3, 8]);
  near([...scores.subarray(0, 2)], [0.5, -2.5]);
  assert.equal(scores[2], -Infinity);
  near([...weights], [1 / (1 + Math.exp(-3)), 1 / (1 + Math.exp(3)), 0]);
});

test("a query that may look nowhere has no weight", () => {
  const { weights } = neuronParts({ ...VECTORS, state: Uint8Array.of(FORBIDDEN, FORBIDDEN, FORBIDDEN) });
  near([...weights], [0, 0, 0]);
});

test("the keys with the largest weights are shown in the order of the text", () => {
  const parts = { ...neuronParts(VECTORS), weights: Float64Array.of(0.1, 0.4, 0.2, 0.3) };
  assert.deepEqual(visibleKeys(parts, 4), [0, 1, 2, 3]);
  assert.deepEqual(visibleKeys(parts, 2), [1, 3]);
});

test("a table has each step for each key, and no score where the query may not look", () => {
  const [{ grid }] = neuronPanels(VECTORS, neuronParts(VECTORS), ["a", "b", "c"], "q");
  assert.deepEqual(grid.rows, ["a", "b", "c"]);
  near(
    [0, 1, 2, 3].map((col) => grid.at(1, col)),
    [-3, 0.5, -1, -2.5],
  );
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((col) => grid.hasState(2, col, ALLOWED)),
    [true, true, false, false, false],
  );
});

// Tags in the corners of small maps.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { FORBIDDEN, Grid } from "../../tfviz/view/js/base/grid.js";
import { cornerTag } from "../../tfviz/view/js/views/head-tags.js";

/** A map in which each query looks `back` keys back, causal or not. @param {number} length @param {number} back @param {boolean} [causal] */
function looking(length, back, causal = true) {
  const [values, state] = [new Float32Array(length ** 2), new Uint8Array(length ** 2)];
  for (let row = 0; row < length; row++) {
    values[row * length + Math.max(0, row - back)] = 1;
    if (causal) state.fill(FORBIDDEN, row * length + row + 1, (row + 1) * length);
  }
  const tokens = Array.from({ length }, (_, i) => String.fromCharCode(97 + i));
  return Grid.of(tokens, tokens, values, state, { scale: "sqrt" });
}

test("a causal map says what its head looks at, as it fits", () => {
  assert.equal(cornerTag(looking(9, 0), 90, 12), "itself");
  assert.equal(cornerTag(looking(9, 1), 90, 12), "1 back");
  assert.equal(cornerTag(looking(9, 1), 50, 12), "−1");
  assert.equal(cornerTag(looking(9, 1), 20, 12), "");
});

test("a map without a free corner has no tag", () => assert.equal(cornerTag(looking(9, 1, false), 90, 12), ""));

test("numbers that are no weights have no tag", () => {
  const map = looking(9, 1);
  for (let i = 0; i < 81; i++) /** @type {Float32Array} */ (map.values)[i] *= 3;
  assert.equal(cornerTag(map, 90, 12), "");
});

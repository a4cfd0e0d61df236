// What several tests need.

import assert from "node:assert/strict";

/**
 * Let a part stand for the whole where a test needs no more of it.
 * @param {any} part
 * @returns {any}
 */
export const stub = (part) => part;

/**
 * @param {ArrayLike<number> | null} actual
 * @param {ArrayLike<number>} expected
 * @param {number} [tolerance]
 */
export function near(actual, expected, tolerance = 1e-6) {
  assert.ok(actual);
  assert.equal(actual.length, expected.length);
  Array.from(expected).forEach((value, i) =>
    assert.ok(
      Object.is(actual[i], value) || Math.abs(actual[i] - value) < tolerance,
      `${i}: ${actual[i]}, not ${value}`,
    ),
  );
}

/** A pen that notes what it is told to draw, by the name of its method. */
export function recorder() {
  /** @type {Record<"line" | "rect" | "text", any[][]>} */
  const calls = { line: [], rect: [], text: [] };
  const pen = stub({
    line: (/** @type {any[]} */ ...given) => calls.line.push(given),
    rect: (/** @type {any[]} */ ...given) => calls.rect.push(given),
    text: (/** @type {any[]} */ ...given) => calls.text.push(given),
  });
  return { pen, calls };
}

/** @param {number[]} shape @param {ArrayLike<number>} data @returns {any} a tensor of the engine */
export const tensor = (shape, data) => ({ shape, dtype: "float32", data: Float32Array.from(data) });

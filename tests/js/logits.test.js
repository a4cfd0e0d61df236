// The arithmetic of logits, on numbers worked out by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { near } from "./helpers.js";
import * as logits from "../../tfviz/view/js/studios/logits.js";

const { largest, logOdds, logSoftmax, logSumExp, normalized, softmax, tokenLosses, topK } = logits;
const EXACT = 1e-12;
const { log } = Math;

test("a softmax is exponentials over their sum, of logits however large, and 0 where a logit is -Infinity", () => {
  near(softmax([0, log(3), log(4)]), [1 / 8, 3 / 8, 4 / 8], EXACT);
  near(softmax([1000, 1000 + log(3)]), [1 / 4, 3 / 4], EXACT);
  near(softmax([-Infinity, 2, -Infinity, 2]), [0, 1 / 2, 0, 1 / 2], EXACT);
});

test("a temperature divides the logits", () => {
  near(softmax([0, log(3)], 0.5), [1 / 10, 9 / 10], EXACT);
  near(softmax([0, log(9)], 2), [1 / 4, 3 / 4], EXACT);
});

test("the logs of a softmax are exact where the softmax itself is 0", () => {
  near(logSoftmax([0, log(3)]), [log(1 / 4), log(3 / 4)], EXACT);
  near(logSoftmax([0, 2000]), [-2000, 0], EXACT);
});

test("the log of a sum of exponentials", () => {
  near([logSumExp([log(2), log(3), log(5)])], [log(10)], EXACT);
  near([logSumExp([1000, 1000])], [1000 + log(2)], EXACT);
  assert.equal(logSumExp([]), -Infinity);
});

test("numbers are divided by their sum", () => near(normalized(Float64Array.of(1, 3, 0)), [1 / 4, 3 / 4, 0], EXACT));

test("a token costs minus the log of the probability that the row before it gave", () => {
  const rows = Float32Array.of(0, 0, 0, 0, 0, 30); // two of three tokens
  near(tokenLosses(rows, [1, 2, 2], 3), [log(3), 0], EXACT);
  near(tokenLosses(rows, [1, 0, 0], 3), [log(3), 30], EXACT);
  assert.deepEqual(tokenLosses(rows, [1], 3), []);
});

test("log-odds are those of one label against all others", () => {
  const three = Float32Array.of(0, 1, 0);
  near([logOdds(three, 0)], [-log(1 + Math.E)], EXACT);
  near([logOdds(three, 1)], [1 - log(2)], EXACT);
  assert.equal(logOdds(Float32Array.of(3), 0), Infinity);
});

test("the largest values are in order, of equal ones the first", () => {
  assert.deepEqual(topK([1, 5, 5, 2, 7], 3), [4, 1, 2]);
  assert.deepEqual(topK([3, 3, 3, 3], 2), [0, 1]);
  assert.deepEqual(topK([0, -Infinity, 1], 9), [2, 0, 1]);
  const values = Float64Array.from({ length: 500 }, (_, i) => (i * 37) % 101);
  const sorted = [...values.keys()].sort((a, b) => values[b] - values[a] || a - b);
  for (const count of [1, 17, 500]) assert.deepEqual(topK(values, count), sorted.slice(0, count));
});

test("the largest of values of which one is none is none", () => {
  assert.equal(largest([1, 7, -3]), 7);
  assert.ok(Number.isNaN(largest([1, NaN, 3])));
});

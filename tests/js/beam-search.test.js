// Beam search: scores, the highest tokens, the next beam, and where a text came from.

import assert from "node:assert/strict";
import { test } from "node:test";
import { stub } from "./helpers.js";
import * as beams from "../../tfviz/view/js/studios/translate/beam-search.js";

const { likeliestTokens, logProbabilities, nextHypotheses, EMPTY_HYPOTHESIS, ranksUpTo, scoreOf } = beams;
const END = 0;
/** @param {...number} shares */
const logs = (...shares) => Float64Array.from(shares, Math.log);
/** @param {{ tokens: number[] }[]} texts */
const tokens = (texts) => texts.map((text) => text.tokens.join(" "));

test("a score is the log divided by the length penalty ((5 + length) / 6) ** lengthPenalty", () => {
  const text = { tokens: [1, 2, 3, 4, 5, 6, 7], sum: -4 };
  assert.equal(scoreOf(text, 0), -4);
  assert.equal(scoreOf(text, 1), -2);
  assert.equal(scoreOf(text, 2), -1);
});

test("log-probabilities are those of a softmax, and what never comes is impossible", () => {
  const made = logProbabilities([0, Math.log(3), 1000 - 1000], [2]);
  assert.ok(Math.abs(made[0] - Math.log(1 / 5)) < 1e-12);
  assert.ok(Math.abs(made[1] - Math.log(3 / 5)) < 1e-12);
  assert.equal(made[2], -Infinity);
  assert.ok(Math.abs(logProbabilities([1000, 1000])[0] + Math.log(2)) < 1e-12); // nothing overflows
  assert.throws(() => logProbabilities([0, NaN]), /not finite/);
});

test("the likeliest tokens are in order, of equal ones the first, and none is impossible", () => {
  assert.deepEqual(likeliestTokens([1, 5, 5, 2, 7], 3), [4, 1, 2]);
  assert.deepEqual(likeliestTokens([-Infinity, -1, -Infinity], 3), [1]);
  assert.deepEqual(likeliestTokens([3, 3, 3], 2), [0, 1]);
});

test("the beam is the best of all continuations", () => {
  const how = { numBeams: 2, lengthPenalty: 0, eosId: END };
  const first = nextHypotheses([EMPTY_HYPOTHESIS], [logs(0.1, 0.5, 0.4)], how);
  assert.deepEqual(tokens(first), ["1", "2"]);
  const second = nextHypotheses(first, [logs(0.3, 0.3, 0.4), logs(0.8, 0.1, 0.1)], how);
  assert.deepEqual(tokens(second), ["2 0", "1 2"]); // 0.4 * 0.8 and 0.5 * 0.4
  assert.deepEqual(
    second.map(({ parent, ended }) => [parent, ended]),
    [
      [1, true],
      [0, false],
    ],
  );
  assert.ok(Math.abs(second[0].sum - Math.log(0.32)) < 1e-12);
});

test("a text that has ended stays as it is, and competes", () => {
  const how = { numBeams: 2, lengthPenalty: 0, eosId: END };
  const ended = { tokens: [3, END], sum: Math.log(0.3), ended: true, endedBefore: false, parent: 0 };
  const open = { tokens: [1, 2], sum: Math.log(0.5), ended: false, endedBefore: false, parent: 0 };
  const next = nextHypotheses([open, ended], [logs(0.2, 0.5, 0.3), null], how);
  assert.deepEqual(tokens(next), ["3 0", "1 2 1"]);
  assert.deepEqual(
    next.map(({ endedBefore, parent }) => [endedBefore, parent]),
    [
      [true, 1],
      [false, 0],
    ],
  );
});

test("a length penalty lets the longer text win", () => {
  const ended = { tokens: [END], sum: -1, ended: true, endedBefore: false, parent: 0 };
  const long = { tokens: [1, 1, 1, 1, 1, 1], sum: -1.1, ended: false, endedBefore: false, parent: 0 };
  const certain = Float64Array.of(-Infinity, 0);
  assert.deepEqual(
    tokens(nextHypotheses([ended, long], [null, certain], { numBeams: 1, lengthPenalty: 0, eosId: END })),
    ["0"],
  );
  assert.deepEqual(
    tokens(nextHypotheses([ended, long], [null, certain], { numBeams: 1, lengthPenalty: 1, eosId: END })),
    ["1 1 1 1 1 1 1"],
  );
});

test("a text's way leads through its parents", () => {
  const columns = stub([
    [{ parent: 0 }, { parent: 0 }],
    [{ parent: 1 }, { parent: 0 }],
    [{ parent: 1 }, { parent: 0 }],
  ]);
  assert.deepEqual(ranksUpTo(columns, 2, 0), [0, 1, 0]);
  assert.deepEqual(ranksUpTo(columns, 2, 1), [1, 0, 1]);
  assert.deepEqual(ranksUpTo(columns, 0, 1), [1]);
});

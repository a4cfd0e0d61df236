// Where a head looks on a picture, and what is lost without patches: numbers by hand.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { near } from "./helpers.js";
import { FORBIDDEN, Grid, ALLOWED } from "../../tfviz/view/js/base/grid.js";
import { weightLimit } from "../../tfviz/view/js/base/patch-grid.js";
import {
  effectSentence,
  attentionProfile,
  attentionSentence,
  topPatches,
} from "../../tfviz/view/js/studios/image/image-summary.js";

const WORDS = ["cls", "(0,0)", "(0,1)", "(1,0)", "(1,1)"];
const PATCHES = { first: 1, rows: 2, columns: 2, upward: false };
const EVEN = [0.2, 0.2, 0.2, 0.2, 0.2];

/** A head of these rows; the others are even. @param {Record<number, number[]>} rows */
const head = (rows, state = new Uint8Array(25).fill(ALLOWED)) =>
  Grid.of(WORDS, WORDS, Float32Array.from(WORDS.flatMap((_, i) => rows[i] ?? EVEN)), state);

test("a query looks with its row, all in the mean with the mean of theirs", () => {
  const grid = head({ 0: [0.1, 0.5, 0.2, 0.1, 0.1] });
  near(attentionProfile(grid, 0).values, [0.1, 0.5, 0.2, 0.1, 0.1]);
  near(attentionProfile(grid, null).values, [0.18, 0.26, 0.2, 0.18, 0.18]);
});

test("a query that may look nowhere is not in the mean", () => {
  const state = new Uint8Array(25).fill(ALLOWED).fill(FORBIDDEN, 0, 5);
  near(attentionProfile(head({ 0: [0, 0, 0, 0, 0] }, state), null).values, EVEN);
});

test("the strongest patches are counted from the first patch, and the class token is none", () => {
  assert.deepEqual(topPatches([0.6, 0.1, 0.05, 0.15, 0.1], PATCHES, 3), [2, 0, 3]);
});

test("a sentence of what a head looks at", () => {
  /** @param {number[]} row */
  const says = (row) => attentionSentence(attentionProfile(head({ 0: row }), 0), WORDS, PATCHES, "from cls");
  assert.equal(
    says([0.1, 0.1, 0.5, 0.2, 0.1]),
    "looks from cls most at the patch in (0,1): 50%, 2.5 times an even share.",
  );
  assert.equal(
    says([0.6, 0.1, 0.05, 0.15, 0.1]),
    "looks from cls most at cls (60%), and of the patches at that in (1,0): 15%, 0.75 times an even share.",
  );
  assert.equal(says([0.2, 0.22, 0.18, 0.2, 0.2]), "looks from cls almost evenly at all 5 tokens: at most 22%.");
});

test("a sentence of what is lost", () => {
  assert.equal(effectSentence("“cat”", 0.81, 0.32, 6, 0), "Without these 6 patches “cat” falls from 81% to 32%.");
  assert.equal(
    effectSentence("“cat”", 0.32, 0.81, 1, 2),
    "Without this patch and 2 heads “cat” rises from 32% to 81%.",
  );
  assert.equal(effectSentence("“cat”", 0.5, 0.5, 0, 1), "Without 1 head “cat” stays at 50%.");
  assert.equal(effectSentence("“cat”", 0.5, 0.5, 0, 0), "");
});

test("a scale on a picture ends at the largest weight, and at 16 even weights at least", () => {
  /** @param {number} value @param {number} keys */
  const limit = (value, keys) => weightLimit([{ values: Float32Array.of(value, 0) }], keys);
  assert.equal(limit(0.017, 64), 0.25);
  assert.equal(limit(0.5, 64), 0.5);
  assert.equal(limit(0.5, 8), 1);
});

// What a head does, in a sentence: where its queries look most, or over how many keys they spread.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { FORBIDDEN, Grid, ALLOWED } from "../../tfviz/view/js/base/grid.js";
import {
  attentionBreadth,
  describeHead,
  describeMap,
  headsByKind,
  tagOf,
  countKinds,
  querySentence,
} from "../../tfviz/view/js/views/head-summary.js";
import { isSpecial, tokenPhrase } from "../../tfviz/view/js/base/token-names.js";

/** @param {number} _query @param {number} _key */
const NO_MASK = (_query, _key) => false;

/** Queries that look at one key each. @param {number[]} keys */
function looking(keys, forbidden = NO_MASK) {
  const n = keys.length;
  const cells = Array.from({ length: n * n }, (_, i) => [Math.floor(i / n), i % n]);
  const words = keys.map(String);
  const values = Float32Array.from(cells, ([query, key]) => (keys[query] === key ? 1 : 0));
  return Grid.of(
    words,
    words,
    values,
    Uint8Array.from(cells, (cell) => (forbidden(cell[0], cell[1]) ? FORBIDDEN : 0)),
  );
}
const plain = (/** @type {string} */ text) => text.replace(/[\u2068\u2069]/g, "");
const favourite = (/** @type {string} */ word, /** @type {string} */ share) =>
  `looks most at “${word}”: ${share} of its attention, on average.`;
/** @param {Grid} grid @param {number[]} ids */
const counts = (grid, ids) =>
  Object.fromEntries(countKinds(grid, ids).flatMap(({ kind, count }) => (count ? [[kind, count]] : [])));

test("a kind of half the queries is told, one of fewer is not", () => {
  assert.equal(describeHead(looking([0, 0, 1, 0, 4]), [], "letter"), "looks one letter back in 2 of 4 places.");
  assert.equal(plain(describeHead(looking([0, 0, 2, 5, 1, 3]), [], "letter")), favourite("0", "33%"));
  assert.equal(describeHead(looking([0, 1, 2]), [], "token"), "looks at the token itself in 2 of 2 places.");
  assert.equal(describeHead(looking([3, 3, 4, 5, 5, 5]), [], "word"), "looks two words ahead in 3 of 3 places.");
});

test("one place is too few for a kind", () => {
  assert.equal(plain(describeHead(looking([0, 0]), [], "letter")), favourite("0", "100%"));
  const even = Grid.of([..."ab"], [..."xy"], new Float32Array(4).fill(0.5), new Uint8Array(4));
  assert.equal(describeHead(even, [], "letter"), "spreads its look over 2 letters or so.");
});

test("without a kind: what the query looks at, else what all look at, else how far they spread", () => {
  const words = ["[CLS]", "dull", "[MASK]", "songs"];
  const rows = [[0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.2, 0.6], [0.2, 0, 0.2, 0.6], [0.4, 0.3, 0.2, 0.1]]; // prettier-ignore
  const grid = Grid.of(words, words, Float32Array.from(rows.flat()), new Uint8Array(16));
  const says = (/** @type {number | null} */ query) => plain(describeHead(grid, [], "token", query));
  assert.equal(says(2), "looks from the hidden word most at “songs”: 60% of its attention.");
  assert.equal(says(0), "looks from the class token most at the hidden word: 70% of its attention.");
  assert.equal(says(null), "spreads its look over 3 tokens or so."); // no key has 1.5 times the even 0.25
  assert.equal(plain(querySentence(grid, 3, (word) => `looks, to write ${word},`)), "looks, to write “songs”, most at the class token: 40% of its attention."); // prettier-ignore
  const dead = Grid.of(["a"], ["b"], new Float32Array(1), Uint8Array.of(FORBIDDEN));
  assert.equal(querySentence(dead, 0), "");
});

test("a token that a tokenizer adds has a name in words, any other is quoted", () => {
  const names = ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[EOS]", "</s>", "<s>", "<|endoftext|>", "[cat]", "[", "<b>"];
  assert.deepEqual(names.map(isSpecial), [true, true, true, true, true, true, true, true, false, false, false]);
  assert.deepEqual(
    names.slice(0, 9).map((name) => plain(tokenPhrase(name))),
    ["the class token", "the separator", "the hidden word", "an unknown word", "the end", "the end", "the beginning", "the end", "“[cat]”"],
  ); // prettier-ignore
});

test("the first query is not counted, nor one that may look nowhere", () => {
  assert.deepEqual(counts(looking([2, 1, 0]), []), { "at 0": 1, "at -2": 1, first: 1 });
  assert.deepEqual(
    counts(
      looking([2, 1, 0], (query) => query === 1),
      [],
    ),
    { "at -2": 1, first: 1 },
  );
  assert.equal(countKinds(looking([2, 1, 0], (query) => query === 1), [])[0].of, 1); // prettier-ignore
});

test("the same token before, and what followed it", () => {
  const ids = [7, 8, 7, 8, 9];
  assert.deepEqual(counts(looking([0, 0, 1, 2, 4]), ids), { "at -1": 3, induction: 2, "at 0": 1, first: 1 });
  assert.deepEqual(counts(looking([0, 1, 0, 1, 0]), ids), {
    "at -2": 2, duplicate: 2, first: 2, "at 0": 1, "at -4": 1,
  }); // prettier-ignore
});

test("of equal weights the first counts, and no forbidden one", () => {
  /** @param {Uint8Array} state */
  const equal = (state) => Grid.of(["a", "b"], ["x", "y", "z"], [0, 0, 1, 0.8, 0.8, 0.1], state);
  assert.deepEqual(counts(equal(new Uint8Array(6)), []), { "at -1": 1, first: 1 });
  assert.deepEqual(counts(equal(Uint8Array.of(0, 0, 0, FORBIDDEN, 0, 0)), []), { "at 0": 1 });
});

test("a row that looks at all alike is of no kind, and said to look evenly", () => {
  const causal = [1, 0, 0, 1 / 2, 1 / 2, 0, 1 / 3, 1 / 3, 1 / 3];
  const state = Uint8Array.from(causal, (weight) => (weight ? ALLOWED : FORBIDDEN));
  const even = Grid.of([..."abc"], [..."abc"], causal, state);
  assert.deepEqual(counts(even, []), {});
  assert.equal(plain(describeMap(even, 2)), "looks from “c” evenly at all 3 that it may look at.");
  assert.equal(plain(describeMap(even, 0)), "looks from “a” most at itself: 100% of its attention.");
});

test("places from which there is no such key are not counted against a distance", () => {
  const back = looking([0, 0, 0, 1, 2, 3], (query, key) => key > query);
  assert.equal(describeHead(back, [], "letter"), "looks two letters back in 4 of 4 places.");
});

test("the breadth is that of the query in the middle: e to the power of its entropy", () => {
  const rows = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25]]; // prettier-ignore
  const grid = Grid.of([..."abc"], [..."wxyz"], Float32Array.from(rows.flat()), new Uint8Array(12));
  assert.ok(Math.abs(attentionBreadth(grid) - 2) < 1e-6);
  assert.equal(attentionBreadth(Grid.of([], [], new Float32Array(), new Uint8Array())), 0);
});

test("a map is described by its tokens alone, and only if its rows are weights", () => {
  const rows = [..."abc"];
  const state = new Uint8Array(9).fill(ALLOWED);
  const first = Grid.of(rows, rows, [1, 0, 0, 1, 0, 0, 1, 0, 0], state);
  assert.equal(describeMap(first, 2), "looks at the first letter in 2 of 2 places.");
  const cross = Grid.of(["le", "chat"], rows, [0.2, 0.8, 0, 0.1, 0.2, 0.7], new Uint8Array(6).fill(ALLOWED));
  assert.equal(describeMap(cross, 1), "looks from “\u2068chat\u2069” most at “\u2068c\u2069”: 70% of its attention.");
  assert.equal(tagOf(first), "first");
  assert.equal(tagOf(cross), ""); // two texts
  assert.equal(describeMap(Grid.of(rows, rows, [3, 0, 0, 1, 0, 0, 1, 0, 0], state), 0), "");
});

test("a head that has a kind in most places is tagged with it", () => {
  const rows = ["a", "b", "a", "d"];
  const state = new Uint8Array(16).fill(ALLOWED);
  /** @param {number[]} keys of each query */
  const tag = (keys) => {
    const weights = new Float32Array(16);
    keys.forEach((key, query) => (weights[4 * query + key] = 1));
    return tagOf(Grid.of(rows, rows, weights, state));
  };
  assert.equal(tag([0, 1, 2, 3]), "itself");
  assert.equal(tag([0, 0, 1, 2]), "1 back");
  assert.equal(tag([0, 2, 3, 3]), "1 ahead");
  assert.equal(tag([0, 3, 1, 2]), "1 back");
  assert.equal(tag([1, 3, 3, 1]), ""); // two ahead, one ahead, two back: none in half of the places that count
});

test("heads of one kind stand together, the clearest first; a head without a kind is left out", () => {
  const grids = new Map([
    ["0.0", looking([0, 0, 1, 0, 4])], // one back in 2 of 4 places
    ["0.1", looking([0, 1, 2, 3, 4])],
    ["1.0", looking([0, 0, 1, 2, 3])], // in all of them
    ["1.1", looking([2, 4, 1, 1, 0])],
  ]);
  assert.deepEqual(headsByKind(grids), [
    {
      name: "one letter back",
      heads: [
        [1, 0],
        [0, 0],
      ],
    },
    { name: "at the letter itself", heads: [[0, 1]] },
  ]);
});

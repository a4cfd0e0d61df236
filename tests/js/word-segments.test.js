// A text as words with their tokens: signs apart where tokens allow it, else by white space, else by tokens.

import assert from "node:assert/strict";
import { test } from "node:test";
import { stub } from "./helpers.js";
import { segmentsOf, segmentsWithin } from "../../tfviz/view/js/studios/text/word-segments.js";

/** A tokenizer that cuts a text by a rule; a token is its text, "?" the unknown one. @param {RegExp} rule */
const cutting = (rule) =>
  stub({
    encode: (/** @type {string} */ text) => text.match(rule) ?? [],
    decode: (/** @type {string[]} */ ids) => ids.join(""),
    tokens: (/** @type {string[]} */ ids) => [...ids],
    special: { unk: "?" },
  });
/** @param {{ text: string }[]} segments */
const texts = (segments) => segments.map(({ text }) => text);

test("signs stand apart from words where their tokens do", () => {
  const segments = segmentsOf(cutting(/\s*\p{L}|\s*[^\p{L}\s]/gu), "it's  so.");
  assert.deepEqual(texts(segments), ["it", "'", "s", "so", "."]);
  assert.deepEqual(
    segments.map(({ leadingSpace }) => leadingSpace),
    ["", "", "", "  ", ""],
  );
  assert.deepEqual(
    segments.map(({ at, ids }) => [at, ids.length]),
    [
      [0, 2],
      [2, 1],
      [3, 1],
      [4, 2],
      [6, 1],
    ],
  );
});

test("a word and its sign stay together where one token holds both", () => {
  assert.deepEqual(texts(segmentsOf(cutting(/\s*\S+/gu), "it's so.")), ["it's", "so."]);
});

test("where a token holds a space between words, each token is a segment", () => {
  const segments = segmentsOf(cutting(/.{1,3}/gu), "a b c");
  assert.deepEqual(texts(segments), ["a b", " c"]);
  assert.deepEqual(
    segments.map(({ at }) => at),
    [0, 1],
  );
});

test("white space after the last word belongs to it", () => {
  const [segment] = segmentsOf(cutting(/\s|\S+/gu), "so \n");
  assert.deepEqual([segment.text, segment.raw], ["so", "so \n"]);
});

test("a word that the vocabulary lacks is marked", () => {
  assert.deepEqual(
    segmentsOf(cutting(/\s*\S/gu), "a ?").map(({ unknown }) => unknown),
    [false, false],
  );
  assert.deepEqual(
    segmentsOf(cutting(/\S/gu), "a ?").map(({ unknown }) => unknown),
    [false, true],
  );
});

test("only words that stand whole within the room are kept", () => {
  const segments = segmentsOf(cutting(/\s*\p{L}/gu), "ab cde f");
  assert.deepEqual(texts(segmentsWithin(segments, 5)), ["ab", "cde"]);
  assert.deepEqual(texts(segmentsWithin(segments, 4)), ["ab"]);
});

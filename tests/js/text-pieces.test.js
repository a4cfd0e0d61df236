// A written text as pieces: their positions among the tokens that a model reads, made once for each text.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { stub } from "./helpers.js";
import { contextStart } from "../../tfviz/view/js/studios/write/language-model-reader.js";
import { MersenneTwister, SeededNumbers } from "../../tfviz/view/js/studios/write/sampler.js";
import { signOf, TextPieces } from "../../tfviz/view/js/studios/text/text-pieces.js";

const LETTERS = "abcdefgh";
/** A tokenizer of letters. @param {{ kind: string } | null} joiner */
const letters = (joiner) =>
  stub({
    joiner,
    encode: (/** @type {string} */ text) => Array.from(text, (letter) => LETTERS.indexOf(letter)),
    decode: (/** @type {number[]} */ ids) => ids.map((id) => LETTERS[id]).join(""),
    tokens: (/** @type {number[]} */ ids) => ids.map((id) => LETTERS[id]),
    special: {},
  });
const prompt = { text: "abc", ids: [0, 1, 2] };
/** @param {{ text: string, first: number, last: number }[]} pieces */
const positions = (pieces) => pieces.map(({ text, first, last }) => `${text} ${first} ${last}`);

test("pieces have their tokens' positions; before what the model reads they are negative", () => {
  const pieces = new TextPieces(letters(null));
  assert.deepEqual(positions(pieces.piecesFor(prompt, [3, 4], undefined)), [
    "a 0 0",
    "b 1 1",
    "c 2 2",
    "d 3 3",
    "e 4 4",
  ]);
  assert.deepEqual(positions(pieces.piecesFor(prompt, [3], 2)), ["a -2 -2", "b -1 -1", "c 0 0", "d 1 1"]);
});

test("pieces are made once for a prompt, its tokens and what is read of them", () => {
  const pieces = new TextPieces(letters(null));
  const first = pieces.piecesFor(prompt, [3], 4);
  assert.equal(pieces.piecesFor(prompt, [3], 4), first);
  assert.notEqual(pieces.piecesFor(prompt, [4], 4), first);
  assert.notEqual(pieces.piecesFor({ ...prompt }, [4], 4), pieces.piecesFor(prompt, [4], 4));
});

test("written tokens that carry no spaces stand apart", () => {
  const written = new TextPieces(letters({ kind: "spaces" }))
    .piecesFor(prompt, [3], 4)
    .filter((piece) => piece.written);
  assert.deepEqual(positions(written), [" d 3 3"]);
});

test("a prompt that cannot be read is one piece", () => {
  const tokenizer = letters(null);
  tokenizer.encode = () => {
    throw new Error("no such letter");
  };
  assert.deepEqual(positions(new TextPieces(tokenizer).piecesFor({ text: "xyz", ids: null }, [], undefined)), [
    "xyz 0 -1",
  ]);
});

test("a piece that cannot be seen has a sign", () => {
  assert.deepEqual(["\n", "a", " ", "\u200b"].map((text) => signOf(text)).map(Boolean), [true, false, false, true]);
});

test("past its context a model goes on from the newer half", () => {
  assert.deepEqual([3, 8, 9, 13, 14].map((length) => contextStart(3, length, 8)), [0, 0, 5, 5, 10]); // prettier-ignore
  assert.equal(contextStart(2, 3, 1), 2);
});

test("a seed has always the same numbers, in whatever order they are asked for", () => {
  const numbers = new SeededNumbers();
  const twister = new MersenneTwister(5);
  const expected = [twister.number(), twister.number(), twister.number()];
  assert.deepEqual([2, 0, 1].map((n) => numbers.at(5, n)), [expected[2], expected[0], expected[1]]); // prettier-ignore
  assert.notEqual(numbers.at(6, 0), expected[0]);
  assert.equal(numbers.at(5, 1), expected[1]);
});

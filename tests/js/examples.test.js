// The sentences about a text that repeats itself, and about a line that stands in it twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import "./stubs.js";
import { loopLength, loopSentence, repeatSentence } from "../../tfviz/view/js/studios/examples.js";

const tokens = (/** @type {string} */ text) => [...text].map((letter) => Number(letter.codePointAt(0)));

/** @type {[string, string][]} */
const TEXTS = [
  ["the sea, the sea, the sea, the sea, ", "It loops: the last 9 letters repeat those before."],
  ["the sea, the sea, the sea, ", "It does not loop within 27 letters."],
  ["a long way to the sea. a long way to the sea. ", "It does not loop within 46 letters."], // said twice
  ["a long way to the sea. ".repeat(3), "It loops: the last 23 letters repeat those before."],
  ["that is a new thing", "It does not loop within 19 letters."],
  ["hello", "It does not loop within 5 letters."], // a double letter is no loop
  ["mmmmmmmmm", "It does not loop within 9 letters."],
  ["m".repeat(25), "It loops: the last letter is the one before it, again and again."],
  ["", "It does not loop within 0 letters."],
];
for (const [text, expected] of TEXTS)
  test(`a loop in "${text}"`, () => assert.equal(loopSentence(tokens(text), "letter"), expected));

test("the length of a loop is that of the shortest passage that comes again", () => {
  assert.equal(loopLength(tokens("so ".repeat(9))), 3);
  assert.equal(loopLength(tokens("The end. " + "so ".repeat(9))), 3);
  assert.equal(loopLength(tokens("so ".repeat(8))), 0); // 24 letters, of which 21 have one before that they repeat
  assert.equal(loopLength([]), 0);
});

/** @type {[string, number[], string][]} */
const LINES = [
  ["abc\nabc", [2, 4, 50, 60, 1, 1], "The line costs 3.00 nats a letter the first time, 1.00 the second."],
  ["ab\nab", [2, 50, 60, 0.5], "The line costs 2.00 nats a letter the first time, 0.50 the second."],
  ["abc\nabd", [2, 4, 50, 60, 1, 1], ""],
  ["abcabc", [2, 4, 50, 60, 1], ""],
  ["a\na", [1, 1], ""], // without a loss
];
for (const [text, losses, expected] of LINES)
  test(`the line of "${text}"`, () => assert.equal(repeatSentence(tokens(text), losses, "letter"), expected));

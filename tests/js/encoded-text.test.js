// A text is encoded once, and again after Python has read it; special tokens stand around it.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { stub } from "./helpers.js";
import { EncodedText } from "../../tfviz/view/js/studios/text/encoded-text.js";
import { Prompt } from "../../tfviz/view/js/studios/text/prompt.js";
import { ReadableText } from "../../tfviz/view/js/studios/text/readable-text.js";
import { SourceSentence } from "../../tfviz/view/js/studios/translate/source-sentence.js";
import { SpecialTokens } from "../../tfviz/view/js/studios/text/special-tokens.js";

/** A tokenizer of one token a letter; "?" is the unknown one, and "!" cannot be read. */
const letters = stub({
  encode(/** @type {string} */ text) {
    if (text.includes("!")) throw new Error("no such letter");
    return Array.from(text, (letter) => (letter === "?" ? 0 : letter.charCodeAt(0)));
  },
  decode: (/** @type {number[]} */ ids) => String.fromCharCode(...ids),
  tokens: (/** @type {number[]} */ ids) => ids.map((id) => (id ? String.fromCharCode(id) : "[UNK]")),
  special: { unk: 0 },
});

test("a text is encoded once, and again after Python has read more", async () => {
  let count = 0;
  /** @extends {EncodedText<{ text: string, count: number }>} */
  class Counted extends EncodedText {
    /** @param {string} text */
    encode(text) {
      return { text, count: ++count };
    }
  }
  const texts = new Counted(letters);
  assert.deepEqual(["a", "a", "b", "b", "a"].map((text) => texts.read(text).count), [1, 1, 2, 2, 3]); // prettier-ignore
  assert.equal(await texts.prepare("a", async () => false), true);
  assert.equal(texts.read("a").count, 3);
  assert.equal(await texts.prepare("a", async () => true), true);
  assert.deepEqual([texts.read("a").count, texts.read("a").count], [4, 4]);
  assert.equal(await texts.prepare("a", async () => null), false);
});

test("a prompt is cut to the end that the model reads", () => {
  const prompt = new Prompt(letters, 2);
  assert.deepEqual(prompt.read("abc"), { text: "abc", ids: [98, 99], cut: true });
  assert.deepEqual(prompt.read("ab"), { text: "ab", ids: [97, 98], cut: false });
  assert.equal(prompt.read("").error, "type a text: the model goes on from it");
  assert.equal(prompt.read("!").error, "no such letter: what the model says is of the last text that could be read");
});

test("a text that cannot be read leaves the words of the last that could", () => {
  const text = new ReadableText(letters, 3);
  const { segments } = text.read("ab");
  assert.equal(segments?.length, 1);
  assert.deepEqual(text.read("!"), {
    text: "!",
    segments,
    problem: "no such letter: the words below are the last that could be read",
  });
  assert.equal(text.read("abcd").problem, "its first word is longer than the model reads");
  assert.equal(text.read("").problem, "type a text");
  assert.equal(text.read("ab cd").note, "the text is longer than the model reads: its first word is shown");
});

test("a sentence says what of it is not read", () => {
  const sentence = new SourceSentence(letters, stub({ source_eos_ids: [1], max_source: 4 }));
  assert.deepEqual(sentence.read("abc"), { text: "abc", ids: [97, 98, 99, 1], note: "" });
  assert.equal(
    sentence.read("abcd").note,
    "the sentence is longer than the model reads: its first 3 tokens are translated",
  );
  assert.match(sentence.read("a??").note, /^the vocabulary lacks 2 of these words: the model reads .*UNK.* for each$/);
  assert.deepEqual(sentence.read("!"), { text: "!", ids: null, note: "no such letter" });
});

test("special tokens stand around a text, and words begin between them", () => {
  const both = new SpecialTokens({ special_tokens: stub({ prefix_id: 1, suffix_id: 2 }), context: 6 });
  assert.equal(both.maxTokens, 4);
  assert.deepEqual(both.around([7, 8, 9, 7, 8]), [1, 7, 8, 9, 7, 2]);
  assert.deepEqual(both.startsIn([2, 1, 2], both.around([7, 8, 9, 7, 8])), [1, 3, 4, 5]);
  const none = new SpecialTokens({ special_tokens: stub({ prefix_id: null, suffix_id: null }), context: 3 });
  assert.deepEqual(none.around([7, 8, 9, 7]), [7, 8, 9]);
  assert.deepEqual(none.startsIn([1, 1], [7, 8]), [0, 1, 2]);
});

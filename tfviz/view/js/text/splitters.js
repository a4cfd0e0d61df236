// Functions that split a text into words, by the rules of the `tokenizers` library.

import { characterClass } from "./normalizers.js";

/** @typedef {Record<string, number[]>} Sets of characters, as `characterClass` takes them */

/** @type {Record<string, (spec: any) => RegExp>} */
const SPLITTERS = { bytes: byteWords, bert: bertWords, words: wordsAndSigns, letters: () => /[^]/gu };

/**
 * Make a function that splits a text into words.
 * @param {{ kind: string }} spec
 * @returns {(text: string) => string[]} the words of a text
 */
export function splitter(spec) {
  const rule = SPLITTERS[spec.kind](spec);
  return (text) => text.match(rule) ?? [];
}

/**
 * Split as GPT-2 does: English endings; a word, a number or other signs with one space before; spaces except the last
 * before a word.
 * @param {Sets} spec
 */
function byteWords(spec) {
  const [letters, numbers, spaces] = ["letters", "numbers", "spaces"].map((name) => characterClass(spec[name]));
  const words = ` ?[${letters}]+| ?[${numbers}]+| ?[^${spaces}${letters}${numbers}]+`;
  return new RegExp(`'s|'t|'re|'ve|'m|'ll|'d|${words}|[${spaces}]+(?![^${spaces}])|[${spaces}]+`, "gu");
}

/** Split as BERT does: each punctuation mark is a word of its own. @param {Sets} spec */
function bertWords({ words, signs }) {
  return new RegExp(`[${characterClass(words)}]+|[${characterClass(signs)}]`, "gu");
}

/** @param {Sets} spec */
function wordsAndSigns({ words, signs }) {
  return new RegExp(`[${characterClass(words)}]+|[${characterClass(signs)}]+`, "gu");
}

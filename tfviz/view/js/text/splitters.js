// Functions that split a text into words, by the rules of the `tokenizers` library.

import { characterClass } from "./normalizers.js";

/** @typedef {Record<string, number[]>} Sets of characters, as `characterClass` takes them */

/** @type {Record<string, (described: any) => RegExp>} */
const SPLITTERS = { bytes: byteWords, bert: bertWords, words: wordsAndSigns, letters: () => /[^]/gu };

/**
 * Make a function that splits a text into words.
 * @param {{ kind: string }} described
 * @returns {(text: string) => string[]} the words of a text
 */
export function splitter(described) {
  const rule = SPLITTERS[described.kind](described);
  return (text) => text.match(rule) ?? [];
}

/**
 * Split as GPT-2 does: English endings; a word, a number or other signs with one space before; spaces except the last
 * before a word.
 * @param {Sets} described
 */
function byteWords(described) {
  const [letters, numbers, spaces] = ["letters", "numbers", "spaces"].map((name) => characterClass(described[name]));
  const words = ` ?[${letters}]+| ?[${numbers}]+| ?[^${spaces}${letters}${numbers}]+`;
  return new RegExp(`'s|'t|'re|'ve|'m|'ll|'d|${words}|[${spaces}]+(?![^${spaces}])|[${spaces}]+`, "gu");
}

/** Split as BERT does: each punctuation mark is a word of its own. @param {Sets} described */
function bertWords({ words, signs }) {
  return new RegExp(`[${characterClass(words)}]+|[${characterClass(signs)}]`, "gu");
}

/** @param {Sets} described */
function wordsAndSigns({ words, signs }) {
  return new RegExp(`[${characterClass(words)}]+|[${characterClass(signs)}]+`, "gu");
}

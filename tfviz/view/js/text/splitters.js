// Text to words, by the rules of `tokenizers`.

import { characterClass } from "./normalizers.js";

/** @typedef {Record<string, number[]>} Sets of characters, as `characterClass` takes them */

/** @type {Record<string, (described: any) => RegExp>} */
const SPLITTERS = { bytes: byteWords, bert: bertWords, words: wordsAndSigns, letters: () => /[^]/gu };

/** @param {{ kind: string }} described @returns {(text: string) => string[]} the words of a text */
export function splitter(described) {
  const rule = SPLITTERS[described.kind](described);
  return (text) => text.match(rule) ?? [];
}

// GPT-2: English endings; a word, a number or other signs with one space before it; spaces, but the last before a word.
/** @param {Sets} described */
function byteWords(described) {
  const [letters, numbers, spaces] = ["letters", "numbers", "spaces"].map((name) => characterClass(described[name]));
  const words = ` ?[${letters}]+| ?[${numbers}]+| ?[^${spaces}${letters}${numbers}]+`;
  return new RegExp(`'s|'t|'re|'ve|'m|'ll|'d|${words}|[${spaces}]+(?![^${spaces}])|[${spaces}]+`, "gu");
}

// BERT: each sign of punctuation is a word of its own.
/** @param {Sets} described */
function bertWords({ words, signs }) {
  return new RegExp(`[${characterClass(words)}]+|[${characterClass(signs)}]`, "gu");
}

/** @param {Sets} described */
function wordsAndSigns({ words, signs }) {
  return new RegExp(`[${characterClass(words)}]+|[${characterClass(signs)}]+`, "gu");
}

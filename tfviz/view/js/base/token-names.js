// Functions that name tokens which stand for no text of the reader's, such as "[CLS]", in words.

import { quoted } from "./visible-text.js";

const SPECIAL = /^(?:\[[A-Z]{2,6}\]|<\/?(?:s|bos|eos|pad|unk|mask|sep|cls)>|<\|[a-z]+\|>)$/;

/** @type {[RegExp, string][]} */
const NAMES = [
  [/mask/i, "the hidden word"],
  [/cls/i, "the class token"],
  [/sep/i, "the separator"],
  [/unk/i, "an unknown word"],
  [/pad/i, "the padding"],
  [/eos|<\/s>|end/i, "the end"],
  [/bos|<s>|start/i, "the beginning"],
];

/** Take away the space, or its sign, that a token of a running text begins with. @param {string} word */
export const withoutSpace = (word) => word.replace(/^[ ␣](?=.)/, "");

/** Tell whether a token is one that a tokenizer adds, and no text. @param {string} word */
export const isSpecial = (word) => SPECIAL.test(word);

/** Name a token within a line: a special one by what it stands for, any other in quotes. @param {string} word */
export function tokenPhrase(word) {
  const name = isSpecial(word) ? NAMES.find(([pattern]) => pattern.test(word))?.[1] : null;
  return name ?? quoted(withoutSpace(word), 24);
}

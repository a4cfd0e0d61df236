// A function that makes the tokenizer of a kind from the description that Python exports.

import { ByteTokenizer, CharacterTokenizer } from "./characters.js";
import { SubwordTokenizer } from "./subwords.js";

/** @type {Record<string, new (described: any) => import("../types.js").Tokenizer>} */
const TOKENIZERS = { characters: CharacterTokenizer, bytes: ByteTokenizer, subwords: SubwordTokenizer };

/** Make a tokenizer from its exported description. @param {Record<string, any>} described */
export function makeTokenizer(described) {
  const kind = Object.hasOwn(TOKENIZERS, described.kind) && TOKENIZERS[described.kind];
  if (!kind) throw new Error(`there is no tokenizer of the kind ${described.kind}`);
  return new kind(described);
}

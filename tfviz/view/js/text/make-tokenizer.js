// A function that makes the tokenizer of a kind from the description that Python exports.

import { ByteTokenizer, CharacterTokenizer } from "./characters.js";
import { SubwordTokenizer } from "./subwords.js";

/** @type {Record<string, new (spec: any) => import("../types.js").Tokenizer>} */
const TOKENIZERS = { characters: CharacterTokenizer, bytes: ByteTokenizer, subwords: SubwordTokenizer };

/** Make a tokenizer from its exported description. @param {Record<string, any>} spec */
export function makeTokenizer(spec) {
  const kind = Object.hasOwn(TOKENIZERS, spec.kind) && TOKENIZERS[spec.kind];
  if (!kind) throw new Error(`there is no tokenizer of the kind ${spec.kind}`);
  return new kind(spec);
}

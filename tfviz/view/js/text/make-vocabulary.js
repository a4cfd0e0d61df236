// A function that makes the vocabulary of a kind from the description that Python exports.

import { ByteVocabulary, CharacterVocabulary } from "./characters.js";
import { SubwordVocabulary } from "./subwords.js";

/** @type {Record<string, new (described: any) => import("../types.d.ts").Vocabulary>} */
const VOCABULARIES = { characters: CharacterVocabulary, bytes: ByteVocabulary, subwords: SubwordVocabulary };

/** Make a vocabulary from its exported description. @param {Record<string, any>} described */
export function makeVocabulary(described) {
  const kind = Object.hasOwn(VOCABULARIES, described.kind) && VOCABULARIES[described.kind];
  if (!kind) throw new Error(`there is no vocabulary of the kind ${described.kind}`);
  return new kind(described);
}

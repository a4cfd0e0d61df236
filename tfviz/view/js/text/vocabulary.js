// A vocabulary as Python describes it (`described()` in `tfviz/text`): it encodes and decodes just as there.

import { ByteVocabulary, CharacterVocabulary } from "./characters.js";
import { SubwordVocabulary } from "./subwords.js";

/** @type {Record<string, new (described: any) => import("../types.d.ts").Vocabulary>} */
const VOCABULARIES = { characters: CharacterVocabulary, bytes: ByteVocabulary, subwords: SubwordVocabulary };

/** @param {Record<string, any>} described */
export function vocabulary(described) {
  const kind = Object.hasOwn(VOCABULARIES, described.kind) && VOCABULARIES[described.kind];
  if (!kind) throw new Error(`there is no vocabulary of the kind ${described.kind}`);
  return new kind(described);
}

// A vocabulary as Python describes it (`described()` in `tfviz/text`): it encodes and decodes just as there.

import { ByteVocabulary, CharacterVocabulary } from "./characters.js";
import { SubwordVocabulary } from "./subwords.js";

const VOCABULARIES = { characters: CharacterVocabulary, bytes: ByteVocabulary, subwords: SubwordVocabulary };

// described -> { size, special, encode(text) -> ids, decode(ids) -> text, words(ids) -> one visible sign for each id }.
// `special` has the ids of pad, unknown, begin, end, classification, separator and mask, of those that there are.
export function vocabulary(described) {
  const kind = Object.hasOwn(VOCABULARIES, described.kind) && VOCABULARIES[described.kind];
  if (!kind) throw new Error(`there is no vocabulary of the kind ${described.kind}`);
  return new kind(described);
}

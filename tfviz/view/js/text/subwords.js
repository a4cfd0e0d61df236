// A subword tokenizer as exported by `tfviz/text/tokenizer_export.py`: normalizers, a splitter, a model and a joiner.

import { BytePairEncoder, byteCharacters } from "./bpe.js";
import { broken, fromBytes, hexadecimal, knownIds, toBytes, visibleToken } from "./characters.js";
import { normalizer } from "./normalizers.js";
import { splitter } from "./splitters.js";

/** @import { Tokenizer } from "../types.js" */

// WordPiece leaves out these spaces, in this order.
const CLEAN_UP_REPLACEMENTS = [
  [" .", "."],
  [" ?", "?"],
  [" !", "!"],
  [" ,", ","],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [" do not", " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
];

/** A tokenizer of subwords that encodes and decodes as its `tokenizers.Tokenizer` does. @implements {Tokenizer} */
export class SubwordTokenizer {
  /** @param {any} spec */
  constructor(spec) {
    const { tokens, special, silent, joiner, model } = spec;
    /** @type {string[]} */
    this.vocab = tokens;
    /** @type {Record<string, number>} */
    this.special = special;
    this.joiner = joiner;
    this.size = tokens.length;
    this.skippedIds = new Set(silent);
    this.hexadecimalIds = new Set(spec.hexadecimal);
    this.bytes = new Map(byteCharacters().map((character, byte) => [character, byte]));
    this.normalize = normalizer(spec.normalizers);
    this.split = splitter(spec.splitter);
    this.model = wordModel(model, tokens);
  }

  /** @param {string} text @returns {number[]} */
  encode(text) {
    if (broken(text)) throw new Error("the text has a lone surrogate, U+D800 to U+DFFF, which is not text");
    return this.split(this.normalize(text)).flatMap((word) => this.model(word));
  }

  /** @param {Iterable<number>} ids @returns the text, without special tokens */
  decode(ids) {
    const tokens = knownIds(ids, this.size)
      .filter((id) => !this.skippedIds.has(id))
      .map((id) => this.vocab[id]);
    const { kind, inside, cleanup } = this.joiner;
    if (kind === "bytes") return fromBytes(tokens.flatMap((token) => [...this.raw(token)]));
    if (kind !== "pieces") return tokens.join(kind === "spaces" ? " " : "");
    return tokens
      .map((token, index) => {
        if (index) token = token.startsWith(inside) ? token.slice(inside.length) : ` ${token}`;
        return cleanup
          ? CLEAN_UP_REPLACEMENTS.reduce((word, [pattern, replacement]) => word.replaceAll(pattern, replacement), token)
          : token;
      })
      .join("");
  }

  /** @param {Iterable<number>} ids */
  tokens(ids) {
    return knownIds(ids, this.size).map((id) => {
      const raw = this.raw(this.vocab[id]);
      return this.hexadecimalIds.has(id) ? hexadecimal(raw) : visibleToken(fromBytes(raw));
    });
  }

  /**
   * @param {string} token
   * @returns {Iterable<number>} the bytes that its characters stand for, if all of them do; else its own
   */
  raw(token) {
    const characters = Array.from(token);
    if (this.joiner.kind !== "bytes" || characters.some((character) => !this.bytes.has(character)))
      return toBytes(token);
    return characters.map((character) => Number(this.bytes.get(character)));
  }
}

/**
 * Make the function that encodes a word.
 * @param {any} spec
 * @param {string[]} tokens
 * @returns {(word: string) => number[]}
 */
function wordModel(spec, tokens) {
  if (spec.kind === "bpe") {
    const encoder = new BytePairEncoder(tokens, spec.merges);
    return (word) => encoder.encode(word);
  }
  const idOf = new Map(spec.ids.map((/** @type {number} */ id) => [tokens[id], id]));
  if (spec.kind === "wordpiece") return (word) => wordPieceIds(word, idOf, spec);
  return (word) => [idOf.get(word) ?? spec.unknown];
}

/**
 * Split a word into the longest known pieces, from the left; if there is none somewhere, the whole word is unknown.
 * @param {string} word
 * @param {Map<string, number>} idOf
 * @param {any} model
 * @returns {number[]}
 */
function wordPieceIds(word, idOf, { unknown, inside, longest: maxLetters }) {
  const letters = Array.from(word);
  if (letters.length > maxLetters) return [unknown];
  const ids = [];
  for (let start = 0; start < letters.length;) {
    let stop = letters.length;
    const piece = () => idOf.get((start ? inside : "") + letters.slice(start, stop).join(""));
    while (stop > start && piece() === undefined) stop--;
    if (stop === start) return [unknown];
    ids.push(Number(piece()));
    start = stop;
  }
  return ids;
}

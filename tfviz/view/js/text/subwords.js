// A `tokenizers.Tokenizer` as `tfviz/text/tokenizer_export.py` has it: normalizers, a splitter, a model, and a joiner.

import { broken, fromBytes, hexadecimal, knownIds, toBytes, visible } from "./characters.js";
import { normalizer } from "./normalizers.js";
import { Pairs, byteSigns } from "./pairs.js";
import { splitter } from "./splitters.js";

// WordPiece leaves out these spaces, in this order.
const TIDY = [
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

export class SubwordVocabulary {
  constructor(described) {
    const { tokens, special, silent, joiner, model } = described;
    this.tokens = tokens;
    this.special = special;
    this.joiner = joiner;
    this.size = tokens.length;
    this.silent = new Set(silent);
    this.unseen = new Set(described.hexadecimal);
    this.bytes = new Map(byteSigns().map((sign, byte) => [sign, byte]));
    this.normalize = normalizer(described.normalizers);
    this.split = splitter(described.splitter);
    this.model = wordModel(model, tokens);
  }

  encode(text) {
    if (broken(text)) throw new Error("the text has a lone surrogate, U+D800 to U+DFFF, which is no text");
    return this.split(this.normalize(text)).flatMap((word) => this.model(word));
  }

  // The text without special tokens.
  decode(ids) {
    const tokens = knownIds(ids, this.size)
      .filter((id) => !this.silent.has(id))
      .map((id) => this.tokens[id]);
    const { kind, inside, cleanup } = this.joiner;
    if (kind === "bytes") return fromBytes(tokens.flatMap((token) => [...this.raw(token)]));
    if (kind !== "pieces") return tokens.join(kind === "spaces" ? " " : "");
    return tokens
      .map((token, place) => {
        if (place) token = token.startsWith(inside) ? token.slice(inside.length) : ` ${token}`;
        return cleanup ? TIDY.reduce((word, [found, put]) => word.replaceAll(found, put), token) : token;
      })
      .join("");
  }

  words(ids) {
    return knownIds(ids, this.size).map((id) => {
      const raw = this.raw(this.tokens[id]);
      return this.unseen.has(id) ? hexadecimal(raw) : visible(fromBytes(raw));
    });
  }

  // The bytes of a token: those that its signs stand for, if all of them do.
  raw(token) {
    const bytes = this.joiner.kind === "bytes" ? Array.from(token, (sign) => this.bytes.get(sign)) : [undefined];
    return bytes.includes(undefined) ? toBytes(token) : bytes;
  }
}

// word -> ids
function wordModel(described, tokens) {
  if (described.kind === "pairs") {
    const pairs = new Pairs(tokens, described.merges);
    return (word) => pairs.encode(word);
  }
  const places = new Map(described.ids.map((id) => [tokens[id], id]));
  if (described.kind === "pieces") return (word) => longestPieces(word, places, described);
  return (word) => [places.get(word) ?? described.unknown];
}

// From the left, the longest piece that there is; if at some place there is none, the whole word is unknown.
function longestPieces(word, places, { unknown, inside, longest }) {
  const letters = Array.from(word);
  if (letters.length > longest) return [unknown];
  const ids = [];
  for (let start = 0; start < letters.length;) {
    let stop = letters.length;
    const piece = () => places.get((start ? inside : "") + letters.slice(start, stop).join(""));
    while (stop > start && piece() === undefined) stop--;
    if (stop === start) return [unknown];
    ids.push(piece());
    start = stop;
  }
  return ids;
}

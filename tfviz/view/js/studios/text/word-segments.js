// Functions that split a text into words, each with its tokens.

/** @import { Tokenizer } from "../../types.js" */
/**
 * @typedef {object} Word
 * @property {string} leadingSpace white space before it
 * @property {string} text the word
 * @property {string} raw white space and word, with the white space after the last word
 * @property {number[]} ids its tokens
 */
/**
 * @typedef {Word & { at: number, unknown: boolean }} Segment the position of its first token; `unknown`: whether the vocabulary lacks the word
 */

const WORDS_AND_SIGNS = /\s*(?:[\p{L}\p{M}\p{N}_]+|[^\s\p{L}\p{M}\p{N}_]+)/gu; // signs stand apart from words
const SPACE_SEPARATED_WORDS = /\s*\S+/gu;

/**
 * Split a text into words whose tokens, joined, are those of the text.
 * @param {Tokenizer} tokenizer
 * @param {string} text
 * @returns {Segment[]}
 */
export function segmentsOf(tokenizer, text) {
  const tokens = tokenizer.encode(text);
  for (const rule of [WORDS_AND_SIGNS, SPACE_SEPARATED_WORDS]) {
    const words = splitBy(tokenizer, text, rule);
    if (JSON.stringify(words.flatMap(({ ids }) => ids)) === JSON.stringify(tokens))
      return withOffsets(tokenizer, words);
  }
  const signs = tokenizer.tokens(tokens);
  return withOffsets(
    tokenizer,
    tokens.map((id, i) => ({ leadingSpace: "", text: signs[i], raw: tokenizer.decode([id]), ids: [id] })),
  );
}

/** Return all texts that `segmentsOf` encodes. @param {string} text */
export const textsOf = (text) => [
  text,
  ...[WORDS_AND_SIGNS, SPACE_SEPARATED_WORDS].flatMap((rule) => partsBy(text, rule)),
];

/** @param {string} text @param {RegExp} rule @returns {string[]} */
function partsBy(text, rule) {
  const parts = [...(text.match(rule) ?? [])];
  const rest = text.slice(parts.join("").length);
  if (rest && parts.length) parts.push(`${parts.pop()}${rest}`);
  return parts;
}

/** @param {Tokenizer} tokenizer @param {string} text @param {RegExp} rule */
function splitBy(tokenizer, text, rule) {
  return partsBy(text, rule).map((raw) => {
    const leadingSpace = raw.slice(0, raw.length - raw.trimStart().length);
    return { leadingSpace, text: raw.trim(), raw, ids: tokenizer.encode(raw) };
  });
}

/**
 * Add the position of the first token to each segment, and whether the vocabulary lacks the word.
 * @param {Tokenizer} tokenizer
 * @param {Word[]} segments
 * @returns {Segment[]}
 */
function withOffsets(tokenizer, segments) {
  let at = 0;
  return segments.map((segment) => {
    const start = at;
    at += segment.ids.length;
    return { ...segment, at: start, unknown: segment.ids.includes(tokenizer.special.unk) };
  });
}

/**
 * Return the words that lie within so many tokens.
 * @param {Segment[]} segments
 * @param {number} maxTokens
 */
export const segmentsWithin = (segments, maxTokens) => segments.filter(({ at, ids }) => at + ids.length <= maxTokens);

/**
 * Split a text into pieces, each with its number of tokens; joined, they are the text.
 * @param {Tokenizer} tokenizer
 * @param {string} text
 * @returns {{ text: string, count: number }[]}
 */
export function piecesOf(tokenizer, text) {
  const ids = tokenizer.encode(text);
  const pieces = ids.map((id) => ({ text: tokenizer.decode([id]), count: 1 }));
  const textOfParts = (/** @type {{ text: string }[]} */ parts) => parts.map((part) => part.text).join("");
  if (textOfParts(pieces) === text) return pieces;
  const undivided = [{ text, count: ids.length }];
  if (tokenizer.preloadEncodings) return undivided;
  const words = segmentsOf(tokenizer, text).flatMap(({ leadingSpace, raw, ids: tokens }) => {
    const parts = tokens.map((id) => ({ text: tokenizer.decode([id]), count: 1 }));
    if (textOfParts(parts) === raw) return parts;
    const space = leadingSpace ? [{ text: leadingSpace, count: 0 }] : [];
    return [...space, { text: raw.slice(leadingSpace.length), count: tokens.length }];
  });
  return textOfParts(words) === text ? words : undivided;
}

// A text as words that a reader can act on, each with its tokens.

/** @import { Vocabulary } from "../types.d.ts" */
/**
 * @typedef {object} Cut
 * @property {string} lead white space before it
 * @property {string} text the word
 * @property {string} raw both, and what follows the last
 * @property {number[]} ids its tokens
 */
/** @typedef {Cut & { at: number, unknown: boolean }} Unit the place of its first token; whether the vocabulary lacks it */

const FINE = /\s*(?:[\p{L}\p{M}\p{N}_]+|[^\s\p{L}\p{M}\p{N}_]+)/gu; // signs stand apart from words
const PLAIN = /\s*\S+/gu;

// Words are cut so that their tokens are those of the text.
/** @param {Vocabulary} vocab @param {string} text @returns {Unit[]} */
export function unitsOf(vocab, text) {
  const tokens = vocab.encode(text);
  for (const rule of [FINE, PLAIN]) {
    const words = cutBy(vocab, text, rule);
    if (JSON.stringify(words.flatMap(({ ids }) => ids)) === JSON.stringify(tokens)) return placed(vocab, words);
  }
  const signs = vocab.words(tokens);
  return placed(
    vocab,
    tokens.map((id, i) => ({ lead: "", text: signs[i], raw: vocab.decode([id]), ids: [id] })),
  );
}

// All that is encoded to find them.
/** @param {string} text */
export const textsOf = (text) => [text, ...[FINE, PLAIN].flatMap((rule) => partsBy(text, rule))];

/** @param {string} text @param {RegExp} rule @returns {string[]} */
function partsBy(text, rule) {
  const parts = [...(text.match(rule) ?? [])];
  const rest = text.slice(parts.join("").length);
  if (rest && parts.length) parts.push(`${parts.pop()}${rest}`);
  return parts;
}

/** @param {Vocabulary} vocab @param {string} text @param {RegExp} rule */
function cutBy(vocab, text, rule) {
  return partsBy(text, rule).map((raw) => {
    const lead = raw.slice(0, raw.length - raw.trimStart().length);
    return { lead, text: raw.trim(), raw, ids: vocab.encode(raw) };
  });
}

/** @param {Vocabulary} vocab @param {Cut[]} units @returns {Unit[]} */
function placed(vocab, units) {
  let at = 0;
  return units.map((unit) => {
    const place = at;
    at += unit.ids.length;
    return { ...unit, at: place, unknown: unit.ids.includes(vocab.special.unknown) };
  });
}

// The words that stand whole within so many tokens.
/** @param {Unit[]} units @param {number} room */
export const wholeWithin = (units, room) => units.filter(({ at, ids }) => at + ids.length <= room);

/**
 * A text as the pieces that its tokens stand for: together they are the text, and each says how many tokens it has.
 * @param {Vocabulary} vocab
 * @param {string} text
 * @returns {{ text: string, count: number }[]}
 */
export function piecesOf(vocab, text) {
  const ids = vocab.encode(text);
  const pieces = ids.map((id) => ({ text: vocab.decode([id]), count: 1 }));
  const joined = (/** @type {{ text: string }[]} */ parts) => parts.map((part) => part.text).join("");
  if (joined(pieces) === text) return pieces;
  const undivided = [{ text, count: ids.length }];
  if (vocab.learn) return undivided;
  const words = unitsOf(vocab, text).flatMap(({ lead, raw, ids: tokens }) => {
    const parts = tokens.map((id) => ({ text: vocab.decode([id]), count: 1 }));
    if (joined(parts) === raw) return parts;
    const space = lead ? [{ text: lead, count: 0 }] : [];
    return [...space, { text: raw.slice(lead.length), count: tokens.length }];
  });
  return joined(words) === text ? words : undivided;
}

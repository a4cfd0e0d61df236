// A prompt and the text written after it as pieces, each with the positions of its tokens in the model's input.

import { label } from "../../base/visible-text.js";
import { pieceText, spaceSeparated } from "./token-text.js";
import { piecesOf } from "./word-segments.js";

/** @import { Tokenizer } from "../../types.js" */
/** @import { Prompted } from "./prompt.js" */
/** @typedef {{ text: string, count: number, word?: string, written?: boolean }} Piece a piece of the text with the number of its tokens */
/** @typedef {Piece & { first: number, last: number }} PlacedPiece with the positions of its first and last token; negative before the model's context */

/** The pieces of a text with their tokens. */
export class TextPieces {
  /** @type {{ prompt: Prompted, pieces: Piece[] } | null} */
  latestPrompt = null;
  /** @type {{ prompt: Prompted, tokens: string, read: number | undefined, pieces: PlacedPiece[] } | null} */
  latest = null;

  /** @param {Tokenizer} tokenizer */
  constructor(tokenizer) {
    this.tokenizer = tokenizer;
  }

  /**
   * Return the pieces of a text.
   * @param {Prompted} prompt
   * @param {number[]} tokens written after it
   * @param {number | undefined} read how many tokens the model has read, up to the last; undefined for all
   * @returns {PlacedPiece[]}
   */
  piecesFor(prompt, tokens, read) {
    const key = String(tokens);
    const { latest } = this;
    if (latest?.prompt === prompt && latest.tokens === key && latest.read === read) return latest.pieces;
    if (this.latestPrompt?.prompt !== prompt) this.latestPrompt = { prompt, pieces: this.promptPieces(prompt) };
    const pieces = placed([...this.latestPrompt.pieces, ...tokens.map((id) => this.written(id))], read);
    this.latest = { prompt, tokens: key, read, pieces };
    return pieces;
  }

  /** @param {Prompted} prompt @returns {Piece[]} */
  promptPieces({ text, ids }) {
    try {
      return piecesOf(this.tokenizer, text);
    } catch {
      return [{ text, count: ids?.length ?? 0 }];
    }
  }

  /** @param {number} id @returns {Piece} */
  written(id) {
    const text = this.tokenizer.decode([id]) || pieceText(this.tokenizer, id);
    return {
      text: (spaceSeparated(this.tokenizer) ? " " : "") + text,
      word: this.tokenizer.tokens([id])[0],
      count: 1,
      written: true,
    };
  }
}

/** @param {Piece[]} pieces @param {number} [read] @returns {PlacedPiece[]} */
function placed(pieces, read) {
  const all = pieces.reduce((sum, { count }) => sum + count, 0);
  let at = (read ?? all) - all;
  return pieces.map((piece) => {
    const first = at;
    at += piece.count;
    return { ...piece, first, last: at - 1 };
  });
}

/**
 * Return the sign for an invisible piece of text, else nothing.
 * @param {string} text
 * @param {string} word the tokenizer's own sign for it
 */
export function signOf(text, word = text) {
  if (text.includes("\n")) return "⏎";
  if (text.includes("\ufffd")) return label(word, 8);
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}]/u.test(text) && !/\p{L}|\p{N}|\p{Emoji}/u.test(text) ? label(text, 8) : "";
}

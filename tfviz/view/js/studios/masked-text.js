// A text with gaps: what stands at each word, what is guessed from both sides, and from the left.

import { GUESSES } from "./guesses.js";
import { softmax, topK } from "./logits.js";
import { TextStudio } from "./text-studio.js";

/** @import { CausalModel, FillDocument } from "../documents.d.ts" */
/** @import { Vocabulary } from "../types.d.ts" */
/** @import { Logits } from "./text-studio.js" */
/** @import { Segment } from "./word-segments.js" */
/**
 * @typedef {{ shares: Float64Array, vocab: Vocabulary, text: string }} LeftGuess of a vocabulary's words, after a text
 */
/**
 * @typedef {LeftGuess | { problem: string } | null | undefined} Left why there is none; null: nothing stands on the
 *   left, undefined: it is not known yet
 */
/**
 * @typedef {{ place: number, shares: Float64Array, baseline: Float64Array | null }} Guess from both sides; baseline:
 *   with all heads on
 */
/** @typedef {{ i: number, segment: Segment, both: Guess[], left: Left }} Gap a word that is hidden, or a part of it */

/** @extends {TextStudio<FillDocument>} */
export class MaskedText extends TextStudio {
  /** The ids that were put in, by place. */
  get filled() {
    return new Map(/** @type {[number, number][]} */ (this.store.get("filled")));
  }

  get masked() {
    return new Set(this.store.get("masked"));
  }

  /** The tokens as the model sees them: what was put in, a mask where a word is hidden. */
  get ids() {
    const { filled, masked } = this;
    const { mask } = this.vocab.special;
    return this.originalIds.map((id, place) => (masked.has(place) ? mask : (filled.get(place) ?? id)));
  }

  forgetLeft() {
    /** @type {Map<number, Left>} what the other model guesses at each word */
    this.left = new Map();
  }

  get base() {
    return this.ids;
  }

  /** @param {Segment} segment @returns {number[]} */
  placesOf({ at, ids }) {
    return ids.map((_, piece) => at + piece);
  }

  /** Return what stands at a word now, or null where a part of it is hidden. @param {Segment} segment */
  textOf(segment) {
    const { masked, filled } = this;
    const places = this.placesOf(segment);
    if (places.some((place) => masked.has(place))) return null;
    if (!places.some((place) => filled.has(place))) return segment.text;
    return this.vocab.decode(segment.ids.map((id, piece) => filled.get(segment.at + piece) ?? id)).trim();
  }

  /**
   * Let the other model read from the left; where a word is hidden, it goes on with its own likeliest guess.
   * @param {number} turn
   * @param {CausalModel} beside
   * @returns {Promise<boolean>} whether this was all asked for
   */
  async askLeft(turn, beside) {
    const ids = this.ids;
    /** @type {number[]} */
    const tokens = [];
    let text = "";
    for (const [i, segment] of this.segments.entries()) {
      const now = this.textOf(segment);
      if (now !== null) {
        tokens.push(...this.placesOf(segment).map((place) => ids[place]));
        text += segment.lead + now;
        continue;
      }
      const left = await this.guessLeft(segment, beside, text, tokens);
      if (turn !== this.turn || this.frame.closed) return false;
      this.left.set(i, left);
      if (!left || "problem" in left) continue;
      const [id] = await this.learnGuesses(segment, left);
      const word = left.vocab.decode([id]);
      tokens.push(id);
      text += /^\s/.test(word) ? word : segment.lead + word;
    }
    return true;
  }

  /**
   * Return what the other model guesses in place of a word.
   * @param {Segment} segment
   * @param {CausalModel} beside
   * @param {string} text before it
   * @param {number[]} tokens the same, where both models have one vocabulary
   * @returns {Promise<LeftGuess | { problem: string } | null>}
   */
  async guessLeft(segment, { before, vocabulary, context }, text, tokens) {
    const vocab = this.vocabularies[vocabulary];
    await this.learn(vocab, [text, segment.lead + segment.text]);
    const read = vocabulary ? this.wordIn(vocab, text) : tokens;
    if (!read) return { problem: "its vocabulary lacks a character that stands there" };
    const left = [...(before === null ? [] : [before]), ...read].slice(-context);
    const answer = left.length ? await this.ask("beside", left, { program: "beside" }) : null;
    return answer && { shares: softmax(this.lastOf(answer, vocab)), vocab, text };
  }

  /** Let Python encode the guesses, where it does that, and return them. @param {Segment} segment @param {LeftGuess} left */
  async learnGuesses(segment, { shares, vocab }) {
    const guesses = topK(shares, GUESSES);
    await this.learn(
      this.vocab,
      guesses.map((id) => this.guessed(segment, vocab, id)),
    );
    return guesses;
  }

  /**
   * Return the text of a guess in place of a word.
   * @param {Segment} segment
   * @param {Vocabulary} vocab
   * @param {number} id
   */
  guessed(segment, vocab, id) {
    return segment.lead + vocab.decode([id]).trim();
  }

  /**
   * Return the tokens of a text, or null if the vocabulary cannot write it.
   * @param {Vocabulary} vocab
   * @param {string} text
   */
  wordIn(vocab, text) {
    try {
      return vocab.encode(text);
    } catch {
      return null;
    }
  }

  /**
   * Return the logits of a vocabulary's tokens at one place; the model may have more.
   * @param {Logits} answer
   * @param {number} place
   * @param {Vocabulary} vocab
   */
  scores({ ids, logits }, place, vocab) {
    const each = logits.length / ids.length;
    return logits.subarray(place * each, place * each + vocab.size);
  }

  /** @param {Logits} answer @param {Vocabulary} vocab */
  lastOf(answer, vocab) {
    return this.scores(answer, answer.ids.length - 1, vocab);
  }

  /** The guesses for each hidden word. @returns {Gap[]} */
  get gaps() {
    const { masked, answer, compared } = this;
    if (!answer || !compared) return [];
    const front = this.special.before.length;
    const shares = (/** @type {Logits} */ logits, /** @type {number} */ place) =>
      softmax(this.scores(logits, place + front, this.vocab));
    return this.segments.flatMap((segment, i) => {
      const places = this.placesOf(segment).filter((place) => masked.has(place));
      const both = places.map((place) => ({
        place,
        shares: shares(answer, place),
        baseline: this.edits.length ? shares(compared, place) : null,
      }));
      return places.length ? [{ i, segment, both, left: this.left?.get(i) }] : [];
    });
  }
}

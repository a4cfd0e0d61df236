// A text with gaps: what stands at each word, what is guessed from both sides, and from the left.

import { likeliest, softmax } from "./shares.js";
import { TextStudio } from "./text-studio.js";

export const GUESSES = 7; // for each hidden place

export class MaskedText extends TextStudio {
  // place -> the id that was put there
  get filled() {
    return new Map(this.store.get("filled"));
  }

  get masked() {
    return new Set(this.store.get("masked"));
  }

  // The tokens as the model sees them: what was put in, a mask where a word is hidden.
  get ids() {
    const { filled, masked } = this;
    const { mask } = this.vocab.special;
    return this.asTyped.map((id, place) => (masked.has(place) ? mask : (filled.get(place) ?? id)));
  }

  // word -> what the other model guesses there
  forgetLeft() {
    this.left = new Map();
  }

  get base() {
    return this.ids;
  }

  placesOf({ at, ids }) {
    return ids.map((_, piece) => at + piece);
  }

  // What stands at a word now, or null where a part of it is hidden.
  textOf(unit) {
    const { masked, filled } = this;
    const places = this.placesOf(unit);
    if (places.some((place) => masked.has(place))) return null;
    if (!places.some((place) => filled.has(place))) return unit.text;
    return this.vocab.decode(unit.ids.map((id, piece) => filled.get(unit.at + piece) ?? id)).trim();
  }

  // The other model reads from the left; where a word is hidden, it goes on with its own likeliest guess.
  async askLeft(turn) {
    const { before, vocabulary } = this.described.beside;
    const own = this.vocabularies[vocabulary];
    const front = before === null ? [] : [before];
    const ids = this.ids;
    let [tokens, text] = [[], ""];
    for (const [i, unit] of this.units.entries()) {
      const now = this.textOf(unit);
      if (now !== null) {
        tokens.push(...this.placesOf(unit).map((place) => ids[place]));
        text += unit.lead + now;
        continue;
      }
      await this.learn(own, [text, unit.lead + unit.text]);
      const read = vocabulary ? this.wordIn(own, text) : tokens;
      if (!read) {
        this.left.set(i, { wrong: "its vocabulary lacks a character that stands there", shares: [] });
        continue;
      }
      const left = [...front, ...read].slice(-this.described.beside.context);
      const made = left.length ? await this.ask("beside", left, { program: "beside" }) : null;
      if (turn !== this.turn || this.frame.closed) return null;
      this.left.set(i, made && { shares: softmax(this.lastOf(made, own)), own, text });
      if (!made) continue;
      const guesses = likeliest(this.left.get(i).shares, GUESSES);
      await this.learn(
        this.vocab,
        guesses.map((guess) => this.guessed(unit, own, guess)),
      );
      const [id] = guesses;
      const word = own.decode([id]);
      tokens.push(id);
      text += /^\s/.test(word) ? word : unit.lead + word;
    }
    return this.left;
  }

  // The text of a guess in place of a word.
  guessed(unit, own, id) {
    return unit.lead + own.decode([id]).trim();
  }

  // The tokens of a text, or null if the vocabulary cannot write it.
  wordIn(vocab, text) {
    try {
      return vocab.encode(text);
    } catch {
      return null;
    }
  }

  // The scores of the words of a vocabulary at one place; the model may have numbers for more.
  scores({ ids, logits }, place, vocab) {
    const each = logits.length / ids.length;
    return logits.subarray(place * each, place * each + vocab.size);
  }

  lastOf(answer, vocab) {
    return this.scores(answer, answer.ids.length - 1, vocab);
  }

  // What is guessed for each hidden word: [{ i, unit, both: [{ place, shares, whole }], left }].
  get gaps() {
    const { masked } = this;
    const front = this.described.special_tokens.before === null ? 0 : 1;
    const shares = (answer, place) => softmax(this.scores(answer, place + front, this.vocab));
    return this.units.flatMap((unit, i) => {
      const places = this.placesOf(unit).filter((place) => masked.has(place));
      const both = places.map((place) => ({
        place,
        shares: shares(this.answer, place),
        whole: this.edits.length ? shares(this.compared, place) : null,
      }));
      return places.length ? [{ i, unit, both, left: this.left?.get(i) }] : [];
    });
  }
}

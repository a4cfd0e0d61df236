// The two texts of patching: each can be edited in place; tokens that differ are marked.

import { h } from "../../base/elements.js";
import { formatCount } from "../../base/numbers.js";
import { joinPresent } from "../small-elements.js";
import { Prompt } from "../text/prompt.js";
import { TextEditor } from "../text/text-editor.js";
import { signOf, TextPieces } from "../text/text-pieces.js";

/** @import { PatchState } from "../../documents.js" */
/** @import { Choices, Tokenizer } from "../../types.js" */
/** @import { Prompted } from "../text/prompt.js" */

/** @type {["clean", "corrupt"]} */
const NAMES = ["clean", "corrupt"];
const TITLES = { clean: "Clean: it has the answer", corrupt: "Corrupt: it has another one" };

/** Two editors of a text, and both texts as the model reads them. */
export class PatchingTexts {
  /**
   * @param {Tokenizer} tokenizer
   * @param {number} context
   * @param {Choices<PatchState>} store
   */
  constructor(tokenizer, context, store) {
    this.tokenizer = tokenizer;
    this.context = context;
    this.store = store;
    this.texts = NAMES.map((name) => ({
      name,
      prompt: new Prompt(tokenizer, context),
      pieces: new TextPieces(tokenizer),
      editor: new TextEditor(TITLES[name], {
        typed: (text) => store.set(/** @type {Partial<PatchState>} */ ({ [name]: text })),
        point: () => {},
      }),
    }));
    const parts = this.texts.flatMap(({ name, editor }) => [h("small", {}, TITLES[name]), editor.element]);
    this.element = h("div", { class: "texts" }, ...parts);
  }

  /** Both texts as the model reads them. @returns {Prompted[]} */
  get read() {
    return this.texts.map(({ name, prompt }) => prompt.read(this.store.get(name)));
  }

  /** What is wrong with the texts, in a sentence; empty if nothing is. */
  get problem() {
    const both = this.read;
    for (const [i, { ids, error, cut, text }] of both.entries()) {
      if (!text) return `the ${NAMES[i]} text is empty: type one`;
      if (!ids) return `the ${NAMES[i]} text: ${(error ?? "").replace(/: what the model says.*/, "")}`;
      if (cut)
        return `the ${NAMES[i]} text has more than ${formatCount(this.context, "token")}, which the model cannot read`;
    }
    const [clean, corrupt] = both.map(({ ids }) => ids?.length ?? 0);
    if (clean === corrupt) return "";
    const same = "make them equal, so that what corresponds has the same position";
    return `the clean text has ${formatCount(clean, "token")} and the corrupt one ${corrupt}: ${same}`;
  }

  /** The ids of both texts; none where something is wrong with them. @returns {number[][]} */
  get ids() {
    return this.problem ? [] : this.read.map(({ ids }) => ids ?? []);
  }

  /** The name of each position: its token, or both where they differ. @param {number[][]} ids */
  positionNames([clean, corrupt]) {
    const [first, second] = [clean, corrupt].map((ids) => this.tokenizer.tokens(ids));
    return first.map((word, i) => (clean[i] === corrupt[i] ? word : `${word}/${second[i]}`));
  }

  /** Show both texts; the position is marked in each. @param {number | null} position */
  show(position) {
    const both = this.read;
    const [clean, corrupt] = both.map(({ ids }) => ids ?? []);
    const comparable = clean.length === corrupt.length;
    this.texts.forEach(({ pieces, editor }, i) => {
      const placed = pieces.piecesFor(both[i], [], undefined);
      const differs = (/** @type {number} */ first, /** @type {number} */ last) =>
        comparable && clean.slice(first, last + 1).some((id, at) => id !== corrupt[first + at]);
      const tokens = placed.map(({ text, first, last, word }) => ({
        text,
        sign: signOf(text, word),
        kind: joinPresent([differs(first, last) && "differs"]),
      }));
      const at = placed.findIndex(({ first, last }) => position !== null && first <= position && position <= last);
      editor.show(tokens, () => null, at < 0 ? null : at);
    });
  }
}

// A pane with the predictions for one masked word at a time, by the masked model and by the model that reads from the
// left only.

import { focusedIn, h, tabs } from "../../base/elements.js";
import { quotedExcerpt } from "../../base/visible-text.js";
import { predictionBars, likeliest, sideTitle } from "./predictions.js";
import { predictionText, idsOrNull } from "./causal-predictions.js";
import { joinPresent } from "../small-elements.js";

/** @import { FillStudio, MaskedWord } from "./fill-studio.js" */

const LEFT_ONLY = "Left side only";
const CONTEXT_LENGTH = 24; // letters before a masked position that are shown with its predictions

/** A pane of bars, which put a predicted word into the text when they are pressed. */
export class PredictionPane {
  /** @type {number | null} the word whose predictions are shown */
  word = null;

  /** @param {FillStudio} studio */
  constructor(studio) {
    this.studio = studio;
    this.element = h("div", { class: "guesses" });
  }

  /** The hidden word whose predictions are shown: the first, unless another was chosen. @returns {MaskedWord | null} */
  get current() {
    const { maskedWords } = this.studio;
    return maskedWords.find(({ i }) => i === this.word) ?? maskedWords[0] ?? null;
  }

  show() {
    const { maskedWords } = this.studio;
    const at = Math.max(
      0,
      maskedWords.findIndex(({ i }) => i === this.word),
    );
    /** @type {[number, string][]} */
    const names = maskedWords.map(({ segment }, index) => [index, quotedExcerpt(segment.text, 12)]);
    const choose = (/** @type {number} */ index) => {
      this.studio.chooseMaskedWord(maskedWords[index].i);
    };
    const which = maskedWords.length > 1 ? [tabs("Guesses for", names, at, choose).element] : [];
    const none = h("p", { class: "muted" }, "No word is hidden.");
    const parts = maskedWords.length ? [...which, this.wordElement(maskedWords[at])] : [none];
    this.keepFocus(() => this.element.replaceChildren(...parts));
  }

  /**
   * Keep the focus on the chosen tab or prediction, although `act` replaces their elements.
   * @param {() => void} act
   */
  keepFocus(act) {
    const buttons = () => [...this.element.querySelectorAll("button")];
    const active = focusedIn(this.element);
    const at = buttons().indexOf(active);
    act();
    if (at < 0) return;
    const tab = active.role === "tab" ? this.element.querySelector("[aria-selected='true']") : null;
    /** @type {HTMLElement | undefined} */ (tab ?? buttons()[at])?.focus();
  }

  /** @param {MaskedWord} maskedWord */
  wordElement(maskedWord) {
    const { studio } = this;
    const { segment, both } = maskedWord;
    const name = quotedExcerpt(segment.text, 30);
    const marked = studio.edits.length ? "the line: with all heads on" : "";
    const top = this.sharedWords(maskedWord);
    const parts = both.map(({ position, probabilities, baseline }) => {
      const original = segment.ids[position - segment.at];
      const piece = both.length > 1 ? `(${studio.tokenizer.tokens([original])[0]})` : "";
      const takes = (/** @type {number} */ id) => () => studio.take(position, id);
      return predictionBars(
        ["Both sides", joinPresent([piece, marked], " ")],
        { probabilities, baseline, tokenizer: studio.tokenizer },
        { typed: original, takes, top },
      );
    });
    if (studio.viewDocument.compare_with) parts.push(this.leftBars(maskedWord, top));
    const isPair = both.length === 1 && parts.length === 2;
    const sides = joinPresent(["sides", isPair && "two-sided", top && "butterfly"], " ");
    return h(
      "div",
      { class: "gap", role: "group", "aria-label": `Guesses for ${name}` },
      h("b", {}, name),
      h("div", { class: sides }, ...parts),
    );
  }

  /**
   * Return the words that one of the two models finds likeliest, and the word as typed, in the order of the larger
   * probability; null if the models do not predict the same single token.
   * @param {MaskedWord} maskedWord
   * @returns {number[] | null}
   */
  sharedWords({ segment, both, left }) {
    if (both.length !== 1 || !left || "problem" in left || left.tokenizer !== this.studio.tokenizer) return null;
    const [{ position, probabilities }] = both;
    const top = likeliest(probabilities.map((probability, id) => Math.max(probability, left.probabilities[id])));
    return [...new Set([...top, segment.ids[position - segment.at]])];
  }

  /** @param {MaskedWord} maskedWord @param {number[] | null} top the words to show, if not the likeliest */
  leftBars({ segment, both, left }, top) {
    const { studio } = this;
    const remark = (/** @type {string} */ text) =>
      h("div", { class: "bar-list left-only" }, sideTitle([LEFT_ONLY, text]));
    if (left === undefined) return remark("…");
    if (left === null) return remark("nothing stands there");
    if ("problem" in left) return remark(left.problem);
    const { probabilities, tokenizer } = left;
    const [typed] = idsOrNull(tokenizer, segment.leadingSpace + segment.text) ?? [];
    const takes = (/** @type {number} */ id) => {
      const ids =
        tokenizer === studio.tokenizer
          ? [id]
          : (idsOrNull(studio.tokenizer, predictionText(segment, tokenizer, id)) ?? []);
      return both.length === 1 && ids.length === 1 ? () => studio.take(both[0].position, ids[0]) : null;
    };
    const after = left.text.trim() && `after ${quotedExcerpt(left.text.trim(), CONTEXT_LENGTH, "end")}`;
    const list = predictionBars(
      [LEFT_ONLY, after],
      { probabilities, baseline: null, tokenizer },
      { typed, takes, top },
    );
    list.classList.add("left-only");
    return list;
  }
}

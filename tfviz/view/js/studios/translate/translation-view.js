// The elements of the translation studio: source sentence, translation, alternative words, and the search as a tree.

import { button, h, slider } from "../../base/elements.js";
import { NO_LOCKS } from "../../base/locks.js";
import { formatFixed, percent } from "../../base/numbers.js";
import { logProbabilities, scoreOf } from "./beam-search.js";
import { NextWords } from "./next-words.js";
import { note } from "../small-elements.js";
import { SearchTexts } from "./search-texts.js";
import { SearchTree } from "./search-tree.js";
import { SourceText } from "./source-text.js";
import { TranslationText } from "./translation-text.js";

/** @import { Hypothesis } from "./beam-search.js" */
/** @import { DecoderOutput, TranslationSearch } from "./translation-search.js" */
/** @import { TranslateStudio } from "./translate-studio.js" */
/** @typedef {{ element: HTMLElement, show(value: number): void }} SliderControl */
/**
 * The state of a search that is shown.
 * @typedef {object} SearchState
 * @property {TranslationSearch} search
 * @property {TranslationSearch | null} baseline the search with all heads on, if some are off
 * @property {Hypothesis} text the selected text
 * @property {boolean} ended
 * @property {number[]} read its tokens that the decoder has read
 * @property {number} position of the word that is chosen
 * @property {DecoderOutput} answer
 * @property {DecoderOutput | null} baselineOutput the decoder's output with all heads on
 */

export const NO_CHOICE = { node: null, ...NO_LOCKS }; // nothing chosen

/** The panes of a translator's studio. */
export class TranslationView {
  /** The width of the beam for which the search was opened or closed. */
  searchedWidth = 0;

  /** @param {TranslateStudio} studio */
  constructor(studio) {
    this.studio = studio;
    const { store, tokenizer, viewDocument } = studio;
    const changeSentence = (/** @type {string} */ sentence) =>
      store.set({ sentence, prefix: [], forced: [], ...NO_CHOICE });
    this.sourceText = new SourceText(studio, changeSentence);
    this.translationText = new TranslationText(tokenizer, {
      choose: (position) => studio.choosePosition(position),
      point: () => studio.repoint(),
    });
    this.probability = h("p", { class: "metric" });
    this.runButton = button("▶ Translate", () => studio.toggle(), {
      title: "to the end, or stop (Alt+R)",
      class: "primary",
    });
    this.forced = h("div", { class: "branches", role: "group", "aria-label": "Beginnings that were forced" });
    this.next = new NextWords(tokenizer, viewDocument.suppressed_ids, (id) => studio.force(id));
    this.controls = this.makeControls();
    const choose = (/** @type {number} */ column, /** @type {number} */ rank) =>
      store.set({ ...NO_CHOICE, node: [column, rank] });
    this.texts = new SearchTexts(tokenizer, choose);
    this.tree = new SearchTree(studio.frame.theme, { choose });
  }

  /** Make the parts of the text: the sentence, its translation, and the buttons of the search. */
  makeTextParts() {
    const { studio } = this;
    const stepButton = button("Step", () => studio.step(), { title: "one word more (Alt+S)" });
    const backButton = button("Back", () => studio.back(), { title: "take the last step back (Alt+B)" });
    const reset = () => studio.store.set({ prefix: [], steps: 0, ...NO_CHOICE });
    const resetButton = button("Start over", reset, { title: "nothing written, nothing forced" });
    const steps = [this.runButton, stepButton, backButton, resetButton];
    const buttons = h("div", { class: "row steps", role: "group", "aria-label": "Search" }, ...steps);
    const title = h("h4", {}, "Its translation");
    return [
      this.sourceText.editor.element,
      buttons,
      title,
      this.translationText.element,
      this.probability,
      this.forced,
    ];
  }

  /** Make the part with the alternatives at a position and the controls of the search. */
  nextParts() {
    return [this.next.element, this.controls.num_beams.element, this.controls.length_penalty.element];
  }

  /** Make the part of the search: its texts, and its tree. */
  makeSearchPart() {
    const summary = h("summary", {}, "The search");
    const textList = h("div", {}, h("small", {}, "Score and text"), this.texts.element);
    this.search = h(
      "details",
      { class: "search-of" },
      summary,
      h("div", { class: "parts" }, textList, this.tree.element),
    );
    return this.search;
  }

  /** @returns {Record<"num_beams" | "length_penalty", SliderControl>} */
  makeControls() {
    const { store, viewDocument } = this.studio;
    const { max_num_beams, max_length_penalty } = viewDocument;
    const control = (
      /** @type {string} */ name,
      /** @type {"num_beams" | "length_penalty"} */ key,
      /** @type {Omit<Parameters<typeof slider>[1], "value" | "choose">} */ options,
    ) =>
      slider(name, { value: store.get(key), choose: (value) => store.set({ [key]: value, ...NO_CHOICE }), ...options });
    const widthText = (/** @type {number} */ width) => (width > 1 ? `${width} texts` : "greedy");
    const penaltyText = (/** @type {number} */ lengthPenalty) => formatFixed(lengthPenalty, 1);
    return {
      num_beams: control("Beam", "num_beams", { min: 1, max: max_num_beams, text: widthText }),
      length_penalty: control("Length penalty", "length_penalty", {
        min: 0,
        max: max_length_penalty,
        step: 0.1,
        text: penaltyText,
      }),
    };
  }

  /** Show the current choices: the sentence and the settings of the search. */
  showChoices() {
    const { store } = this.studio;
    this.showSearch(store.get("num_beams"));
    this.showShading();
    for (const name of /** @type {const} */ (["num_beams", "length_penalty"]))
      this.controls[name].show(store.get(name));
  }

  /** Open the search where several texts are kept: a greedy one has a single line, which stands above. @param {number} width */
  showSearch(width) {
    if (this.searchedWidth === width || !this.search) return;
    this.searchedWidth = width;
    this.search.open = width > 1;
  }

  /** Shade the sentence or the translation by the row of the chosen head that is pointed at. */
  showShading() {
    const { shading, part, row } = this.studio;
    const { sourceText, translationText } = this;
    sourceText.show(part === "decoder" ? null : shading, part === "encoder" ? row : null);
    const looks = part === "encoder" || row === null ? null : row - Number(part === "decoder"); // the first row is the beginning
    translationText.shade(this.studio.frame.theme, part === "decoder" ? shading : null, looks);
  }

  /** Show whether the search is running. @param {boolean} searching */
  showSearching(searching) {
    this.runButton.textContent = searching ? "■ Stop" : "▶ Translate";
  }

  /** @param {SearchState} current */
  show(current) {
    const { columns, store } = this.studio;
    this.showTree();
    this.translationText.show(current, store.get("prefix").length);
    this.next.show(current);
    this.showProbability(current);
    this.texts.show(columns, current.text.tokens, store.get("length_penalty"));
    this.showForced();
  }

  showTree() {
    const { columns, chosen, searching, store, tokenizer } = this.studio;
    const word = (/** @type {number} */ id) => tokenizer.tokens([id])[0];
    const forced = store.get("prefix").length;
    this.tree.show({ columns, chosen, searching, word, lengthPenalty: store.get("length_penalty"), forced });
  }

  /** Show the probability of the text, and what it would be with all heads on. @param {SearchState} current */
  showProbability(current) {
    const { sum, tokens } = current.text;
    const what = tokens.at(-1) === this.studio.viewDocument.eos_id ? "the whole text" : "the text so far";
    const now = `Probability of ${what}: ${percent(Math.exp(sum)).replace(" ", "\u00a0")}`;
    const score = formatFixed(scoreOf(current.text, this.studio.store.get("length_penalty")), 2);
    const probability = `${now}${this.comparison(current)}.`;
    this.probability.textContent = tokens.length
      ? `${probability} Score (log-probability ÷ length penalty): ${score}.`
      : "";
    this.probability.title = "the probability of all of them, one after another: the product of each word's own";
  }

  /** Compare with all heads on: the probability of the text, and the translation. @param {SearchState} current */
  comparison({ text: { tokens }, baselineOutput, baseline }) {
    if (!baselineOutput || !baseline) return "";
    const sum = tokens.reduce(
      (all, id, position) => all + logProbabilities(baselineOutput.logitsAt(0, position))[id],
      0,
    );
    const [best] = baseline.columns[Math.min(this.studio.columns.length, baseline.columns.length) - 1];
    const same = String(best.tokens) === String(tokens);
    const text = same ? "the same text" : `it writes ${this.texts.quote(best.tokens)}`;
    return `; with all heads on ${percent(Math.exp(sum))}, and ${text}`;
  }

  showForced() {
    const { store, viewDocument } = this.studio;
    const prefix = String(store.get("prefix"));
    const forced = store.get("forced");
    this.forced.hidden = !forced.length;
    this.forced.replaceChildren(
      note("Forced"),
      ...[[], ...forced].map((tokens) => {
        const onclick = () => store.set({ ...NO_CHOICE, prefix: tokens, steps: viewDocument.max_new_tokens });
        const name = tokens.length ? `${this.texts.quote(tokens)} …` : "nothing";
        return button(name, onclick, { "aria-pressed": String(String(tokens) === prefix) });
      }),
    );
  }
}

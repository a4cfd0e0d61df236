// What a translator shows: the sentence, the translation, what could stand in it, the search as a tree, the heads.

import { h, slider } from "../base/elements.js";
import { fixed, percent } from "../base/numbers.js";
import { logProbabilities, scoreOf } from "./beams.js";
import { NextWords } from "./next-words.js";
import { button, note } from "./parts.js";
import { SearchTexts } from "./search-texts.js";
import { SearchTree } from "./search-tree.js";
import { shortcuts } from "./shortcuts.js";
import { Studio } from "./studio.js";
import { TranslationText } from "./translation-text.js";

/** @import { TranslateDocument } from "../documents.d.ts" */
/** @import { Drawing, Pen, Vocabulary } from "../types.d.ts" */
/** @import { Beam } from "./beams.js" */
/** @import { Decoded, Search } from "./beam-search.js" */
/** @typedef {{ element: HTMLElement, show(value: number): void }} Knob */
/**
 * What is shown of a search.
 * @typedef {object} Current
 * @property {Search} search
 * @property {Search | null} baseline the same with all heads on, where some are off
 * @property {Beam} text the one that is looked at
 * @property {boolean} ended
 * @property {number[]} read its tokens that the decoder has read
 * @property {number} place of the word that is chosen
 * @property {Decoded} answer
 * @property {Decoded | null} base that of all heads
 */

export const UNCHOSEN = { node: null, rows: [], cols: [] }; // nothing chosen

/** @extends {Studio<TranslateDocument>} */
export class TranslationStudio extends Studio {
  get vocab() {
    return /** @type {Vocabulary} */ (this.vocabularies.at(-1));
  }

  build() {
    /** @type {Current | null} */
    this.current = null;
    /** @type {Decoded | null} whose maps are shown */
    this.mappedAnswer = null;
    /** @type {Beam[][]} of the search, as far as it is shown */
    this.columns = [];
    this.compose({
      textTitle: "The sentence",
      text: this.buildText(),
      saysTitle: "What could stand here",
      says: this.buildNext(),
    });
    this.headPane.inner.before(this.buildSearch());
    const actions = { s: () => this.step(), r: () => this.toggle(), b: () => this.back() };
    this.frame.body.addEventListener("keydown", shortcuts(actions));
  }

  /** Make the sentence, its translation, and the buttons of the search. */
  buildText() {
    const { store } = this;
    /** @type {HTMLTextAreaElement} */
    this.sentence = h("textarea", {
      class: "field",
      rows: 2,
      dir: "auto",
      spellcheck: false,
      "aria-label": "Sentence",
      oninput: () => store.set({ sentence: this.sentence.value, prefix: [], forced: [], ...UNCHOSEN }),
    });
    /** @type {TranslationText} */
    this.translationText = new TranslationText(this.vocab, (place) => this.choosePlace(place));
    /** @type {HTMLElement} */
    this.cost = h("p", { class: "cost" });
    const stepButton = button("Step", () => this.step(), { title: "one word more (Alt+S)" });
    /** @type {HTMLButtonElement} */
    this.runButton = button("▶ Translate", () => this.toggle(), { title: "to the end, or stop (Alt+R)", class: "go" });
    const backButton = button("Back", () => this.back(), { title: "take the last step back (Alt+B)" });
    const reset = () => store.set({ prefix: [], steps: 0, ...UNCHOSEN });
    const resetButton = button("From the start", reset, { title: "nothing written, nothing forced" });
    const steps = [this.runButton, stepButton, backButton, resetButton];
    const buttons = h("div", { class: "row", role: "group", "aria-label": "Search" }, ...steps);
    /** @type {HTMLElement} */
    this.forced = h("div", { class: "branches", role: "group", "aria-label": "Beginnings that were forced" });
    const title = h("h4", {}, "Its translation");
    return [this.sentence, title, this.translationText.element, this.cost, buttons, this.forced];
  }

  /** Make what could stand at a place, and the controls of the search. */
  buildNext() {
    const { store } = this;
    const { suppressed, max_width, max_alpha } = this.described;
    /** @type {NextWords} */
    this.next = new NextWords(this.vocab, suppressed, (id) => this.force(id));
    const knob = (
      /** @type {string} */ name,
      /** @type {"width" | "alpha"} */ key,
      /** @type {Omit<Parameters<typeof slider>[1], "value" | "choose">} */ options,
    ) =>
      slider(name, { value: store.get(key), choose: (value) => store.set({ [key]: value, ...UNCHOSEN }), ...options });
    const widthText = (/** @type {number} */ width) => (width > 1 ? `${width} texts` : "greedy");
    const alphaText = (/** @type {number} */ alpha) => fixed(alpha, 1);
    /** @type {Record<"width" | "alpha", Knob>} */
    this.controls = {
      width: knob("Beam", "width", { min: 1, max: max_width, text: widthText }),
      alpha: knob("Length penalty", "alpha", { min: 0, max: max_alpha, step: 0.1, text: alphaText }),
    };
    return [this.next.element, this.controls.width.element, this.controls.alpha.element];
  }

  /** Make the texts of the search, and its tree. */
  buildSearch() {
    const choose = (/** @type {number} */ column, /** @type {number} */ rank) =>
      this.store.set({ ...UNCHOSEN, node: [column, rank] });
    /** @type {SearchTexts} */
    this.texts = new SearchTexts(this.vocab, choose);
    /** @type {SearchTree} */
    this.tree = new SearchTree(this.frame.theme, { choose });
    const summary = h("summary", {}, "The search");
    return h("details", { class: "search-of", open: true }, summary, this.texts.element, this.tree.element);
  }

  /** @abstract */
  step() {}

  /** @abstract */
  toggle() {}

  /** @abstract */
  back() {}

  /** @abstract @param {number} _token */
  force(_token) {}

  /** @abstract @returns {number[] | null} the column and rank of the text that is looked at */
  get chosen() {
    return null;
  }

  /** Look at a place of the translation, or no longer. @param {number} place */
  choosePlace(place) {
    const mode = this.store.get("mode") === "sheet" ? "words" : this.store.get("mode");
    const other = this.store.get("rows")[0] !== place;
    this.store.set(other ? { rows: [place], mode, part: 0, direction: "at" } : { rows: [] });
  }

  /** @param {Current} current @param {number[]} ids of the sentence */
  show(current, ids) {
    const { columns, store } = this;
    this.showTree();
    this.translationText.show(current, store.get("prefix").length);
    this.next.show(current);
    this.showCost(current);
    this.texts.show(columns, current.text.tokens, store.get("alpha"));
    this.showForced();
    this.showMapsOf(current, ids);
    this.frame.renewTable();
  }

  /** Show the maps: of the cross-attention first, then the encoder's. @param {Current} current @param {number[]} ids */
  showMapsOf({ read, ended, text, answer }, ids) {
    if (this.mappedAnswer === answer) return this.showModel();
    const source = this.vocabularies[0].words(ids);
    const target = this.vocab.words([this.described.begin, ...read]);
    const written = [...this.vocab.words(text.tokens), ...(ended ? [] : ["…"])];
    /** @type {Record<string, string[][]>} */
    const words = { "cross-attention": [written, source], encoder: [source, source], decoder: [target, target] };
    const maps = Object.entries(answer.patterns);
    const patterns = Object.fromEntries([
      ...maps.filter(([site]) => site.includes("cross")),
      ...Object.entries(answer.encoderPatterns),
      ...maps.filter(([site]) => !site.includes("cross")),
    ]);
    this.showMaps(patterns, ({ name }) => words[name]);
    this.mappedAnswer = answer;
  }

  showTree() {
    const { columns, chosen, store } = this;
    const word = (/** @type {number} */ id) => this.vocab.words([id])[0];
    this.tree.show({ columns, chosen, word, alpha: store.get("alpha"), forced: store.get("prefix").length });
  }

  /** Show the log of the text's probability, and what it would be with all heads on. @param {Current} current */
  showCost(current) {
    const { sum, tokens } = current.text;
    const score = fixed(scoreOf(current.text, this.store.get("alpha")), 2);
    const now = `Log of its probability ${fixed(sum, 2)} nats (${percent(Math.exp(sum))}), score ${score}`;
    this.cost.textContent = tokens.length ? `${now}${this.comparison(current)}.` : "";
  }

  /** Describe what the text costs with all heads on, and what is written then. @param {Current} current */
  comparison({ text: { tokens }, base, baseline }) {
    if (!base || !baseline) return "";
    const sum = tokens.reduce((all, id, place) => all + logProbabilities(base.at(0, place))[id], 0);
    const [best] = baseline.columns[Math.min(this.columns.length, baseline.columns.length) - 1];
    const same = String(best.tokens) === String(tokens);
    const text = same ? "the same text" : `it writes ${this.texts.quote(best.tokens)}`;
    return `; with all heads on ${fixed(sum, 2)} nats, and ${text}`;
  }

  showForced() {
    const { store } = this;
    const prefix = String(store.get("prefix"));
    const forced = store.get("forced");
    this.forced.hidden = !forced.length;
    this.forced.replaceChildren(
      note("Forced"),
      ...[[], ...forced].map((tokens) => {
        const onclick = () => store.set({ ...UNCHOSEN, prefix: tokens, steps: this.described.max_tokens });
        const name = tokens.length ? `${this.texts.quote(tokens)} …` : "nothing";
        return button(name, onclick, { "aria-pressed": String(String(tokens) === prefix) });
      }),
    );
  }

  /** The next word's row of the cross-attention, and of the decoder's own. */
  get row() {
    if (!this.current || !this.heads.groups.length) return null;
    return this.heads.groups[this.heads.selected.part].name === "encoder" ? null : this.current.place;
  }

  panels() {
    return this.current && this.next.panels;
  }

  /** What could stand at the chosen place, and the texts of the search. */
  tables() {
    return this.current ? [...super.tables(), this.texts.table] : [];
  }

  /** @returns {Drawing} */
  get drawing() {
    const { tree } = this;
    return { width: tree.width, height: tree.height, draw: (/** @type {Pen} */ pen) => tree.draw(pen) };
  }
}

// What a translator shows: the sentence, the translation, what could stand in it, the search as a tree, the heads.

import { activeIn, h, slider, stepIn } from "../base/elements.js";
import { fixed, percent } from "../base/numbers.js";
import { quoted, sign } from "../base/pen.js";
import { likeliestTokens, logProbabilities, scoreOf } from "./beams.js";
import { button } from "./button.js";
import { LruCache } from "./lru-cache.js";
import { SearchTree } from "./search-tree.js";
import { bars, sharesPanel } from "./probability-bars.js";
import { shortcuts } from "./shortcuts.js";
import { Studio } from "./studio.js";
import { pieceText, spaceSeparated } from "./token-text.js";

/** @import { TranslateDocument } from "../documents.d.ts" */
/** @import { Drawing, Pen } from "../types.d.ts" */
/** @import { Beam } from "./beams.js" */
/** @import { Decoded, Reader, Search } from "./beam-search.js" */
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

const MAX_SEARCHES = 8; // that are kept, and readers
const COULD_STAND = 12; // words that could stand at a place
export const UNCHOSEN = { node: null, rows: [], cols: [] }; // nothing chosen

/** @extends {Studio<TranslateDocument>} */
export class TranslationStudio extends Studio {
  get vocab() {
    return this.vocabularies[this.vocabularies.length - 1];
  }

  build() {
    const { store, frame, described } = this;
    /**
     * @type {(name: string, key: "width" | "alpha", options: Omit<Parameters<typeof slider>[1], "value" | "choose">)
     *   => Knob}
     */
    const knob = (name, key, options) =>
      slider(name, { value: store.get(key), choose: (value) => store.set({ [key]: value, ...UNCHOSEN }), ...options });
    /** @type {Current | null} */
    this.current = null;
    /** @type {Decoded | null} whose maps are shown */
    this.mappedAnswer = null;
    /** @type {LruCache<Reader>} by source and heads that are off */
    this.readers = new LruCache(MAX_SEARCHES);
    /** @type {LruCache<Search>} */
    this.searches = new LruCache(MAX_SEARCHES);
    /** @type {Beam[][]} of the search, as far as it is shown */
    this.columns = [];
    /** @type {HTMLTextAreaElement} */
    this.sentence = h("textarea", {
      rows: 2,
      dir: "auto",
      spellcheck: false,
      oninput: () => store.set({ sentence: this.sentence.value, prefix: [], forced: [], ...UNCHOSEN }),
    });
    /** @type {Record<"width" | "alpha", Knob>} */
    this.controls = {
      width: knob("Beam", "width", {
        min: 1,
        max: described.max_width,
        text: (width) => (width > 1 ? `${width} texts` : "greedy"),
      }),
      alpha: knob("Length penalty", "alpha", {
        min: 0,
        max: described.max_alpha,
        step: 0.1,
        text: (alpha) => fixed(alpha, 1),
      }),
    };
    this.stepButton = button("Step", () => this.step(), { title: "one word more (Alt+S)" });
    /** @type {HTMLButtonElement} */
    this.runButton = button("▶ Translate", () => this.toggle(), { title: "to the end, or stop (Alt+R)", class: "go" });
    this.backButton = button("Back", () => this.back(), { title: "take the last step back (Alt+B)" });
    const reset = () => store.set({ prefix: [], steps: 0, ...UNCHOSEN });
    this.resetButton = button("From the start", reset, { title: "nothing written, nothing forced" });
    /** @type {HTMLElement} */
    this.text = h("p", {
      class: "sentence written",
      role: "listbox",
      "aria-label": "the translation: choose a word",
      dir: "auto",
      tabIndex: -1,
    });
    /** @type {HTMLElement} */
    this.next = h("div", {
      class: "shares",
      role: "group",
      "aria-label": "What could stand here: press one to force it",
    });
    /** @type {HTMLElement} */
    this.texts = h("div", { class: "found", role: "group", "aria-label": "Texts of the search, best first" });
    /** @type {HTMLElement} */
    this.forced = h("div", { class: "branches", role: "group", "aria-label": "Beginnings that were forced" });
    /** @type {HTMLElement} */
    this.cost = h("p", { class: "cost" });
    /** @type {SearchTree} */
    this.tree = new SearchTree(frame.theme, {
      choose: (column, rank) => store.set({ ...UNCHOSEN, node: [column, rank] }),
    });
    this.sentence.setAttribute("aria-label", "Sentence");
    this.sentence.className = "field";
    const steps = [this.runButton, this.stepButton, this.backButton, this.resetButton];
    this.compose({
      textTitle: "The sentence",
      text: [
        this.sentence,
        h("h4", {}, "Its translation"),
        this.text,
        this.cost,
        h("div", { class: "row", role: "group", "aria-label": "Search" }, ...steps),
        this.forced,
      ],
      saysTitle: "What could stand here",
      says: [this.next, ...Object.values(this.controls).map(({ element }) => element)],
    });
    const search = h(
      "details",
      { class: "search-of", open: true },
      h("summary", {}, "The search"),
      this.texts,
      this.tree.element,
    );
    this.headPane.inner.before(search);
    const keys = { s: () => this.step(), r: () => this.toggle(), b: () => this.back() };
    frame.body.addEventListener("keydown", shortcuts(keys));
    this.listen();
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

  listen() {
    const choose = (/** @type {number} */ place) => {
      const mode = this.store.get("mode") === "sheet" ? "words" : this.store.get("mode");
      const other = this.store.get("rows")[0] !== place;
      this.store.set(other ? { rows: [place], mode, part: 0, direction: "at" } : { rows: [] });
    };
    this.text.onclick = (/** @type {any} */ { target }) => target.dataset.place && choose(Number(target.dataset.place));
    this.text.onkeydown = (/** @type {any} */ event) => {
      const place = Number(event.target.dataset.place);
      const last = this.text.children.length - 1;
      const next = stepIn(event.key, place, last);
      if (next === undefined && event.key !== "Enter" && event.key !== " ") return;
      if (next === undefined) choose(place);
      else /** @type {HTMLElement} */ (this.text.children[Math.max(0, Math.min(last, next))]).focus();
      event.preventDefault();
      event.stopPropagation();
    };
  }

  /** @param {Current} current @param {number[]} ids of the sentence */
  show(current, ids) {
    const { read, ended, text, answer } = current;
    this.showTree();
    this.showText(current);
    this.showNext(current);
    this.showCost(current);
    this.showTexts(current);
    this.showForced();
    const source = this.vocabularies[0].words(ids);
    const target = this.vocab.words([this.described.begin, ...read]);
    const written = [...this.vocab.words(text.tokens), ...(ended ? [] : ["…"])];
    /** @type {Record<string, string[][]>} */
    const words = { "cross-attention": [written, source], encoder: [source, source], decoder: [target, target] };
    const cross = Object.entries(answer.patterns).sort(
      ([a], [b]) => Number(b.includes("cross")) - Number(a.includes("cross")),
    );
    const first = cross.filter(([site]) => site.includes("cross"));
    const patterns = Object.fromEntries([
      ...first,
      ...Object.entries(answer.encoderPatterns),
      ...cross.slice(first.length),
    ]);
    if (this.mappedAnswer !== answer) this.showMaps(patterns, ({ name }) => words[name]);
    else this.showModel();
    this.mappedAnswer = answer;
    this.frame.renewTable();
  }

  /** Quote a text as it is read; what cannot be seen has a sign. @param {number[]} tokens */
  quote(tokens) {
    const letters = [...this.vocab.decode(tokens)].map((letter) => (letter === " " ? letter : sign(letter)));
    return `“\u2068${letters.join("")}\u2069”`;
  }

  showTree() {
    const { columns, chosen, store } = this;
    const word = (/** @type {number} */ id) => this.vocab.words([id])[0];
    this.tree.show({ columns, chosen, word, alpha: store.get("alpha"), forced: store.get("prefix").length });
  }

  /**
   * Show the translation: every word is a place to choose, for what could stand there and where the heads look before
   * it.
   * @param {Current} current
   */
  showText({ text, ended, place }) {
    const forced = this.store.get("prefix").length;
    const written = [
      ...text.tokens.map((id) => pieceText(this.vocab, id).replace(/\n/g, "⏎")),
      ...(ended ? [] : ["…"]),
    ];
    this.text.classList.toggle("loose", spaceSeparated(this.vocab));
    const focused = this.text.contains(activeIn(this.text));
    this.text.replaceChildren(
      ...written.flatMap((word, at) => {
        const classes = ["word", "new", at < forced && "forced", at === place && "picked"].filter(Boolean).join(" ");
        const span = h(
          "span",
          { class: classes, role: "option", "aria-selected": String(at === place), tabIndex: at === place ? 0 : -1 },
          word,
        );
        span.dataset.place = String(at);
        return spaceSeparated(this.vocab) ? [span, " "] : [span];
      }),
    );
    if (focused) /** @type {HTMLElement} */ (this.text.children[place]).focus();
  }

  /**
   * What could stand at the chosen place; other: with all heads on.
   * @returns {{ id: number, share: number, other: number | null }[]}
   */
  get likeliest() {
    if (!this.current) return [];
    const { answer, base, place } = this.current;
    const logs = logProbabilities(answer.at(0, place), this.described.suppressed);
    const others = base && logProbabilities(base.at(0, place), this.described.suppressed);
    return likeliestTokens(logs, COULD_STAND).map((id) => {
      return { id, share: Math.exp(logs[id]), other: others ? Math.exp(others[id]) : null };
    });
  }

  /** @param {Current} current */
  showNext({ text, place, base }) {
    const focused = this.next.contains(activeIn(this.next));
    const about = place < text.tokens.length ? `In place ${place + 1}` : "Next word";
    this.next.replaceChildren(
      h("span", { class: "soft" }, base ? `${about}; the line: with all heads on` : about),
      ...bars(
        this.likeliest.map(({ id, share, other }) => ({
          name: quoted(this.vocab.words([id])[0], 24),
          share,
          other,
          title: other === null ? "force it" : `force it; with all heads on ${percent(other)}`,
          onclick: () => this.force(id),
        })),
      ),
    );
    if (focused) this.next.querySelector("button")?.focus();
  }

  /** Show the log of the text's probability, and what it would be with all heads on. @param {Current} current */
  showCost({ text, base, baseline }) {
    if (!text.tokens.length) return void (this.cost.textContent = "");
    const alpha = this.store.get("alpha");
    let sentence = `Log of its probability ${fixed(text.sum, 2)} nats (${percent(Math.exp(text.sum))}), score ${fixed(scoreOf(text, alpha), 2)}`;
    if (base && baseline) {
      const sum = text.tokens.reduce((all, id, place) => all + logProbabilities(base.at(0, place))[id], 0);
      const [best] = baseline.columns[Math.min(this.columns.length, baseline.columns.length) - 1];
      const same = String(best.tokens) === String(text.tokens);
      sentence += `; with all heads on ${fixed(sum, 2)} nats, and ${same ? "the same text" : `it writes ${this.quote(best.tokens)}`}`;
    }
    this.cost.textContent = `${sentence}.`;
    return undefined;
  }

  /** Show the texts of the search, best first. @param {Current} current */
  showTexts({ text: { tokens } }) {
    const { columns, store } = this;
    const last = columns.length - 1;
    this.texts.replaceChildren(
      ...(columns[last] ?? []).map((text, rank) =>
        button(
          [
            h("span", { class: "score" }, fixed(scoreOf(text, store.get("alpha")), 2)),
            h("span", { class: "name", dir: "auto" }, this.quote(text.tokens), text.ended ? "" : " …"),
          ],
          () => store.set({ ...UNCHOSEN, node: [last, rank] }),
          { "aria-pressed": String(String(text.tokens) === String(tokens)) },
        ),
      ),
    );
  }

  showForced() {
    const { store } = this;
    const prefix = String(store.get("prefix"));
    const forced = store.get("forced");
    this.forced.hidden = !forced.length;
    this.forced.replaceChildren(
      h("span", { class: "soft" }, "Forced"),
      ...[[], ...forced].map((tokens) => {
        const onclick = () => store.set({ ...UNCHOSEN, prefix: tokens, steps: this.described.max_tokens });
        const name = tokens.length ? `${this.quote(tokens)} …` : "nothing";
        return button(name, onclick, { "aria-pressed": String(String(tokens) === prefix) });
      }),
    );
  }

  /** The next word's row of the cross-attention, and of the decoder's own. */
  get row() {
    if (!this.current || !this.heads.groups.length) return null;
    return this.heads.groups[this.heads.selected.part].name === "encoder" ? null : this.current.place;
  }

  /** @returns {number[]} */
  idsOf() {
    return [];
  }

  panels() {
    if (!this.current) return null;
    const rows = this.likeliest.map(({ id, share, other }) => ({ name: this.vocab.words([id])[0], share, other }));
    return [sharesPanel("", "word", rows)];
  }

  /** What could stand at the chosen place, and the texts of the search. */
  tables() {
    if (!this.current) return [];
    const alpha = this.store.get("alpha");
    const cell = (/** @type {string} */ text) => h("td", { class: "text" }, text);
    const heads = ["text", "nats", "score"].map((name) => h("th", { scope: "col" }, name));
    const rows = (this.columns.at(-1) ?? []).map((text) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, this.quote(text.tokens)),
        cell(fixed(text.sum, 4)),
        cell(fixed(scoreOf(text, alpha), 4)),
      ),
    );
    const texts = h(
      "table",
      {},
      h("caption", {}, "texts of the search"),
      h("thead", {}, h("tr", {}, ...heads)),
      h("tbody", {}, ...rows),
    );
    return [...super.tables(), texts];
  }

  /** @returns {Drawing} */
  get drawing() {
    const { tree } = this;
    return { width: tree.width, height: tree.height, draw: (/** @type {Pen} */ pen) => tree.draw(pen) };
  }
}

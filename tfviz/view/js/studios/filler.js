// A masked language model to question: words to hide, its guesses from both sides to put in, heads to switch off; beside
// it a model that sees only the left.

import { activeIn, h, tabs } from "../base/elements.js";
import { drawGuesses, guessBars, guessesHeight, guessesOf } from "./guesses.js";
import { MaskedText } from "./masked-text.js";
import { joined, note } from "./parts.js";
import { sharesPanel } from "./probability-bars.js";
import { fillerTries } from "./tries.js";
import { cited, visibleText } from "./visible-text.js";

/** @import { Drawing, Pen } from "../types.d.ts" */
/** @import { Gap, Guess, Left } from "./masked-text.js" */
/** @import { Segment } from "./word-segments.js" */

const AFTER = 24; // letters of what stands before

export class Filler extends MaskedText {
  get keys() {
    return FILLER_KEYS;
  }

  /** Nothing is hidden in a text that was just typed. */
  get initialState() {
    return { masked: [], filled: [] };
  }

  build() {
    /** @type {number | null} the word whose guesses are shown */
    this.gap = null;
    this.buildText("Text", "The words: press one to hide it");
    /** @type {HTMLElement} */
    this.guesses = h("div", { class: "guesses" });
    const how = h("p", { class: "soft" }, "Press a word to hide it: the model guesses what stood there.");
    this.compose({
      textTitle: "The text",
      text: [this.words.element, this.field, how, h("div", { class: "row" }, this.editing, this.reset)],
      saysTitle: "What it guesses",
      says: [this.guesses],
    });
    this.showTries(fillerTries(this));
  }

  /** Hide a word, or show it; hide one that was put in again. @param {number} i */
  act(i) {
    const places = this.placesOf(this.segments[i]);
    const { masked, filled } = this;
    const others = [...masked].filter((place) => !places.includes(place));
    this.gap = i;
    const shows = places.some((place) => masked.has(place)) && !places.some((place) => filled.has(place));
    this.change({
      masked: shows ? others : [...others, ...places].sort((a, b) => a - b),
      filled: [...filled].filter(([place]) => !places.includes(place)),
    });
  }

  /** @param {number} place @param {number} id */
  take(place, id) {
    const filled = [...this.store.get("filled").filter(([other]) => other !== place), [place, id]];
    this.change({ filled, masked: this.store.get("masked").filter((other) => other !== place) });
    this.words.focus(this.segments.findIndex((segment) => this.placesOf(segment).includes(place)));
  }

  /** @param {number} turn */
  async show(turn) {
    this.reset.hidden = !this.store.get("masked").length && !this.store.get("filled").length;
    this.forgetLeft();
    this.showGuesses();
    const { beside } = this.described;
    if (!beside || !(await this.askLeft(turn, beside))) return;
    this.showGuesses();
    this.frame.renewTable();
  }

  showGuesses() {
    const { gaps } = this;
    const at = Math.max(
      0,
      gaps.findIndex(({ i }) => i === this.gap),
    );
    /** @type {[number, string][]} */
    const names = gaps.map(({ segment }, place) => [place, cited(segment.text, 12)]);
    const choose = (/** @type {number} */ place) => {
      this.gap = gaps[place].i;
      this.showGuesses();
    };
    const which = gaps.length > 1 ? [tabs("Guesses for", names, at, choose).element] : [];
    const none = h("p", { class: "soft" }, "No word is hidden.");
    const parts = gaps.length ? [...which, this.gapOf(gaps[at])] : [none];
    this.keepFocus(() => this.guesses.replaceChildren(...parts));
  }

  /**
   * The focus stays on the chosen tab, or on the guess of the same place, though they are other elements now.
   * @param {() => void} act
   */
  keepFocus(act) {
    const buttons = () => [...this.guesses.querySelectorAll("button")];
    const active = activeIn(this.guesses);
    const at = buttons().indexOf(active);
    act();
    if (at < 0) return;
    const tab = active.role === "tab" ? this.guesses.querySelector("[aria-selected='true']") : null;
    /** @type {HTMLElement | undefined} */ (tab ?? buttons()[at])?.focus();
  }

  /** @param {Gap} gap */
  gapOf({ segment, both, left }) {
    const name = cited(segment.text, 30);
    const marked = this.edits.length ? "; the line: with all heads on" : "";
    const parts = both.map(({ place, shares, baseline }) => {
      const piece = both.length > 1 ? ` (${this.vocab.words([segment.ids[place - segment.at]])[0]})` : "";
      return guessBars(
        `both sides${piece}${marked}`,
        { shares, baseline, vocab: this.vocab },
        { typed: segment.ids[place - segment.at], takes: (id) => () => this.take(place, id) },
      );
    });
    if (this.described.beside) parts.push(this.leftOf(segment, both, left));
    return h(
      "div",
      { class: "gap", role: "group", "aria-label": `Guesses for ${name}` },
      h("b", {}, name),
      h("div", { class: "sides" }, ...parts),
    );
  }

  /** @param {Segment} segment @param {Guess[]} both @param {Left} left */
  leftOf(segment, both, left) {
    const remark = (/** @type {string} */ text) => h("div", { class: "shares" }, note(`left side: ${text}`));
    if (left === undefined) return remark("…");
    if (left === null) return remark("nothing stands there");
    if ("problem" in left) return remark(left.problem);
    const { shares, vocab } = left;
    const [typed] = this.wordIn(vocab, segment.lead + segment.text) ?? [];
    const takes = (/** @type {number} */ id) => {
      const ids = vocab === this.vocab ? [id] : (this.wordIn(this.vocab, this.guessed(segment, vocab, id)) ?? []);
      return both.length === 1 && ids.length === 1 ? () => this.take(both[0].place, ids[0]) : null;
    };
    const after = left.text.trim() && `, after ${cited(left.text.trim(), AFTER, "end")}`;
    return guessBars(`left side${after}`, { shares, baseline: null, vocab }, { typed, takes });
  }

  get counts() {
    return this.segments.map(({ ids }) => ids.length);
  }

  unshade() {
    for (const span of this.words.spans) Object.assign(span.style, { background: "", color: "" });
  }

  /** @param {number} i */
  announceWord(i) {
    const segment = this.segments[i];
    const now = this.textOf(segment);
    const remarks = [
      now === null && "hidden",
      now !== null && now !== segment.text && `in place of ${cited(segment.text)}`,
      segment.unknown && "not in the vocabulary: read as unknown",
    ];
    this.announce(joined([cited(now ?? segment.text), joined(remarks, "; ")], ": "));
  }

  /** @param {HTMLElement} span @param {Segment} segment */
  decorateWord(span, segment) {
    const now = this.textOf(segment);
    span.textContent = now === null ? "?" : visibleText(now);
    span.classList.toggle("blank", now === null);
    span.classList.toggle("swapped", now !== null && now !== segment.text);
    span.classList.toggle("unknown", segment.unknown && now === segment.text);
    span.setAttribute("aria-pressed", String(now === null));
    if (now === null) span.setAttribute("aria-label", `${visibleText(segment.text)}, hidden`);
    else span.removeAttribute("aria-label");
    span.title = now === null ? `${cited(segment.text)}, hidden: press to show it` : "press to hide it";
  }

  /** The likeliest words of each place, with the name of their table. */
  get guessTables() {
    return this.gaps.flatMap(({ segment, both, left }) => [
      ...both.map(({ shares, baseline }) => ({
        name: `${segment.text}, both sides`,
        rows: guessesOf({ shares, baseline, vocab: this.vocab }),
      })),
      ...(left && "shares" in left ? [{ name: `${segment.text}, left side`, rows: guessesOf(left) }] : []),
    ]);
  }

  panels() {
    return this.answer ? this.guessTables.map(({ name, rows }) => sharesPanel(name, "guess", rows)) : null;
  }

  /** @returns {Drawing} */
  get drawing() {
    const { theme } = this.frame;
    const tables = this.answer ? this.guessTables : [];
    const draw = (/** @type {Pen} */ pen, /** @type {number} */ top) => drawGuesses(pen, theme, tables, top);
    return this.words.drawing(theme, { height: guessesHeight(tables), draw });
  }
}

const FILLER_KEYS = [
  ["arrows, Home, End", "in the text: from word to word"],
  ["Enter, Space", "hide a word, or show it"],
  ["Enter", "on a guess: put it in; on a head: switch it off"],
];

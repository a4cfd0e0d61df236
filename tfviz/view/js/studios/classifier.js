// A classifier to question: a text to type, words to strike out or replace, what each is worth, heads to switch off.

import { h } from "../base/elements.js";
import { percent, withSign } from "../base/numbers.js";
import { logOdds, softmax } from "./logits.js";
import { note } from "./parts.js";
import { bars, drawShares, sharesHeight, sharesPanel } from "./probability-bars.js";
import { cited, visibleText } from "./visible-text.js";
import { classifierTries } from "./tries.js";
import { WordEffects } from "./word-effects.js";

/** @import { Drawing, Pen } from "../types.d.ts" */
/** @import { Share } from "./probability-bars.js" */
/** @import { Segment } from "./word-segments.js" */

export class Classifier extends WordEffects {
  get keys() {
    return CLASSIFIER_KEYS;
  }

  get maxAnswers() {
    return 1000;
  }

  /** Nothing is changed in a text that was just typed. */
  get initialState() {
    return { deleted: [], replaced: [] };
  }

  build() {
    const { labels } = this.described;
    this.buildText("Text", "The words: press one to strike it out");
    this.words.element.ondblclick = (event) => this.words.at(event, (i) => this.edit(i));
    this.buildShades(labels);
    /** @type {HTMLElement} */
    this.verdict = h("div", { class: "shares", role: "group", "aria-label": "Verdict" });
    /** @type {HTMLElement} */
    this.moved = h("p", { class: "cost", role: "status" });
    const how = h("p", { class: "soft" }, "Press a word to strike it out, twice to type another.");
    const shading = h("div", { class: "controls" }, this.shades.element, this.scale, this.progress);
    this.compose({
      textTitle: "The text",
      text: [this.words.element, this.field, how, h("div", { class: "row" }, this.editing, this.reset), shading],
      saysTitle: "What it says",
      says: [this.verdict, this.moved],
    });
    this.showTries(classifierTries(this));
  }

  /** @param {number} i @param {{ key?: string, detail?: number }} event */
  act(i, { key, detail = 0 }) {
    if (key === "Enter") return this.edit(i);
    if (detail > 1) return undefined; // the second click of two, which opens the word
    const deleted = this.store.get("deleted");
    return this.change({ deleted: deleted.includes(i) ? deleted.filter((other) => other !== i) : [...deleted, i] });
  }

  /** Open a field to type another word in its place: Enter takes it, Esc leaves it. @param {number} i */
  edit(i) {
    const { text, lead } = this.segments[i];
    const now = this.replaced.get(i) ?? text;
    const input = h("input", {
      class: "swap",
      value: now,
      size: Math.max(4, now.length),
      "aria-label": `in place of ${visibleText(text)}`,
      dir: "auto",
    });
    const span = this.words.spans[i];
    let open = true;
    const end = (/** @type {boolean} */ taken) => {
      if (!open) return;
      if (taken && !this.replace(i, input.value.trim(), lead)) return;
      open = false;
      input.remove();
      span.hidden = false;
      span.focus();
    };
    input.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      if (event.key === "Enter") end(true);
      else if (event.key === "Escape") end(false);
    };
    input.onblur = () => end(false);
    span.hidden = true;
    span.before(input);
    input.focus();
    input.select();
  }

  /**
   * Put a word in place of another, or strike that out if it is empty. Return whether the vocabulary can write it.
   * @param {number} i
   * @param {string} word
   * @param {string} lead
   */
  replace(i, word, lead) {
    const others = this.store.get("replaced").filter(([other]) => other !== i);
    const deleted = this.store.get("deleted").filter((other) => other !== i);
    try {
      if (!this.vocab.learn) this.vocab.encode(lead + word); // else Python says so, when it reads the word
    } catch (error) {
      this.announce(/** @type {Error} */ (error).message);
      return false;
    }
    if (!word) this.change({ deleted: [...deleted, i] });
    else this.change({ deleted, replaced: word === this.segments[i].text ? others : [...others, [i, word]] });
    return true;
  }

  /** @param {number} turn */
  show(turn) {
    const { answer, compared } = this;
    if (!answer || !compared) return;
    const { labels } = this.described;
    const shaded = this.store.get("label");
    this.shades.show(shaded);
    this.reset.hidden = !this.store.get("deleted").length && !this.store.get("replaced").length;
    const rows = this.verdicts;
    const changed = compared !== answer;
    this.verdict.replaceChildren(
      note(changed ? `The line: ${this.edits.length ? "as typed, all heads on" : "as typed"}` : ""),
      ...bars(rows.map((row) => ({ ...row, name: visibleText(row.name) }))),
    );
    const first = Math.max(0, shaded);
    const [odds, were] = [answer, compared].map(({ logits }) => logOdds(logits, first));
    const name = cited(labels[first], 24);
    this.moved.textContent = changed
      ? `${name}: ${percent(rows[first].other ?? 0)} → ${percent(rows[first].share)}; log-odds ${withSign(were)} → ${withSign(odds)} (${withSign(odds - were)})`
      : `log-odds of ${name}: ${withSign(odds)}`;
    this.weighing = this.weigh(turn);
  }

  /** Until each word is weighed, too. */
  async settled() {
    await this.refresh();
    await this.weighing;
  }

  get counts() {
    return this.pieces.map((ids) => ids.length);
  }

  unshade() {
    for (const span of this.words.spans) span.style.color = "";
    this.shadeAll(this.store.get("label"), true);
  }

  /** @param {number} i */
  announceWord(i) {
    this.announce(this.sentenceOf(i));
  }

  /** @param {HTMLElement} span @param {Segment} segment @param {number} i */
  decorateWord(span, { text, unknown }, i) {
    const { deleted, replaced } = this;
    span.textContent = visibleText(replaced.get(i) ?? text);
    span.classList.toggle("struck", deleted.has(i));
    span.classList.toggle("swapped", replaced.has(i));
    span.classList.toggle("unknown", unknown && !replaced.has(i));
    span.setAttribute("aria-pressed", String(deleted.has(i)));
    if (deleted.has(i)) span.style.background = "";
  }

  panels() {
    if (!this.answer) return null;
    return [sharesPanel("verdict", "label", this.verdicts, ["now", "as typed"]), ...this.effectPanel()];
  }

  /** The probability of each label, and that for the text as typed. @returns {Share[]} */
  get verdicts() {
    const { answer, compared } = this;
    if (!answer || !compared) return [];
    const now = softmax(answer.logits);
    const before = compared === answer ? null : softmax(compared.logits);
    return this.described.labels.map((name, i) => ({ name, share: now[i], other: before && before[i] }));
  }

  /** @returns {Drawing} */
  get drawing() {
    const rows = this.verdicts.map(({ name, share }) => ({ name: cited(name, 16), share }));
    const draw = (/** @type {Pen} */ pen, /** @type {number} */ top) => drawShares(pen, this.frame.theme, rows, top);
    return this.words.drawing(this.frame.theme, { height: sharesHeight(rows), draw });
  }
}

const CLASSIFIER_KEYS = [
  ["arrows, Home, End", "in the text: from word to word"],
  ["Delete, Space", "strike a word out, or bring it back"],
  ["Enter", "type another word in its place; Esc leaves it"],
  ["Enter", "on a head: switch it off"],
];

// The studio of a text classifier: a text whose words can be deleted or replaced, the effect of each word, and heads
// that can be switched off.

import { h } from "../../base/elements.js";
import { percent, withSign } from "../../base/numbers.js";
import { quotedExcerpt, visibleText } from "../../base/visible-text.js";
import { idsOrNull } from "../fill/causal-predictions.js";
import { probabilityQuery } from "../head-ablation.js";
import { logOdds, softmax, topK } from "../logits.js";
import { joinPresent, note } from "../small-elements.js";
import { stacked } from "../text/text-drawing.js";
import { TextStudio } from "../text/text-studio.js";
import { bars, markFew, probabilitiesDrawing, probabilitiesPanel } from "../probability-bars.js";
import { classifyExamples } from "../examples.js";
import { CHOSEN_HEAD, PREDICTED_LABEL, WordEffects, isLabel } from "./word-effects.js";

/** @import { ClassifyDocument } from "../../documents.js" */
/** @import { Drawing } from "../../types.js" */
/** @import { ProbabilityRow } from "../probability-bars.js" */
/** @import { StudioArguments } from "../studio.js" */
/** @import { Segment } from "../text/word-segments.js" */

const MAX_ANSWERS = 1000; // cached answers: one for each word left out

/** A studio that shows the labels a model predicts for a text. @extends {TextStudio<ClassifyDocument>} */
export class ClassifyStudio extends TextStudio {
  get shortcuts() {
    return CLASSIFY_SHORTCUTS;
  }

  /** The choices for a newly typed text: no changes. */
  get initialState() {
    return { deleted: [], replaced: [] };
  }

  /** @param {StudioArguments<ClassifyDocument>} args */
  constructor(...args) {
    super(args, "The words: press one to strike it out", "Take changes back", MAX_ANSWERS);
    this.words.element.ondblclick = (event) => this.words.at(event, (i) => this.edit(i));
    this.effects = new WordEffects(this);
    this.heads.selectedToo = { label: CHOSEN_HEAD };
    this.verdict = h("div", { class: "bar-list", role: "group", "aria-label": "Verdict" });
    this.changeText = h("p", { class: "metric", role: "status" });
    this.buildTextPanes({
      how: "Press a word to strike it out, twice to type another.",
      legend: [this.effects.labelChoice.element, this.effects.scale, this.effects.progress],
      predictionTitle: "What it says",
      prediction: [this.verdict, this.changeText, this.effects.ranking],
    });
    this.showExamples(classifyExamples(this));
    this.open();
  }

  /** The label that words are shaded by: below 0 none, or the chosen head. Unless one is chosen, what the model says. */
  get label() {
    const chosen = this.store.get("label");
    return chosen === PREDICTED_LABEL ? this.answerLabel : chosen;
  }

  /** The label that the model gives the text as typed. */
  get likeliest() {
    const { baseline } = this;
    return baseline ? topK(baseline.logits, 1)[0] : 0;
  }

  /** The likeliest label; of two the second, so that a side and a colour mean the same label whatever the model says. */
  get answerLabel() {
    return this.effects.isBinary ? 1 : this.likeliest;
  }

  /** The label that sentences are about. */
  get subjectLabel() {
    return isLabel(this.label) ? this.label : this.answerLabel;
  }

  /** @returns {Map<number, string>} */
  get replaced() {
    return new Map(/** @type {[number, string][]} */ (this.store.get("replaced")));
  }

  get deleted() {
    return new Set(this.store.get("deleted"));
  }

  get replacementTexts() {
    return this.store
      .get("replaced")
      .flatMap(([i, word]) => (this.segments[i] ? [this.segments[i].leadingSpace + word] : []));
  }

  /** The tokens of each word after changes; none for a deleted word. */
  get pieces() {
    const { deleted } = this;
    return this.segments.map((_, i) => (deleted.has(i) ? [] : this.tokensOf(i)));
  }

  /** The tokens of a word after changes. @param {number} i */
  tokensOf(i) {
    const { ids, leadingSpace } = this.segments[i];
    const word = this.replaced.get(i);
    return word === undefined ? ids : this.tokenizer.encode(leadingSpace + word);
  }

  /** @param {number} i */
  isUnknown(i) {
    const { leadingSpace, unknown } = this.segments[i];
    const word = this.replaced.get(i);
    if (word === undefined) return unknown;
    const ids = idsOrNull(this.tokenizer, leadingSpace + word); // a kernel may not have read it yet
    return ids !== null && ids.includes(this.tokenizer.special.unk);
  }

  get unknownWords() {
    const { deleted } = this;
    const indices = [...this.segments.keys()].filter((i) => !deleted.has(i) && this.isUnknown(i));
    return indices.map((i) => this.wordAt(i));
  }

  get ids() {
    return this.pieces.flat();
  }

  get tokenCounts() {
    return this.pieces.map((ids) => ids.length);
  }

  /** Return a word after changes, or the original of a deleted word. @param {number} i */
  wordAt(i) {
    return this.replaced.get(i) ?? this.segments[i].text;
  }

  /** @param {number} label */
  labelText(label) {
    return quotedExcerpt(this.viewDocument.labels[label], 24);
  }

  /** @param {number} i @param {{ key?: string, detail?: number }} event */
  act(i, { key, detail = 0 }) {
    if (key === "Enter") return this.edit(i);
    if (detail > 1) return undefined; // the second of a double click opens the word
    const deleted = this.store.get("deleted");
    return this.change({ deleted: deleted.includes(i) ? deleted.filter((other) => other !== i) : [...deleted, i] });
  }

  /** Open a field to replace the word: Enter accepts, Esc cancels. @param {number} i */
  edit(i) {
    const { text, leadingSpace } = this.segments[i];
    this.words.openField(i, {
      value: this.wordAt(i),
      name: `in place of ${visibleText(text)}`,
      take: (word) => this.replace(i, word.trim(), leadingSpace),
    });
  }

  /**
   * Replace a word, or delete it if the new one is empty. Return whether the tokenizer can encode it.
   * @param {number} i
   * @param {string} word
   * @param {string} leadingSpace
   */
  replace(i, word, leadingSpace) {
    const others = this.store.get("replaced").filter(([other]) => other !== i);
    const deleted = this.store.get("deleted").filter((other) => other !== i);
    try {
      if (!this.tokenizer.preloadEncodings) this.tokenizer.encode(leadingSpace + word); // otherwise Python reports it when it encodes the word
    } catch (error) {
      this.announce(/** @type {Error} */ (error).message);
      return false;
    }
    if (!word) this.change({ deleted: [...deleted, i] });
    else this.change({ deleted, replaced: word === this.segments[i].text ? others : [...others, [i, word]] });
    return true;
  }

  /** @param {() => boolean} isCurrent */
  show(isCurrent) {
    const { answer, baseline } = this;
    if (!answer || !baseline) return;
    this.effects.labelChoice.show(this.store.get("label"));
    this.resetButton.hidden = !this.store.get("deleted").length && !this.store.get("replaced").length;
    const rows = this.verdicts;
    const changed = baseline !== answer;
    this.verdict.replaceChildren(
      note(changed ? `The line: ${this.edits.length ? "as typed, all heads on" : "as typed"}` : ""),
      ...bars(rows.map((row) => ({ ...row, name: visibleText(row.name) }))),
    );
    markFew(this.verdict);
    const first = this.subjectLabel;
    const [odds, were] = [answer, baseline].map(({ logits }) => logOdds(logits, first));
    const name = this.labelText(first);
    this.changeText.textContent = changed
      ? `${name}: ${percent(rows[first].baseline ?? 0)} → ${percent(rows[first].probability)}; log-odds ${withSign(were)} → ${withSign(odds)} (${withSign(odds - were)})`
      : `log-odds of ${name}: ${withSign(odds)}`;
    this.measuring = this.effects.measure(isCurrent);
  }

  /** The query whose row of the chosen head shades the words: as a rule the token that the labels are predicted from. */
  get row() {
    if (this.pointed !== null || this.label !== CHOSEN_HEAD || !this.answer) return super.row;
    return 0;
  }

  showSource() {
    super.showSource();
    if (this.shading) this.effects.showAttentionScale();
  }

  clearShading() {
    for (const span of this.words.spans) span.style.color = "";
    this.effects.shadeAll(this.label, true);
    if (!this.effects.scale.hidden) this.sourceLabel.textContent = "Shaded by the effect of each word";
  }

  get ablationQuery() {
    const { answer, subjectLabel: label } = this;
    if (!answer) return null;
    const { ids } = answer;
    return probabilityQuery(this.labelText(label), {
      key: `${label} ${ids}`,
      answer,
      probability: ({ logits }) => softmax(logits)[label],
      ask: (edits) => this.ask("ablation", ids, { edits }),
    });
  }

  /** @param {number} i */
  announceWord(i) {
    this.announce(this.sentenceOf(i));
  }

  /**
   * Describe a word: how it was changed, and the model's prediction without it.
   * @param {number} i
   * @param {number} [label]
   */
  sentenceOf(i, label = this.label) {
    const { text } = this.segments[i];
    const replaced = this.replaced.has(i);
    const remarks = [
      replaced && `in place of ${quotedExcerpt(text)}`,
      this.deleted.has(i) && "struck out",
      this.isUnknown(i) && "not in the vocabulary: read as unknown",
      this.effects.describe(i, label),
    ];
    return joinPresent([quotedExcerpt(this.wordAt(i)), joinPresent(remarks, "; ")], ": ");
  }

  /** @param {HTMLElement} span @param {Segment} segment @param {number} i */
  decorateWord(span, { text }, i) {
    const { deleted, replaced } = this;
    span.textContent = visibleText(replaced.get(i) ?? text);
    span.classList.toggle("struck", deleted.has(i));
    span.classList.toggle("swapped", replaced.has(i));
    span.classList.toggle("unknown", this.isUnknown(i));
    span.setAttribute("aria-pressed", String(deleted.has(i)));
    if (deleted.has(i)) span.style.background = span.style.color = "";
  }

  panels() {
    if (!this.answer) return null;
    return [probabilitiesPanel("verdict", "label", this.verdicts, ["now", "as typed"]), ...this.effects.panels];
  }

  /** The probability of each label, and that for the text as typed. @returns {ProbabilityRow[]} */
  get verdicts() {
    const { answer, baseline } = this;
    if (!answer || !baseline) return [];
    const now = softmax(answer.logits);
    const baselineProbabilities = baseline === answer ? null : softmax(baseline.logits);
    return this.viewDocument.labels.map((name, i) => {
      const kind = this.effects.isBinary && i !== this.subjectLabel ? "against" : ""; // in the colours of the words
      return { name, probability: now[i], baseline: baselineProbabilities && baselineProbabilities[i], kind };
    });
  }

  /** @returns {Drawing} */
  get drawing() {
    const rows = this.verdicts.map(({ name, probability }) => ({ name: quotedExcerpt(name, 16), probability }));
    return stacked([this.words.drawing, probabilitiesDrawing(this.frame.theme, rows)]);
  }
}

const CLASSIFY_SHORTCUTS = [
  ["arrows, Home, End", "in the text: from word to word"],
  ["Delete, Space", "strike a word out, or bring it back"],
  ["Enter", "type another word in its place; Esc leaves it"],
  ["Enter", "on a head: switch it off"],
];

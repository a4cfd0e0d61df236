// The effect of each word of a text on a classifier, measured in the background by running the model once without each
// word.

import { h, select, shadeElement } from "../../base/elements.js";
import { Grid, ALLOWED } from "../../base/grid.js";
import { formatFixed, percent, withSign } from "../../base/numbers.js";
import { throttle } from "../../base/throttle.js";
import { visibleText } from "../../base/visible-text.js";
import { logOdds, softmax } from "../logits.js";
import { gradient } from "../small-elements.js";

/** @import { GridPanel } from "../../types.js" */
/** @import { ClassifyStudio } from "./classify-studio.js" */
/** @import { TextAnswer } from "../text/text-studio.js" */

// In place of a label: words are not shaded, shaded by the chosen head, or by their effect on the predicted label.
export const NO_LABEL = -1;
export const CHOSEN_HEAD = -2;
export const PREDICTED_LABEL = -3;
/** Whether words are shaded by a label. @param {number} label */
export const isLabel = (label) => label >= 0;
const MAX_RANKED_WORDS = 5; // words that are listed
const MIN_LIMIT = 0.5; // of the scale of the words: below it all are pale
const MIN_SHADED = 0.04; // of the largest effect: what counts less has no colour
const MIN_SHADE_DARK = 0.2; // of the same, of a word that counts at all: paler ones cannot be told from a dark page
const DRAW_INTERVAL = 100; // milliseconds between two drawings while words are measured

/** A component that measures and stores the effects of words, and shades the words by them. */
export class WordEffects {
  /** @type {Map<number, TextAnswer>} the answer without each word */
  answers = new Map();

  /** @param {ClassifyStudio} studio */
  constructor(studio) {
    this.studio = studio;
    const { viewDocument, store } = studio;
    /** @type {[number, string][]} */
    const labels = viewDocument.labels.map((label, i) => [i, label]);
    const choose = (/** @type {number} */ label) => store.set({ label });
    this.labelChoice = select(
      "Shade words by",
      [[PREDICTED_LABEL, "their effect"], ...labels, [CHOSEN_HEAD, "the chosen head"], [NO_LABEL, "nothing"]],
      store.get("label"),
      choose,
    );
    this.scale = h("p", { class: "scale" });
    this.rows = h("div", { class: "bar-list ranking", role: "group", "aria-label": "The words that count most" });
    const title = h("h4", {}, "Words that count most", h("small", {}, "log-odds lost without it"));
    this.ranking = h("div", { class: "counting" }, title, this.rows);
    this.progress = h("progress", { "aria-label": "Words left out so far", hidden: true });
  }

  /**
   * Measure the effect of each word in the background, by running the model without it.
   * @param {() => boolean} isCurrent
   */
  async measure(isCurrent) {
    const { studio, progress } = this;
    const { pieces } = studio;
    this.answers = new Map();
    const { label } = studio;
    const missing = pieces.flatMap((ids, i) => (isLabel(label) && ids.length ? [i] : []));
    progress.max = missing.length;
    const shadeKnown = throttle(() => this.shadeAll(label, false), DRAW_INTERVAL);
    for (const [done, i] of missing.entries()) {
      const ids = studio.special.around(pieces.flatMap((tokens, j) => (i === j ? [] : tokens)));
      const answer = ids.length ? await studio.ask("word effects", ids, { edits: studio.edits }) : null;
      if (!isCurrent()) return;
      if (answer) this.answers.set(i, answer);
      progress.value = done + 1;
      progress.hidden = done + 1 === missing.length;
      shadeKnown();
    }
    progress.hidden = true;
    this.shadeAll(label, true);
    studio.announceFocus();
    studio.frame.updateTable();
  }

  /**
   * Return the change of a label's log-odds without a word; undefined if it is not known.
   * @param {number} i
   * @param {number} label
   * @returns {number | undefined}
   */
  of(i, label) {
    const { answer } = this.studio;
    const without = this.answers.get(i);
    if (!answer || !without) return undefined;
    return logOdds(without.logits, label) - logOdds(answer.logits, label);
  }

  /**
   * Shade all words; a word that is not measured yet keeps its colour.
   * @param {number} label
   * @param {boolean} all whether no word is left to measure
   */
  shadeAll(label, all) {
    const { studio } = this;
    const { spans } = studio.words;
    const effects = spans.map((_, i) => (isLabel(label) ? this.of(i, label) : undefined));
    const limit = Math.max(MIN_LIMIT, ...effects.map((effect) => Math.abs(effect ?? 0)));
    const { theme } = studio.frame;
    const least = theme.dark ? MIN_SHADE_DARK : 0;
    const shadeOf = (/** @type {number} */ share) => {
      if (Math.abs(share) < MIN_SHADED) return null;
      const shade = Math.sign(share) * (least + (1 - least) * Math.abs(share));
      return theme.legibleShade(theme.diverging, Math.round(128 + 127 * shade), 128);
    };
    const { shading } = studio; // shading by a head takes precedence
    spans.forEach((span, i) => {
      const effect = effects[i];
      if (!shading && (effect !== undefined || all)) shadeElement(span, shadeOf(-(effect ?? 0) / limit));
      span.title = studio.sentenceOf(i, label);
    });
    this.scale.hidden = !(isLabel(label) && this.answers.size > 0);
    this.ranking.hidden = this.scale.hidden;
    if (this.scale.hidden) return;
    if (all) this.showRanking(effects, limit);
    const [against, toward] = this.directions;
    this.scale.replaceChildren(
      h("span", {}, `A word pushes${this.isBinary ? " toward" : ""}, by up to ${formatFixed(limit, 1)} log-odds`),
      h("output", {}, against),
      gradient(theme.diverging),
      h("output", {}, toward),
    );
  }

  /** Say what the colours are while words are shaded by the chosen head. */
  showAttentionScale() {
    this.scale.hidden = false;
    this.scale.replaceChildren(
      "attention",
      h("output", {}, "0%"),
      gradient(this.studio.frame.theme.floored),
      h("output", {}, "100%"),
    );
  }

  get isBinary() {
    return this.studio.viewDocument.labels.length === 2;
  }

  /** The labels at the two ends of the scale of effects. */
  get directions() {
    const { studio } = this;
    const { subjectLabel: label } = studio;
    const name = studio.labelText(label);
    return this.isBinary ? [studio.labelText(1 - label), name] : [`away from ${name}`, `toward ${name}`];
  }

  /**
   * Show the words that count most, with what each adds.
   * @param {(number | undefined)[]} effects of leaving each out
   * @param {number} limit
   */
  showRanking(effects, limit) {
    const indices = [...effects.keys()].filter((i) => effects[i] !== undefined);
    const added = (/** @type {number} */ i) => -(effects[i] ?? 0);
    const top = indices.sort((a, b) => Math.abs(added(b)) - Math.abs(added(a))).slice(0, MAX_RANKED_WORDS);
    const [against, toward] = this.directions;
    this.rows.replaceChildren(
      h("div", { class: "axis" }, h("span", {}, `← ${against}`), h("span", {}, `${toward} →`)),
      ...top.map((i) => {
        const style = `width: ${(50 * Math.abs(added(i))) / limit}%`;
        return h(
          "div",
          { class: added(i) < 0 ? "bar-row against" : "bar-row" },
          h("span", { class: "name", dir: "auto" }, this.nameOf(i)),
          h("span", { class: "track" }, h("span", { class: "bar", style })),
          h("span", { class: "number", title: "of log-odds" }, withSign(added(i), 1)),
        );
      }),
    );
  }

  /** @param {number} i */
  nameOf(i) {
    const { studio } = this;
    return visibleText(studio.wordAt(i)) + (studio.isUnknown(i) ? " (unknown)" : "");
  }

  /**
   * Describe the model's prediction without a word; empty if it is not known.
   * @param {number} i
   * @param {number} label
   */
  describe(i, label) {
    const { answer } = this.studio;
    const removed = this.answers.get(i);
    const effect = this.of(i, label);
    if (!answer || !removed || effect === undefined || !isLabel(label)) return "";
    const [share, without] = [answer, removed].map(({ logits }) => percent(softmax(logits)[label]));
    return `without it ${this.studio.labelText(label)} goes ${share} → ${without}, log-odds ${withSign(effect)}`;
  }

  /** @returns {GridPanel<Grid>[]} the effects as numbers, where any is known */
  get panels() {
    const { studio } = this;
    const { label } = studio;
    const known = isLabel(label) ? [...this.answers.keys()] : [];
    if (!known.length) return [];
    const values = Float32Array.from(known, (i) => this.of(i, label) ?? 0);
    const words = known.map((i) => studio.wordAt(i));
    const limit = values.reduce((max, effect) => Math.max(max, Math.abs(effect)), MIN_LIMIT);
    const col = `log-odds of ${studio.viewDocument.labels[label]} without it`;
    const grid = Grid.of(words, [col], values, new Uint8Array(known.length).fill(ALLOWED), {
      scale: "diverging",
      limit,
    });
    return [{ name: "words", grid, axes: ["word", ""] }];
  }
}

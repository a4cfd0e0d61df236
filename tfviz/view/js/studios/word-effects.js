// What each word of a text is worth to a classifier: the text is read without it, word by word, in the background.

import { percent, withSign } from "../base/numbers.js";
import { css } from "../base/theme.js";
import { Grid, OPEN } from "../base/grid.js";
import { h, select } from "../base/elements.js";
import { logOdds, softmax } from "./logits.js";
import { joined } from "./parts.js";
import { TextStudio } from "./text-studio.js";
import { cited } from "./visible-text.js";

/** @import { ClassifyDocument } from "../documents.d.ts" */
/** @import { GridPanel } from "../types.d.ts" */
/** @import { TextAnswer } from "./text-studio.js" */

const LEAST_LIMIT = 0.5; // of the scale of the words: below it all are pale
const DEPTH = 0.5; // of the colour scale that lies behind words, which stay legible on it

/** @extends {TextStudio<ClassifyDocument>} */
export class WordEffects extends TextStudio {
  /** Make the choice of the label that words are shaded by, and its scale. @param {string[]} labels */
  buildShades(labels) {
    /** @type {Map<number, TextAnswer>} what the model gives without each word */
    this.effects = new Map();
    /** @type {number} when the words were shaded last, in milliseconds */
    this.shaded = 0;
    /** @type {[number, string][]} */
    const options = [[-1, "nothing"], ...labels.map((label, i) => /** @type {[number, string]} */ ([i, label]))];
    /** @type {{ element: HTMLElement, show(label: number): void }} */
    this.shades = select("Shade words by", options, this.store.get("label"), (label) => this.store.set({ label }));
    /** @type {HTMLElement} */
    this.scale = h("span", { class: "scale" });
    /** @type {HTMLProgressElement} */
    this.progress = h("progress", { "aria-label": "Words left out so far", hidden: true });
  }

  /** @returns {Map<number, string>} */
  get replaced() {
    return new Map(/** @type {[number, string][]} */ (this.store.get("replaced")));
  }

  get deleted() {
    return new Set(this.store.get("deleted"));
  }

  get others() {
    return this.store.get("replaced").flatMap(([i, word]) => (this.segments[i] ? [this.segments[i].lead + word] : []));
  }

  /** The tokens of each word as it stands now; none of one that is struck out. */
  get pieces() {
    const { deleted, replaced } = this;
    return this.segments.map(({ ids, lead }, i) => {
      if (deleted.has(i)) return [];
      const word = replaced.get(i);
      return word === undefined ? ids : this.vocab.encode(lead + word);
    });
  }

  get ids() {
    return this.pieces.flat();
  }

  get base() {
    return this.originalIds;
  }

  /** Measure what each word changes: read the text once without each, in the background. @param {number} turn */
  async weigh(turn) {
    this.effects = new Map();
    const { pieces } = this;
    const shaded = this.store.get("label");
    const todo = pieces.flatMap((ids, i) => (shaded >= 0 && ids.length ? [i] : []));
    this.progress.max = todo.length;
    for (const [done, i] of todo.entries()) {
      const ids = this.special.around(pieces.flatMap((tokens, j) => (i === j ? [] : tokens)));
      const answer = ids.length ? await this.ask("weigh", ids, { edits: this.edits }) : null;
      if (turn !== this.turn || this.frame.closed) return;
      if (answer) this.effects.set(i, answer);
      this.progress.value = done + 1;
      this.progress.hidden = done + 1 === todo.length;
      if (performance.now() - this.shaded > 100) this.shadeAll(shaded, false);
    }
    this.progress.hidden = true;
    this.shadeAll(shaded, true);
    this.remind();
    this.frame.renewTable();
  }

  /**
   * Return by how much the log-odds of a label move without this word; undefined where that is not known.
   * @param {number} i
   * @param {number} label
   * @returns {number | undefined}
   */
  effect(i, label) {
    const without = this.effects.get(i);
    if (!this.answer || !without) return undefined;
    return logOdds(without.logits, label) - logOdds(this.answer.logits, label);
  }

  /**
   * Shade all words; those that are not measured yet keep their colour until all are.
   * @param {number} label
   * @param {boolean} all whether no word is left to weigh
   */
  shadeAll(label, all) {
    this.shaded = performance.now();
    const effects = this.words.spans.map((_, i) => (label < 0 ? undefined : this.effect(i, label)));
    const limit = Math.max(LEAST_LIMIT, ...effects.map((effect) => Math.abs(effect ?? 0)));
    const colour = (/** @type {number} */ share) => css(this.frame.theme.signed[Math.round(128 + 127 * DEPTH * share)]);
    const { shading } = this; // by a head goes first
    this.words.spans.forEach((span, i) => {
      const effect = effects[i];
      if (!shading && effect !== undefined) span.style.background = colour(effect / limit);
      else if (!shading && all) span.style.background = "";
      span.title = this.sentenceOf(i, label);
    });
    const visible = label >= 0 && this.effects.size > 0;
    this.scale.hidden = !visible;
    if (!visible) return;
    const stops = [-1, -0.5, 0, 0.5, 1].map(colour).join(", ");
    this.scale.replaceChildren(
      h("span", {}, `without the word, log-odds of ${cited(this.described.labels[label], 24)}`),
      h("output", {}, withSign(-limit)),
      h("span", { class: "gradient", style: `background: linear-gradient(to right, ${stops})` }),
      h("output", {}, withSign(limit)),
    );
  }

  /**
   * Describe a word: how it was changed, and what the model says without it.
   * @param {number} i
   * @param {number} [label]
   */
  sentenceOf(i, label = this.store.get("label")) {
    const { text, unknown } = this.segments[i];
    const word = this.replaced.get(i) ?? text;
    const remarks = [];
    if (this.replaced.has(i)) remarks.push(`in place of ${cited(text)}`);
    if (this.deleted.has(i)) remarks.push("struck out");
    if (unknown && !this.replaced.has(i)) remarks.push("not in the vocabulary: read as unknown");
    const [answer, removed] = [this.answer, this.effects.get(i)];
    const effect = this.effect(i, label);
    if (answer && removed && effect !== undefined && label >= 0) {
      const [share, without] = [answer, removed].map(({ logits }) => percent(softmax(logits)[label]));
      const name = cited(this.described.labels[label], 24);
      remarks.push(`without it ${name} goes ${share} → ${without}, log-odds ${withSign(effect)}`);
    }
    return joined([cited(word), remarks.join("; ")], ": ");
  }

  /** @returns {GridPanel<Grid>[]} */
  effectPanel() {
    const label = this.store.get("label");
    const known = label < 0 ? [] : [...this.effects.keys()];
    if (!known.length) return [];
    const values = Float32Array.from(known, (i) => this.effect(i, label) ?? 0);
    const words = known.map((i) => this.replaced.get(i) ?? this.segments[i].text);
    const limit = values.reduce((most, effect) => Math.max(most, Math.abs(effect)), LEAST_LIMIT);
    const col = `log-odds of ${this.described.labels[label]} without it`;
    const grid = Grid.of(words, [col], values, new Uint8Array(known.length).fill(OPEN), { scale: "diverging", limit });
    return [{ name: "words", grid, axes: ["word", ""] }];
  }
}

// What each word of a text is worth to a classifier: the text is read without it, word by word, in the background.

import { percent, withSign } from "../base/numbers.js";
import { css } from "../base/theme.js";
import { Grid, OPEN } from "../base/grid.js";
import { h, select } from "../base/elements.js";
import { softmax } from "./shares.js";
import { cited, TextStudio } from "./text-studio.js";

const LEAST_LIMIT = 0.5; // of the scale of the words: below it all are pale
const DEPTH = 0.5; // of the colour scale that lies behind words, which stay legible on it

export class WordEffects extends TextStudio {
  // The label that words are shaded by, or none, with its scale.
  buildShades(labels) {
    const options = [[-1, "nothing"], ...labels.map((label, i) => [i, label])];
    this.shades = select("Shade words by", options, this.store.get("label"), (label) => this.store.set({ label }));
    this.scale = h("span", { class: "scale" });
    this.progress = h("progress", { "aria-label": "Words left out so far", hidden: true });
  }

  get replaced() {
    return new Map(this.store.get("replaced"));
  }

  get deleted() {
    return new Set(this.store.get("deleted"));
  }

  get others() {
    return this.store.get("replaced").flatMap(([i, word]) => (this.units[i] ? [this.units[i].lead + word] : []));
  }

  // The tokens of each word as it stands now; none of one that is struck out.
  get pieces() {
    const { deleted, replaced } = this;
    return this.units.map(({ ids, lead }, i) => {
      if (deleted.has(i)) return [];
      return replaced.has(i) ? this.vocab.encode(lead + replaced.get(i)) : ids;
    });
  }

  get ids() {
    return this.pieces.flat();
  }

  get base() {
    return this.asTyped;
  }

  // What each word changes: the text is read once without each, in the background.
  async weigh(turn) {
    this.effects = new Map(); // word -> the answer without it
    const { pieces } = this;
    const shaded = this.store.get("label");
    const todo = pieces.flatMap((ids, i) => (shaded >= 0 && ids.length ? [i] : []));
    this.progress.max = todo.length;
    for (const [done, i] of todo.entries()) {
      const ids = this.framed(pieces.flatMap((own, j) => (i === j ? [] : own)));
      const made = ids.length ? await this.ask("weigh", ids, { edits: this.edits }) : null;
      if (turn !== this.turn || this.frame.closed) return;
      if (made) this.effects.set(i, made);
      this.progress.value = done + 1;
      this.progress.hidden = done + 1 === todo.length;
      if (performance.now() - (this.shaded ?? 0) > 100) this.shadeAll(shaded, false);
    }
    this.progress.hidden = true;
    this.shadeAll(shaded, true);
    this.remind();
    this.frame.renewTable();
  }

  // By how much the log-odds of the label would move without this word; undefined where that is not known.
  effect(i, label) {
    const made = this.effects?.get(i);
    return made && oddsOf(made.logits, label) - oddsOf(this.answer.logits, label);
  }

  // Words that are not weighed yet keep the colour they had, until all are.
  shadeAll(label, all) {
    this.shaded = performance.now();
    const effects = this.spans.map((_, i) => (label < 0 ? undefined : this.effect(i, label)));
    const limit = Math.max(LEAST_LIMIT, ...effects.map((one) => Math.abs(one ?? 0)));
    const colour = (share) => css(this.frame.theme.signed[Math.round(128 + 127 * DEPTH * share)]);
    const { shading } = this; // by a head goes first
    this.spans.forEach((span, i) => {
      if (!shading && effects[i] !== undefined) span.style.background = colour(effects[i] / limit);
      else if (!shading && all) span.style.background = "";
      span.title = this.told(i, label);
    });
    const shown = label >= 0 && this.effects.size > 0;
    this.scale.hidden = !shown;
    if (!shown) return;
    const stops = [-1, -0.5, 0, 0.5, 1].map(colour).join(", ");
    this.scale.replaceChildren(
      h("span", {}, `without the word, log-odds of ${cited(this.described.labels[label], 24)}`),
      h("output", {}, withSign(-limit)),
      h("span", { class: "gradient", style: `background: linear-gradient(to right, ${stops})` }),
      h("output", {}, withSign(limit)),
    );
  }

  told(i, label = this.store.get("label")) {
    const { text, unknown } = this.units[i];
    const word = this.replaced.get(i) ?? text;
    const about = [];
    if (this.replaced.has(i)) about.push(`in place of ${cited(text)}`);
    if (this.deleted.has(i)) about.push("struck out");
    if (unknown && !this.replaced.has(i)) about.push("not in the vocabulary: read as unknown");
    const made = this.effects?.get(i);
    if (made && label >= 0) {
      const [share, without] = [this.answer, made].map(({ logits }) => percent(softmax(logits)[label]));
      const name = cited(this.described.labels[label], 24);
      about.push(`without it ${name} goes ${share} → ${without}, log-odds ${withSign(this.effect(i, label))}`);
    }
    return `${cited(word)}${about.length ? `: ${about.join("; ")}` : ""}`;
  }

  effectPanel() {
    const label = this.store.get("label");
    const known = label < 0 ? [] : [...(this.effects?.keys() ?? [])];
    if (!known.length) return [];
    const values = Float32Array.from(known, (i) => this.effect(i, label));
    const words = known.map((i) => this.replaced.get(i) ?? this.units[i].text);
    const limit = values.reduce((most, one) => Math.max(most, Math.abs(one)), LEAST_LIMIT);
    const col = `log-odds of ${this.described.labels[label]} without it`;
    const grid = Grid.of(words, [col], values, new Uint8Array(known.length).fill(OPEN), { scale: "diverging", limit });
    return [{ name: "words", grid, axes: ["word", ""] }];
  }
}

// log p / (1 - p) of one label
export function oddsOf(logits, label) {
  const others = logits.filter((_, i) => i !== label);
  const top = others.reduce((a, b) => Math.max(a, b), -Infinity);
  return logits[label] - top - Math.log(others.reduce((sum, one) => sum + Math.exp(one - top), 0));
}

// A classifier to question: a text to type, words to strike out or replace, what each is worth, heads to switch off.

import { css } from "../base/theme.js";
import { Grid, OPEN } from "../base/grid.js";
import { h, select } from "../base/elements.js";
import { table } from "../controls/table.js";
import { cited, Passage, seen, sharesOf } from "./passage.js";
import { bars, percent } from "./studio.js";

const LEAST_LIMIT = 0.5; // of the scale of the words: below it all are pale
const DEPTH = 0.5; // of the colour scale that lies behind words, which stay legible on it

export class Classifier extends Passage {
  get keys() {
    return CLASSIFIER_KEYS;
  }

  // Of a text just typed nothing is changed.
  get fresh() {
    return { struck: [], swapped: [] };
  }

  build() {
    const { labels } = this.described;
    this.keeps = 1000;
    this.buildText("Text", "The words: press one to strike it out");
    this.words.ondblclick = (event) => this.of(event) >= 0 && this.edit(this.of(event));
    const options = [[-1, "nothing"], ...labels.map((label, i) => [i, label])];
    this.shades = select("Shade words by", options, this.store.get("shade"), (shade) => this.store.set({ shade }));
    this.scale = h("span", { class: "scale" });
    this.progress = h("progress", { "aria-label": "Words left out so far", hidden: true });
    this.verdict = h("div", { class: "shares", role: "group", "aria-label": "Verdict" });
    this.moved = h("p", { class: "cost", role: "status" });
    const how = h("p", { class: "soft" }, "Press a word to strike it out, twice to type another.");
    const under = h("div", { class: "controls" }, this.shades.element, this.scale, this.progress, this.reset);
    const left = h("div", {}, this.words, how, under);
    const right = h("div", {}, this.verdict, this.moved);
    this.frame.stage(h("div", { class: "stage desk" }, left, right, this.chips, this.inner), "");
  }

  get swapped() {
    return new Map(this.store.get("swapped"));
  }

  get struck() {
    return new Set(this.store.get("struck"));
  }

  // The tokens of each word as it stands now; none of one that is struck out.
  get pieces() {
    const { struck, swapped } = this;
    return this.units.map(({ ids, lead }, i) => {
      if (struck.has(i)) return [];
      return swapped.has(i) ? this.vocab.encode(lead + swapped.get(i)) : ids;
    });
  }

  get ids() {
    return this.pieces.flat();
  }

  get base() {
    return this.asTyped;
  }

  act(i, { key, detail = 0 }) {
    if (key === "Enter") return this.edit(i);
    if (detail > 1) return undefined; // the second click of two, which opens the word
    const struck = this.store.get("struck");
    return this.change({ struck: struck.includes(i) ? struck.filter((other) => other !== i) : [...struck, i] });
  }

  // Type another word in its place: Enter takes it, Esc leaves it.
  edit(i) {
    const { text, lead } = this.units[i];
    const now = this.swapped.get(i) ?? text;
    const input = h("input", { class: "swap", value: now, size: Math.max(4, now.length), "aria-label": `in place of ${seen(text)}`, dir: "auto" });
    const span = this.spans[i];
    let open = true;
    const end = (taken) => {
      if (!open) return;
      if (taken && !this.replace(i, input.value.trim(), lead)) return;
      open = false;
      input.remove();
      span.hidden = false;
      span.focus();
    };
    input.onkeydown = (event) => {
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

  // Whether this word can stand there; one that was emptied is struck out.
  replace(i, word, lead) {
    const others = this.store.get("swapped").filter(([other]) => other !== i);
    const struck = this.store.get("struck").filter((other) => other !== i);
    try {
      this.vocab.encode(lead + word);
    } catch (error) {
      this.says(error.message);
      return false;
    }
    if (!word) this.change({ struck: [...struck, i] });
    else this.change({ struck, swapped: word === this.units[i].text ? others : [...others, [i, word]] });
    return true;
  }

  show(turn) {
    const { labels } = this.described;
    const shade = this.store.get("shade");
    this.shades.show(shade);
    this.reset.hidden = !this.store.get("struck").length && !this.store.get("swapped").length;
    const now = sharesOf(this.answer.logits);
    const before = sharesOf(this.compared.logits);
    const changed = this.compared !== this.answer;
    this.verdict.replaceChildren(
      h("span", { class: "soft" }, changed ? `Verdict; the line: ${this.edits.length ? "as typed, all heads on" : "as typed"}` : "Verdict"),
      ...bars(labels.map((label, i) => ({ name: seen(label), share: now[i], other: changed ? before[i] : null })), 1),
    );
    const first = Math.max(0, shade);
    const [odds, were] = [this.answer, this.compared].map(({ logits }) => oddsOf(logits, first));
    const name = cited(labels[first], 24);
    this.moved.textContent = changed
      ? `${name}: ${percent(before[first])} → ${percent(now[first])}; log-odds ${signed(were)} → ${signed(odds)} (${signed(odds - were)})`
      : `log-odds of ${name}: ${signed(odds)}`;
    this.weigh(turn);
  }

  // What each word changes: the text is read once without each, in the background.
  async weigh(turn) {
    this.effects = new Map(); // word -> the answer without it
    const { pieces } = this;
    const shade = this.store.get("shade");
    const todo = pieces.flatMap((ids, i) => (shade >= 0 && ids.length ? [i] : []));
    this.progress.max = todo.length;
    for (const [done, i] of todo.entries()) {
      const ids = this.framed(pieces.flatMap((own, j) => (i === j ? [] : own)));
      const made = ids.length ? await this.ask("weigh", ids, { edits: this.edits }) : null;
      if (turn !== this.turn || this.frame.closed) return;
      if (made) this.effects.set(i, made);
      this.progress.value = done + 1;
      this.progress.hidden = done + 1 === todo.length;
      if (performance.now() - (this.shaded ?? 0) > 100) this.shadeAll(shade, false);
    }
    this.progress.hidden = true;
    this.shadeAll(shade, true);
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
    this.spans.forEach((span, i) => {
      if (effects[i] !== undefined) span.style.background = colour(effects[i] / limit);
      else if (all) span.style.background = "";
      span.title = this.told(i, label);
    });
    const shown = label >= 0 && this.effects.size > 0;
    this.scale.hidden = !shown;
    if (!shown) return;
    const stops = [-1, -0.5, 0, 0.5, 1].map(colour).join(", ");
    this.scale.replaceChildren(
      h("span", {}, `without the word, log-odds of ${cited(this.described.labels[label], 24)}`),
      h("output", {}, signed(-limit)),
      h("span", { class: "gradient", style: `background: linear-gradient(to right, ${stops})` }),
      h("output", {}, signed(limit)),
    );
  }

  told(i, label = this.store.get("shade")) {
    const { text, unknown } = this.units[i];
    const word = this.swapped.get(i) ?? text;
    const about = [];
    if (this.swapped.has(i)) about.push(`in place of ${cited(text)}`);
    if (this.struck.has(i)) about.push("struck out");
    if (unknown && !this.swapped.has(i)) about.push("not in the vocabulary: read as unknown");
    const made = this.effects?.get(i);
    if (made && label >= 0) {
      const [share, without] = [this.answer, made].map(({ logits }) => percent(sharesOf(logits)[label]));
      const name = cited(this.described.labels[label], 24);
      about.push(`without it ${name} goes ${share} → ${without}, log-odds ${signed(this.effect(i, label))}`);
    }
    return `${cited(word)}${about.length ? `: ${about.join("; ")}` : ""}`;
  }

  hint(i) {
    this.says(this.told(i));
  }

  dress(span, { text, unknown }, i) {
    const { struck, swapped } = this;
    span.textContent = seen(swapped.get(i) ?? text);
    span.classList.toggle("struck", struck.has(i));
    span.classList.toggle("swapped", swapped.has(i));
    span.classList.toggle("unknown", unknown && !swapped.has(i));
    span.setAttribute("aria-pressed", String(struck.has(i)));
    if (struck.has(i)) span.style.background = "";
  }

  panels() {
    if (!this.answer) return null;
    const { labels } = this.described;
    const [now, before] = [this.answer, this.compared].map(({ logits }) => sharesOf(logits));
    const changed = this.compared !== this.answer;
    const shares = Float32Array.from(labels.flatMap((_, i) => (changed ? [now[i], before[i]] : [now[i]])));
    const cols = changed ? ["now", "as typed"] : ["probability"];
    const verdict = Grid.of(labels, cols, shares, new Uint8Array(shares.length).fill(OPEN), { scale: "share" });
    return [{ name: "verdict", grid: verdict, axes: ["label", ""] }, ...this.effectPanel()];
  }

  effectPanel() {
    const label = this.store.get("shade");
    const known = label < 0 ? [] : [...(this.effects?.keys() ?? [])];
    if (!known.length) return [];
    const values = Float32Array.from(known, (i) => this.effect(i, label));
    const words = known.map((i) => this.swapped.get(i) ?? this.units[i].text);
    const limit = values.reduce((most, one) => Math.max(most, Math.abs(one)), LEAST_LIMIT);
    const col = `log-odds of ${this.described.labels[label]} without it`;
    const grid = Grid.of(words, [col], values, new Uint8Array(known.length).fill(OPEN), { scale: "signed", limit });
    return [{ name: "words", grid, axes: ["word", ""] }];
  }

  tables() {
    return (this.panels() ?? []).map(table);
  }

  get drawing() {
    const { labels } = this.described;
    const { theme } = this.frame;
    const shares = this.answer ? sharesOf(this.answer.logits) : [];
    const draw = (pen, top) =>
      labels.forEach((label, i) => {
        const y = top + 22 * i + 12;
        pen.text(0, y, cited(label, 16), { fill: theme.ink, size: 12 });
        pen.rect(130, y - 7, Math.max(1, 220 * (shares[i] ?? 0)), 14, { fill: theme.ramp });
        pen.text(360, y, percent(shares[i] ?? 0), { fill: theme.ink, size: 12 });
      });
    return this.drawingWith({ height: 22 * labels.length, draw });
  }
}

// log p / (1 - p) of one label
function oddsOf(logits, label) {
  const others = logits.filter((_, i) => i !== label);
  const top = others.reduce((a, b) => Math.max(a, b), -Infinity);
  return logits[label] - top - Math.log(others.reduce((sum, one) => sum + Math.exp(one - top), 0));
}

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

const CLASSIFIER_KEYS = [
  ["arrows, Home, End", "in the text: from word to word"],
  ["Delete, Space", "strike a word out, or bring it back"],
  ["Enter", "type another word in its place; Esc leaves it"],
  ["Enter", "on a head: switch it off"],
];

// A masked language model to question: words to hide, its guesses from both sides to put in, heads to switch off; beside
// it a model that sees only the left.

import { h, tabs } from "../base/elements.js";
import { percent } from "../base/numbers.js";
import { quoted } from "../base/pen.js";
import { GUESSES, MaskedText } from "./masked-text.js";
import { cited, seen } from "./text-studio.js";
import { bars, drawShares, likeliest, sharesHeight, sharesPanel } from "./shares.js";
import { fillerTries } from "./tries.js";

const HEADING = 22; // pixels of the name of a table in a drawing
const AFTER = 24; // letters of what stands before

export class Filler extends MaskedText {
  get keys() {
    return FILLER_KEYS;
  }

  // Of a text just typed nothing is hidden.
  get fresh() {
    return { masked: [], filled: [] };
  }

  build() {
    this.buildText("Text", "The words: press one to hide it");
    this.guesses = h("div", { class: "guesses" });
    const how = h("p", { class: "soft" }, "Press a word to hide it: the model guesses what stood there.");
    this.compose({
      textTitle: "The text",
      text: [this.words, this.typed, how, h("div", { class: "row" }, this.editing, this.reset)],
      saysTitle: "What it guesses",
      says: [this.guesses],
    });
    this.showTries(fillerTries(this));
  }

  // Hide a word, or show it; of one that was put in, hide it again.
  act(i) {
    const places = this.placesOf(this.units[i]);
    const { masked, filled } = this;
    const others = [...masked].filter((place) => !places.includes(place));
    this.gap = i;
    const shows = places.some((place) => masked.has(place)) && !places.some((place) => filled.has(place));
    this.change({
      masked: shows ? others : [...others, ...places].sort((a, b) => a - b),
      filled: [...filled].filter(([place]) => !places.includes(place)),
    });
  }

  take(place, id) {
    const filled = [...this.store.get("filled").filter(([other]) => other !== place), [place, id]];
    this.change({ filled, masked: this.store.get("masked").filter((other) => other !== place) });
    this.go(this.units.findIndex((unit) => this.placesOf(unit).includes(place)));
  }

  async show(turn) {
    this.reset.hidden = !this.store.get("masked").length && !this.store.get("filled").length;
    this.forgetLeft();
    this.showGuesses();
    if (!this.described.beside) return;
    if ((await this.askLeft(turn)) === null) return;
    this.showGuesses();
    this.frame.renewTable();
  }

  showGuesses() {
    const said = (text) => h("p", { class: "soft" }, text);
    const { gaps } = this;
    const at = Math.max(
      0,
      gaps.findIndex(({ i }) => i === this.gap),
    );
    const names = gaps.map(({ unit }, place) => [place, cited(unit.text, 12)]);
    const choose = (place) => {
      this.gap = gaps[place].i;
      this.showGuesses();
    };
    const which = gaps.length > 1 ? [tabs("Guesses for", names, at, choose).element] : [];
    const shown = gaps.length ? [...which, this.gapOf(gaps[at])] : [];
    this.keepFocus(() => this.guesses.replaceChildren(...(shown.length ? shown : [said("No word is hidden.")])));
  }

  // The focus stays on the chosen tab, or on the guess of the same place, though they are other elements now.
  keepFocus(act) {
    const buttons = () => [...this.guesses.querySelectorAll("button")];
    const { activeElement } = this.guesses.getRootNode();
    const at = buttons().indexOf(activeElement);
    act();
    if (at < 0) return;
    const tab = activeElement.role === "tab" && this.guesses.querySelector("[aria-selected='true']");
    (tab || buttons()[at])?.focus();
  }

  gapOf({ unit, both, left }) {
    const name = cited(unit.text, 30);
    const marked = this.edits.length ? "; the line: with all heads on" : "";
    const parts = both.map(({ place, shares, whole }) => {
      const piece = both.length > 1 ? ` (${this.vocab.words([unit.ids[place - unit.at]])[0]})` : "";
      return this.sharesIn(`both sides${piece}${marked}`, shares, whole, this.vocab, {
        typed: unit.ids[place - unit.at],
        takes: (id) => () => this.take(place, id),
      });
    });
    if (this.described.beside) parts.push(this.leftOf(unit, both, left));
    return h(
      "div",
      { class: "gap", role: "group", "aria-label": `Guesses for ${name}` },
      h("b", {}, name),
      h("div", { class: "sides" }, ...parts),
    );
  }

  leftOf(unit, both, left) {
    const said = (text) => h("div", { class: "shares" }, h("span", { class: "soft" }, `left side: ${text}`));
    if (left === undefined) return said("…");
    if (left === null) return said("nothing stands there");
    if (left.wrong) return said(left.wrong);
    const [typed] = this.wordIn(left.own, unit.lead + unit.text) ?? [];
    const takes = (id) => {
      const found = left.own === this.vocab ? [id] : (this.wordIn(this.vocab, this.guessed(unit, left.own, id)) ?? []);
      return both.length === 1 && found.length === 1 ? () => this.take(both[0].place, found[0]) : null;
    };
    const after = left.text.trim() && `, after ${cited(left.text.trim(), AFTER, "end")}`;
    return this.sharesIn(`left side${after}`, left.shares, null, left.own, { typed, takes });
  }

  // The likeliest words of one place, and the word that was typed, as bars to press.
  sharesIn(heading, shares, whole, vocab, { typed, takes }) {
    const top = likeliest(shares, GUESSES);
    const ids = typed === undefined || top.includes(typed) ? top : [...top, typed];
    const rows = ids.map((id) => ({
      name: quoted(vocab.words([id])[0], 24),
      share: shares[id],
      other: whole?.[id] ?? null,
      title: [id === typed && "as typed", takes(id) && "put it in", whole && `with all heads on ${percent(whole[id])}`]
        .filter(Boolean)
        .join("; "),
      onclick: takes(id),
    }));
    const made = bars(rows);
    made[ids.indexOf(typed)]?.classList.add("as-was");
    return h("div", { class: "shares" }, h("span", { class: "soft" }, heading), ...made);
  }

  get counts() {
    return this.units.map(({ ids }) => ids.length);
  }

  unshade() {
    for (const span of this.spans) Object.assign(span.style, { background: "", color: "" });
  }

  tell(i) {
    const unit = this.units[i];
    const now = this.textOf(unit);
    const about = [
      now === null && "hidden",
      now !== null && now !== unit.text && `in place of ${cited(unit.text)}`,
      unit.unknown && "not in the vocabulary: read as unknown",
    ];
    const found = about.filter(Boolean);
    this.announce(`${cited(now ?? unit.text)}${found.length ? `: ${found.join("; ")}` : ""}`);
  }

  dress(span, unit) {
    const now = this.textOf(unit);
    span.textContent = now === null ? "?" : seen(now);
    span.classList.toggle("blank", now === null);
    span.classList.toggle("swapped", now !== null && now !== unit.text);
    span.classList.toggle("unknown", unit.unknown && now === unit.text);
    span.setAttribute("aria-pressed", String(now === null));
    if (now === null) span.setAttribute("aria-label", `${seen(unit.text)}, hidden`);
    else span.removeAttribute("aria-label");
    span.title = now === null ? `${cited(unit.text)}, hidden: press to show it` : "press to hide it";
  }

  // The likeliest words of each place: [{ name, rows }], by the name of a table.
  get guessTables() {
    const rows = (shares, whole, vocab) =>
      likeliest(shares, GUESSES).map((id) => ({
        name: vocab.words([id])[0],
        share: shares[id],
        other: whole ? whole[id] : null,
      }));
    return this.gaps.flatMap(({ unit, both, left }) => [
      ...both.map(({ shares, whole }) => ({ name: `${unit.text}, both sides`, rows: rows(shares, whole, this.vocab) })),
      ...(left?.own ? [{ name: `${unit.text}, left side`, rows: rows(left.shares, null, left.own) }] : []),
    ]);
  }

  panels() {
    return this.answer ? this.guessTables.map(({ name, rows }) => sharesPanel(name, "guess", rows)) : null;
  }

  get drawing() {
    const { theme } = this.frame;
    const tables = this.answer ? this.guessTables : [];
    const tall = (rows) => HEADING + sharesHeight(rows) + 12;
    const draw = (pen, top) =>
      tables.reduce((y, { name, rows }) => {
        pen.text(0, y + 12, cited(name), { fill: theme.soft, size: 12 });
        const shown = rows.map((row) => ({ name: quoted(row.name, 16), share: row.share }));
        drawShares(pen, theme, shown, y + HEADING);
        return y + tall(rows);
      }, top);
    return this.drawingWith({ height: tables.reduce((sum, { rows }) => sum + tall(rows), 0), draw });
  }
}

const FILLER_KEYS = [
  ["arrows, Home, End", "in the text: from word to word"],
  ["Enter, Space", "hide a word, or show it"],
  ["Enter", "on a guess: put it in; on a head: switch it off"],
];

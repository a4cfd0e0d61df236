// A studio of one text: typed above, its words below as places to act on; what the model says of it, kept by what was asked.

import { following, h } from "../base/elements.js";
import { sign } from "../base/pen.js";
import { Studio } from "./studio.js";
import { textsOf, unitsOf, wholeWithin } from "./units.js";

const PASSAGE_LETTERS = 10000; // of a text that are looked at

export class TextStudio extends Studio {
  /** @abstract @returns {Record<string, any>} the choices of a text just typed */
  get fresh() {
    return {};
  }

  /** @abstract @returns {number[]} the tokens of the text as it stands now */
  get ids() {
    return this.asTyped;
  }

  /** @abstract @returns {number[]} those that it is compared with */
  get base() {
    return this.asTyped;
  }

  /** How many answers are remembered. */
  get keeps() {
    return 16;
  }

  /** @abstract @param {number} _i @param {any} _event */
  act(_i, _event) {}

  /** @abstract @param {number} _i */
  tell(_i) {}

  /** @abstract @param {HTMLElement} _span @param {any} _unit @param {number} _i */
  dress(_span, _unit, _i) {}

  /** @abstract @param {number} _turn */
  show(_turn) {}

  buildText(name, handlers) {
    this.answers = new Map(); // what was asked -> what the model said; the newest `keeps` of them
    this.turn = 0;
    const typed = () => this.change({ text: this.typed.value, ...this.fresh });
    this.typed = h("textarea", { dir: "auto", spellcheck: false, hidden: true, "aria-label": name, oninput: typed });
    this.editing = h("button", { type: "button", onclick: () => this.setEditing(!this.typed.hidden) }, "Edit the text");
    this.words = h("p", { class: "sentence passage", role: "group", "aria-label": handlers, dir: "auto" });
    this.reset = h("button", { type: "button", class: "as-typed", onclick: () => this.undo() }, "As typed");
    this.pointed = null;
    this.starts = [];
    this.startsOf = null;
    following(
      this.words,
      (event) => this.point(this.of(event)),
      () => this.point(-1),
    );
    this.words.onclick = (event) => this.of(event) >= 0 && this.act(this.of(event), event);
    this.words.onkeydown = (event) => this.pressed(event);
    this.words.addEventListener("focusin", (event) => this.of(event) >= 0 && this.arrive(this.of(event)));
  }

  // The words, or in their place a field to type them in.
  setEditing(ends) {
    this.typed.hidden = ends;
    this.words.hidden = !ends;
    this.editing.textContent = ends ? "Edit the text" : "Done";
    this.editing.setAttribute("aria-pressed", String(!ends));
    if (!ends) this.typed.focus();
  }

  // The word under the pointer or the focus: its row of the chosen head shades the text.
  point(i) {
    const pointed = i < 0 ? null : i;
    if (pointed === this.pointed) return;
    this.pointed = pointed;
    if (!this.answer || !this.groups?.length) return;
    this.showModel();
  }

  /** @abstract @returns {number[]} how many tokens each word has as the model reads it */
  get counts() {
    return [];
  }

  // The first token of each word among these that the model reads, and one past the last word's.
  startsIn(ids) {
    const { before, after } = this.described.special_tokens;
    const end = ids.length - Number(after !== null);
    let at = Number(before !== null);
    return [...this.counts, 0].map((count) => {
      at += count;
      return Math.min(end, at - count);
    });
  }

  // The first token of the word that is pointed at, in what the model has read: none while another text is being read.
  get row() {
    const { pointed, starts } = this;
    if (pointed === null || this.startsOf !== this.shownUnits) return null;
    return starts[pointed + 1] > starts[pointed] ? starts[pointed] : null;
  }

  idsOf() {
    return this.answer.ids;
  }

  /** @abstract shade the words as they are when no word is pointed at */
  unshade() {}

  // The map of the chosen head, as long as a word is pointed at: its row shades the text.
  get shading() {
    return this.row === null || this.isOff(this.at) ? null : this.gridOf(this.at);
  }

  showFrom() {
    const { row, starts, shading: grid } = this;
    const { layer, head } = this.at;
    this.from.textContent = grid
      ? `from “${this.vocab.words([this.answer.ids[row]])[0]}”, layer ${layer} head ${head}`
      : "";
    this.spans.forEach((span, i) => span.classList.toggle("from", grid !== null && i === this.pointed));
    if (!grid) return this.unshade();
    const { theme } = this.frame;
    this.spans.forEach((span, i) => {
      let code = 0;
      for (let key = starts[i]; key < starts[i + 1]; key++)
        code = Math.max(code, grid.codes[row * grid.cols.length + key]);
      span.style.background = code < 8 ? "" : theme.colour(grid, code);
      span.style.color = code < 8 ? "" : theme.inkOn(theme.lut(grid)[code]);
    });
    return undefined;
  }

  // The number of the word that an event is about, or -1.
  of({ target }) {
    return target.dataset?.unit === undefined ? -1 : Number(target.dataset.unit);
  }

  // Another text has other rows: none of them is locked.
  change(changes) {
    this.store.set({ ...changes, rows: [], cols: [] });
  }

  pressed(event) {
    const i = this.of(event);
    if (i < 0) return;
    const last = this.units.length - 1;
    const next = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: last }[event.key];
    if (next !== undefined) this.go(Math.max(0, Math.min(last, next)));
    else if ([" ", "Enter", "Delete", "Backspace"].includes(event.key)) this.act(i, event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  go(i) {
    this.spans[i]?.focus();
  }

  // One word is a stop for the tab key: the last that had the focus.
  arrive(i) {
    for (const span of this.spans) span.tabIndex = -1;
    this.spans[i].tabIndex = 0;
    this.point(i);
    this.tell(i);
  }

  // What is to be said of the text, else of the word that has the focus.
  remind() {
    const at = this.of({ target: this.words.getRootNode().activeElement ?? {} });
    if (this.read.note || at < 0) this.announce(this.read.note ?? "");
    else this.tell(at);
  }

  undo() {
    this.change(this.fresh);
    this.words.querySelector("[tabindex='0']")?.focus(); // the button goes
  }

  // The words of the text as typed; those of the last text that could be read, if this one cannot be, which is said.
  get units() {
    const text = this.store.get("text");
    if (this.read?.text === text) return this.read.units;
    this.read = { text, units: this.read?.units ?? null, wrong: "" };
    try {
      const units = unitsOf(this.vocab, text.slice(0, PASSAGE_LETTERS));
      this.read.cut = wholeWithin(units, this.room);
      if (!this.read.cut.length)
        this.read.wrong = units.length ? "its first word is longer than the model reads" : "type a text";
      else if (this.read.cut.length < units.length || text.length > PASSAGE_LETTERS)
        this.read.note = `the text is longer than the model reads: its first ${this.read.cut.length > 1 ? `${this.read.cut.length} words are` : "word is"} shown`;
      if (!this.read.wrong) this.read.units = this.read.cut;
    } catch (error) {
      this.read.wrong = `${error.message}${this.read.units ? ": the words below are the last that could be read" : ""}`;
    }
    return this.read.units;
  }

  // Tokens that a text may have, beside those that frame it.
  get room() {
    const { context, special_tokens: special } = this.described;
    return context - Number(special.before !== null) - Number(special.after !== null);
  }

  framed(ids) {
    const { before, after } = this.described.special_tokens;
    return [...(before === null ? [] : [before]), ...ids.slice(0, this.room), ...(after === null ? [] : [after])];
  }

  get asTyped() {
    return this.units.flatMap(({ ids }) => ids);
  }

  async refresh() {
    const turn = ++this.turn;
    if (this.typed.value !== this.store.get("text")) this.typed.value = this.store.get("text");
    if (this.vocab.learn && !(await this.learned(turn))) return;
    const { units } = this;
    if (this.read.wrong) this.announce(this.read.wrong);
    if (!units || this.read.wrong) return;
    this.showWords();
    const ids = this.framed(this.ids);
    const base = this.framed(this.base);
    const starts = this.startsIn(ids);
    if (!ids.length) return void this.announce("nothing is left to read: bring a word back");
    const asked = [this.ask("read", ids, { edits: this.edits, watch: true }), this.baseline(ids, base)];
    const [answer, compared] = await Promise.all(asked);
    if (!answer || turn !== this.turn || this.frame.closed) return;
    this.answer = answer;
    this.compared = compared ?? answer;
    this.starts = starts;
    this.startsOf = units;
    this.show(turn);
    this.remind();
    this.showHeads();
    this.frame.renewTable();
  }

  // Python reads the text first, and what stands in place of its words; false if it could not, or is asked again by now.
  async learned(turn) {
    const learned = await this.learn(this.vocab, textsOf(this.store.get("text").slice(0, PASSAGE_LETTERS)));
    if (learned && this.read) this.read.text = null;
    if (learned === null || turn !== this.turn) return false;
    return (await this.learn(this.vocab, this.units ? this.others : [])) !== null && turn === this.turn;
  }

  // Texts in place of words.
  get others() {
    return [];
  }

  // What it is compared with: nothing, where it would be the same.
  baseline(ids, base) {
    return String(ids) === String(base) && !this.edits.length ? null : this.ask("base", base);
  }

  // What the model gives for these tokens; null if something else was asked for meanwhile on this lane.
  async ask(lane, ids, { program = "read", edits = [], watch = false } = {}) {
    const key = JSON.stringify([program, ids, edits]);
    if (this.answer?.key === key) return this.answer;
    if (!watch && this.answers.has(key)) return this.answers.get(key);
    const made = await this.run(lane, program, { ids: { shape: [1, ids.length], data: ids } }, { edits, watch });
    if (!made) return null;
    if (!made.outputs.logits.data.every(Number.isFinite)) {
      this.frame.failed(new Error("the model's logits are not finite; it has nothing to say"));
      return null;
    }
    const answer = { key, ids, logits: made.outputs.logits.data, patterns: made.patterns };
    this.answers.set(key, { ...answer, patterns: null }); // maps are large
    if (this.answers.size > this.keeps) this.answers.delete(this.answers.keys().next().value);
    return answer;
  }

  // Words stay the same elements as long as the text does, so that focus and a second click find them.
  showWords() {
    if (this.shownUnits !== this.units) {
      this.shownUnits = this.units;
      this.spans = this.units.map((_, i) =>
        h("span", { class: "word", role: "button", "data-unit": i, tabIndex: i ? -1 : 0 }),
      );
      this.words.replaceChildren(...this.units.flatMap(({ lead }, i) => [lead, this.spans[i]]));
    }
    this.spans.forEach((span, i) => this.dress(span, this.units[i], i));
  }

  showHeads() {
    const words = this.vocab.words(this.answer.ids);
    if (this.shownMaps !== this.answer) this.showMaps(this.answer.patterns, () => [words, words]);
    else this.showModel();
    this.shownMaps = this.answer;
  }

  // The words where the browser has put them, and below them what `below` draws: { height, draw(pen, y) }.
  drawingWith(below) {
    const { theme } = this.frame;
    const box = this.words.getBoundingClientRect();
    const draw = (pen) => {
      for (const span of this.spans ?? []) {
        const rects = [...span.getClientRects()];
        const [x, y] = [rects[0].left - box.left, rects[0].top - box.top];
        const { background } = span.style;
        for (const { left, top, width, height } of rects) {
          if (background) pen.rect(left - box.left, top - box.top, width, height, { fill: background });
          if (span.classList.contains("struck"))
            pen.rect(left - box.left, top - box.top + height / 2, width, 1, { fill: theme.ink });
        }
        pen.text(x + 2, y + rects[0].height / 2, span.textContent, { size: 15, fill: theme.ink });
      }
      below.draw(pen, box.height + 8);
    };
    return { width: Math.max(420, box.width), height: box.height + 8 + below.height, draw };
  }
}

// Text as it can be seen: a sign for each character that cannot; spaces stay.
export const seen = (text) =>
  Array.from(text, (character) => (character === " " ? character : sign(character))).join("");

// The same in quotation marks, cut with a sign, at the end or, if `from` says so, at the beginning.
export function cited(text, longest = 40, from = "start") {
  const points = [...text];
  const kept =
    points.length <= longest
      ? points
      : from === "end"
        ? ["…", ...points.slice(1 - longest)]
        : [...points.slice(0, longest - 1), "…"];
  return `“\u2068${seen(kept.join(""))}\u2069”`;
}

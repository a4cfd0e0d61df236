// A studio of one text: typed above, its words below as places to act on; what the model says of it, kept by what was asked.

import { activeIn, following, h, stepIn } from "../base/elements.js";
import { sign } from "../base/pen.js";
import { button } from "./button.js";
import { LruCache } from "./lru-cache.js";
import { Studio } from "./studio.js";
import { textsOf, segmentsOf, segmentsWithin } from "./word-segments.js";

/** @import { ClassifyDocument, FillDocument } from "../documents.d.ts" */
/** @import { Grid } from "../base/grid.js" */
/** @import { Drawing, Edit, Pattern, Pen } from "../types.d.ts" */
/** @import { Segment } from "./word-segments.js" */
/** @typedef {{ ids: number[], logits: Float32Array }} Logits after each token */
/**
 * @typedef {Logits & { key: string, patterns: Record<string, Pattern[]> | null }} TextAnswer what a model gives for a
 *   text, under the key of what was asked
 */
/**
 * @typedef {{ text: string | null, segments: Segment[] | null, problem: string, note?: string }} ReadText its
 *   words, or those of the last text that could be read; and what is wrong with it
 */

const MAX_LETTERS = 10000; // of a text that are looked at

/** @template {ClassifyDocument | FillDocument} Document @extends {Studio<Document>} */
export class TextStudio extends Studio {
  /** @abstract @returns {Partial<Document["state"]>} the choices of a text just typed */
  get initialState() {
    return {};
  }

  get cleared() {
    return this.initialState;
  }

  /** @abstract @returns {number[]} the tokens of the text as it stands now */
  get ids() {
    return this.originalIds;
  }

  /** @abstract @returns {number[]} those that it is compared with */
  get base() {
    return this.originalIds;
  }

  /** How many answers are remembered. */
  get maxAnswers() {
    return 16;
  }

  /** @abstract @param {number} _i @param {{ key?: string, detail?: number }} _event */
  act(_i, _event) {}

  /** @abstract @param {number} _i */
  announceWord(_i) {}

  /** @abstract @param {HTMLElement} _span @param {Segment} _segment @param {number} _i */
  decorateWord(_span, _segment, _i) {}

  /** @abstract @param {number} _turn @returns {void | Promise<void>} */
  show(_turn) {}

  /** @param {string} name @param {string} help what the words are there for */
  buildText(name, help) {
    /** @type {LruCache<TextAnswer>} by what was asked */
    this.answers = new LruCache(this.maxAnswers);
    /** @type {TextAnswer | null} */
    this.answer = null;
    /** @type {TextAnswer | null} what it is compared with */
    this.compared = null;
    /** @type {ReadText | null} */
    this.read = null;
    /** @type {HTMLElement[]} of the words */
    this.spans = [];
    /** @type {Segment[] | null} the words that the spans are of */
    this.spanSegments = null;
    /** @type {TextAnswer | null} whose maps are shown */
    this.mappedAnswer = null;
    /** @type {number} */
    this.turn = 0;
    const changeText = () => this.change({ text: this.field.value, ...this.initialState });
    /** @type {HTMLTextAreaElement} */
    this.field = h("textarea", {
      dir: "auto",
      spellcheck: false,
      hidden: true,
      "aria-label": name,
      oninput: changeText,
    });
    /** @type {HTMLButtonElement} */
    this.editing = button("Edit the text", () => this.setEditing(!this.field.hidden));
    /** @type {HTMLElement} */
    this.words = h("p", { class: "sentence passage", role: "group", "aria-label": help, dir: "auto" });
    /** @type {HTMLButtonElement} */
    this.reset = button("As typed", () => this.undo(), { class: "as-typed" });
    /** @type {number | null} the word that is pointed at */
    this.pointed = null;
    /** @type {number[]} the first token of each word, and one past the last */
    this.starts = [];
    /** @type {Segment[] | null} the words that the starts are of */
    this.startSegments = null;
    following(
      this.words,
      (event) => this.point(this.wordIndexOf(event)),
      () => this.point(-1),
    );
    this.words.onclick = (/** @type {MouseEvent} */ event) =>
      this.wordIndexOf(event) >= 0 && this.act(this.wordIndexOf(event), event);
    this.words.onkeydown = (/** @type {KeyboardEvent} */ event) => this.pressed(event);
    this.words.addEventListener(
      "focusin",
      (/** @type {FocusEvent} */ event) => this.wordIndexOf(event) >= 0 && this.arrive(this.wordIndexOf(event)),
    );
  }

  /** Show the words, or in their place a field to type them in. @param {boolean} ends */
  setEditing(ends) {
    this.field.hidden = ends;
    this.words.hidden = !ends;
    this.editing.textContent = ends ? "Edit the text" : "Done";
    this.editing.setAttribute("aria-pressed", String(!ends));
    if (!ends) this.field.focus();
  }

  /** Point at a word: its row of the chosen head shades the text. @param {number} i */
  point(i) {
    const pointed = i < 0 ? null : i;
    if (pointed === this.pointed) return;
    this.pointed = pointed;
    if (!this.answer || !this.heads.groups.length) return;
    this.showModel();
  }

  /** @abstract @returns {number[]} how many tokens each word has as the model reads it */
  get counts() {
    return [];
  }

  /**
   * Return the first token of each word among these that the model reads, and one past the last word's.
   * @param {number[]} ids
   */
  startsIn(ids) {
    const { before, after } = this.described.special_tokens;
    const end = ids.length - Number(after !== null);
    let at = Number(before !== null);
    return [...this.counts, 0].map((count) => {
      at += count;
      return Math.min(end, at - count);
    });
  }

  /**
   * The first token of the word that is pointed at, in what the model has read: none while another text is being read.
   * @returns {number | null}
   */
  get row() {
    const { pointed, starts } = this;
    if (pointed === null || this.startSegments !== this.spanSegments) return null;
    return starts[pointed + 1] > starts[pointed] ? starts[pointed] : null;
  }

  /** @returns {number[]} */
  idsOf() {
    return this.answer?.ids ?? [];
  }

  /** @abstract shade the words as they are when no word is pointed at */
  unshade() {}

  /** The map of the chosen head, as long as a word is pointed at: its row shades the text. @returns {Grid | null} */
  get shading() {
    return this.row === null || this.heads.isOff(this.heads.selected) ? null : this.heads.grid(this.heads.selected);
  }

  showFrom() {
    const { answer, row, starts, shading: grid } = this;
    const { layer, head } = this.heads.selected;
    this.spans.forEach((span, i) => span.classList.toggle("from", grid !== null && i === this.pointed));
    this.sourceLabel.textContent = "";
    if (!grid || !answer || row === null) return this.unshade();
    this.sourceLabel.textContent = `from “${this.vocab.words([answer.ids[row]])[0]}”, layer ${layer} head ${head}`;
    this.spans.forEach((span, i) => {
      const colours = this.shadeOf(grid, row, starts[i], starts[i + 1] - 1);
      span.style.background = colours?.background ?? "";
      span.style.color = colours?.ink ?? "";
    });
    return undefined;
  }

  /** Return the index of the word that an event is about, or -1. @param {{ target: any }} event */
  wordIndexOf({ target }) {
    return Number(target.dataset?.unit ?? -1);
  }

  /**
   * Change the text. Another text has other rows: none of them is locked.
   * @param {Partial<Document["state"]>} changes
   */
  change(changes) {
    this.store.set({ ...changes, rows: [], cols: [] });
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const i = this.wordIndexOf(event);
    if (i < 0) return;
    const last = this.segments.length - 1;
    const next = stepIn(event.key, i, last);
    if (next !== undefined) this.go(Math.max(0, Math.min(last, next)));
    else if ([" ", "Enter", "Delete", "Backspace"].includes(event.key)) this.act(i, event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} i */
  go(i) {
    this.spans[i]?.focus();
  }

  /** Make the word that has the focus the one tab stop, and point at it. @param {number} i */
  arrive(i) {
    for (const span of this.spans) span.tabIndex = -1;
    this.spans[i].tabIndex = 0;
    this.point(i);
    this.announceWord(i);
  }

  /** Announce where the text is too long, else what is known of the word that has the focus. */
  remind() {
    const at = this.wordIndexOf({ target: activeIn(this.words) ?? {} });
    const note = this.read?.note;
    if (note || at < 0) this.announce(note ?? "");
    else this.announceWord(at);
  }

  undo() {
    this.change(this.initialState);
    /** @type {HTMLElement | null} */ (this.words.querySelector("[tabindex='0']"))?.focus(); // the button goes
  }

  /** The words of the text as typed; those of the last text that could be read, if this one cannot be. */
  get segments() {
    const text = this.store.get("text");
    if (this.read?.text !== text) this.read = this.readText(text);
    return this.read.segments ?? [];
  }

  /** @param {string} text @returns {ReadText} */
  readText(text) {
    const segments = this.read?.segments ?? null;
    try {
      const all = segmentsOf(this.vocab, text.slice(0, MAX_LETTERS));
      const cut = segmentsWithin(all, this.maxTokens);
      const { length } = cut;
      if (!length)
        return {
          text,
          segments,
          problem: all.length ? "its first word is longer than the model reads" : "type a text",
        };
      const longer = length < all.length || text.length > MAX_LETTERS;
      const words = length > 1 ? `${length} words are` : "word is";
      const note = longer ? `the text is longer than the model reads: its first ${words} shown` : undefined;
      return { text, segments: cut, problem: "", note };
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      return {
        text,
        segments,
        problem: `${message}${segments ? ": the words below are the last that could be read" : ""}`,
      };
    }
  }

  /** How many tokens a text may have, besides the special ones around it. */
  get maxTokens() {
    const { context, special_tokens: special } = this.described;
    return context - Number(special.before !== null) - Number(special.after !== null);
  }

  /** @param {number[]} ids */
  withSpecialTokens(ids) {
    const { before, after } = this.described.special_tokens;
    return [...(before === null ? [] : [before]), ...ids.slice(0, this.maxTokens), ...(after === null ? [] : [after])];
  }

  get originalIds() {
    return this.segments.flatMap(({ ids }) => ids);
  }

  async refresh() {
    const turn = ++this.turn;
    if (this.field.value !== this.store.get("text")) this.field.value = this.store.get("text");
    if (this.vocab.learn && !(await this.learned(turn))) return;
    const { segments } = this;
    if (this.read?.problem) return void this.announce(this.read.problem);
    this.showWords();
    const ids = this.withSpecialTokens(this.ids);
    const base = this.withSpecialTokens(this.base);
    const starts = this.startsIn(ids);
    if (!ids.length) return void this.announce("nothing is left to read: bring a word back");
    const [answer, compared] = await Promise.all([
      this.ask("read", ids, { edits: this.edits, watch: true }),
      this.baseline(ids, base),
    ]);
    if (!answer || turn !== this.turn || this.frame.closed) return;
    this.answer = answer;
    this.compared = compared ?? answer;
    this.starts = starts;
    this.startSegments = segments;
    this.show(turn);
    this.remind();
    this.showHeads();
    this.frame.renewTable();
  }

  /**
   * Let Python encode the text first, and what stands in place of its words; false if it could not, or something else
   * is asked for by now.
   * @param {number} turn
   */
  async learned(turn) {
    const learned = await this.learn(this.vocab, textsOf(this.store.get("text").slice(0, MAX_LETTERS)));
    if (learned && this.read) this.read.text = null;
    if (learned === null || turn !== this.turn) return false;
    return (await this.learn(this.vocab, this.others)) !== null && turn === this.turn;
  }

  /** Texts in place of words. @returns {string[]} */
  get others() {
    return [];
  }

  /**
   * Ask for what the answer is compared with; null where it would be the same.
   * @param {number[]} ids
   * @param {number[]} base
   */
  baseline(ids, base) {
    return String(ids) === String(base) && !this.edits.length ? null : this.ask("base", base);
  }

  /**
   * Ask the model for these tokens; null if something else was asked for meanwhile on this lane.
   * @param {string} lane
   * @param {number[]} ids
   * @param {{ program?: string, edits?: Edit[], watch?: boolean }} [options]
   * @returns {Promise<TextAnswer | null>}
   */
  async ask(lane, ids, { program = "read", edits = [], watch = false } = {}) {
    const key = JSON.stringify([program, ids, edits]);
    if (this.answer?.key === key) return this.answer;
    const known = this.answers.get(key);
    if (known && !watch) return known;
    const result = await this.run(lane, program, { ids: { shape: [1, ids.length], data: ids } }, { edits, watch });
    if (!result) return null;
    const logits = result.outputs.logits.data;
    if (!logits.every(Number.isFinite)) {
      this.frame.failed(new Error("the model's logits are not finite; it has nothing to say"));
      return null;
    }
    const answer = { key, ids, logits, patterns: result.patterns };
    this.answers.set(key, { ...answer, patterns: null }); // maps are large
    return answer;
  }

  /** Show the words: the same elements as long as the text stays, so that focus and a second click find them. */
  showWords() {
    if (this.spanSegments !== this.segments) {
      this.spanSegments = this.segments;
      this.spans = this.segments.map((_, i) =>
        h("span", { class: "word", role: "button", "data-unit": i, tabIndex: i ? -1 : 0 }),
      );
      this.words.replaceChildren(...this.segments.flatMap(({ lead }, i) => [lead, this.spans[i]]));
    }
    this.spans.forEach((span, i) => this.decorateWord(span, this.segments[i], i));
  }

  showHeads() {
    const { answer } = this;
    if (!answer?.patterns || this.mappedAnswer === answer) return this.showModel();
    const words = this.vocab.words(answer.ids);
    this.showMaps(answer.patterns, () => [words, words]);
    this.mappedAnswer = answer;
  }

  /**
   * Return a drawing of the words where the browser has put them, and below them of what `below` draws.
   * @param {{ height: number, draw(pen: Pen, top: number): void }} below
   * @returns {Drawing}
   */
  drawingWith(below) {
    const { theme } = this.frame;
    const box = this.words.getBoundingClientRect();
    const draw = (/** @type {Pen} */ pen) => {
      for (const span of this.spans) {
        const rects = [...span.getClientRects()];
        const [x, y] = [rects[0].left - box.left, rects[0].top - box.top];
        const { background } = span.style;
        for (const { left, top, width, height } of rects) {
          if (background) pen.rect(left - box.left, top - box.top, width, height, { fill: background });
          if (span.classList.contains("struck"))
            pen.rect(left - box.left, top - box.top + height / 2, width, 1, { fill: theme.ink });
        }
        pen.text(x + 2, y + rects[0].height / 2, span.textContent ?? "", { size: 15, fill: theme.ink });
      }
      below.draw(pen, box.height + 8);
    };
    return { width: Math.max(420, box.width), height: box.height + 8 + below.height, draw };
  }
}

/** Make a text visible: a sign for each character that cannot be seen; spaces stay. @param {string} text */
export const visibleText = (text) =>
  Array.from(text, (character) => (character === " " ? character : sign(character))).join("");

/**
 * Quote a visible text, cut with a sign where it is too long, at the end or, if `from` is "end", at the beginning.
 * @param {string} text
 * @param {number} [longest]
 * @param {"start" | "end"} [from]
 */
export function cited(text, longest = 40, from = "start") {
  const points = [...text];
  const letters =
    points.length <= longest
      ? points
      : from === "end"
        ? ["…", ...points.slice(1 - longest)]
        : [...points.slice(0, longest - 1), "…"];
  return `“\u2068${visibleText(letters.join(""))}\u2069”`;
}

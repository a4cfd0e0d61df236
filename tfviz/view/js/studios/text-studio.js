// A studio of one text: typed above, its words below as places to act on, and what the model says of it.

import { h } from "../base/elements.js";
import { Answers } from "./answers.js";
import { button } from "./parts.js";
import { SpecialTokens } from "./special-tokens.js";
import { Studio } from "./studio.js";
import { ReadableText } from "./readable-text.js";
import { shadeOf } from "./text-shading.js";
import { WordList } from "./word-list.js";

/** @import { ClassifyDocument, FillDocument } from "../documents.d.ts" */
/** @import { Grid } from "../base/grid.js" */
/** @import { Answer, AskOptions } from "./answers.js" */
/** @import { Segment } from "./word-segments.js" */
/** @typedef {{ ids: number[], logits: Float32Array }} Logits after each token */
/** @typedef {Answer & Logits} TextAnswer */

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

  /** @abstract shade the words as they are when no word is pointed at */
  unshade() {}

  /** @abstract @returns {number[]} how many tokens each word has as the model reads it */
  get counts() {
    return [];
  }

  /** @param {string} name @param {string} help what the words are there for */
  buildText(name, help) {
    /** @type {TextAnswer | null} */
    this.answer = null;
    /** @type {TextAnswer | null} what it is compared with */
    this.compared = null;
    /** @type {TextAnswer | null} whose maps are shown */
    this.mappedAnswer = null;
    /** @type {number} */
    this.turn = 0;
    /** @type {number | null} the word that is pointed at */
    this.pointed = null;
    /** @type {number[]} the first token of each word, and one past the last */
    this.starts = [];
    /** @type {Segment[] | null} the words that the starts are of */
    this.startSegments = null;
    /** @type {SpecialTokens} */
    this.special = new SpecialTokens(this.described);
    /** @type {Answers} */
    this.answers = new Answers(/** @type {any} */ (this), this.maxAnswers);
    /** @type {ReadableText} */
    this.readableText = new ReadableText(this.vocab, this.special.maxTokens);
    /** @type {WordList} */
    this.words = new WordList(help, {
      point: (i) => this.point(i),
      act: (i, event) => this.act(i, event),
      focus: (i) => {
        this.point(i);
        this.announceWord(i);
      },
    });
    const changeText = () => this.change({ text: this.field.value, ...this.initialState });
    const field = { dir: "auto", spellcheck: false, hidden: true, "aria-label": name, oninput: changeText };
    /** @type {HTMLTextAreaElement} */
    this.field = h("textarea", field);
    /** @type {HTMLButtonElement} */
    this.editing = button("Edit the text", () => this.setEditing(!this.field.hidden));
    /** @type {HTMLButtonElement} */
    this.reset = button("As typed", () => this.undo(), { class: "as-typed" });
  }

  /** Show the words, or in their place a field to type them in. @param {boolean} ends */
  setEditing(ends) {
    this.field.hidden = ends;
    this.words.element.hidden = !ends;
    this.editing.textContent = ends ? "Edit the text" : "Done";
    this.editing.setAttribute("aria-pressed", String(!ends));
    if (!ends) this.field.focus();
  }

  /** Point at a word: its row of the chosen head shades the text. @param {number} i */
  point(i) {
    const pointed = i < 0 ? null : i;
    if (pointed === this.pointed) return;
    this.pointed = pointed;
    if (this.answer) this.showModel();
  }

  /**
   * The first token of the word that is pointed at, in what the model has read: none while another text is being read.
   * @returns {number | null}
   */
  get row() {
    const { pointed, starts } = this;
    if (pointed === null || this.startSegments !== this.words.segments) return null;
    return starts[pointed + 1] > starts[pointed] ? starts[pointed] : null;
  }

  /** @returns {number[]} */
  idsOf() {
    return this.answer?.ids ?? [];
  }

  /** The map of the chosen head, as long as a word is pointed at: its row shades the text. @returns {Grid | null} */
  get shading() {
    if (this.row === null) return null;
    const { heads } = this;
    return heads.isOff(heads.selected) ? null : heads.grid(heads.selected);
  }

  showFrom() {
    const { answer, row, starts, shading: grid, words } = this;
    const { layer, head } = this.heads.selected;
    words.spans.forEach((span, i) => span.classList.toggle("from", grid !== null && i === this.pointed));
    this.sourceLabel.textContent = "";
    if (!grid || !answer || row === null) return this.unshade();
    this.sourceLabel.textContent = `from “${this.vocab.words([answer.ids[row]])[0]}”, layer ${layer} head ${head}`;
    words.spans.forEach((span, i) => {
      const colours = shadeOf(this.frame.theme, grid, row, starts[i], starts[i + 1] - 1);
      span.style.background = colours?.background ?? "";
      span.style.color = colours?.ink ?? "";
    });
    return undefined;
  }

  /** Change the text. Another text has other rows: none of them is locked. @param {Partial<Document["state"]>} changes */
  change(changes) {
    this.store.set({ ...changes, rows: [], cols: [] });
  }

  undo() {
    this.change(this.initialState);
    this.words.focusStop(); // the button goes
  }

  /** Announce where the text is too long, else what is known of the word that has the focus. */
  remind() {
    const { focused } = this.words;
    const { note } = this.read;
    if (note || focused < 0) this.announce(note ?? "");
    else this.announceWord(focused);
  }

  get read() {
    return this.readableText.read(this.store.get("text"));
  }

  /** The words of the text as typed; those of the last text that could be read, if this one cannot be. */
  get segments() {
    return this.read.segments ?? [];
  }

  get originalIds() {
    return this.segments.flatMap(({ ids }) => ids);
  }

  async refresh() {
    const turn = ++this.turn;
    if (this.field.value !== this.store.get("text")) this.field.value = this.store.get("text");
    if (this.vocab.learn && !(await this.learned(turn))) return;
    const { segments } = this;
    if (this.read.problem) return void this.announce(this.read.problem);
    this.words.show(segments, (...word) => this.decorateWord(...word));
    const ids = this.special.around(this.ids);
    const starts = this.special.startsIn(this.counts, ids);
    if (!ids.length) return void this.announce("nothing is left to read: bring a word back");
    const [answer, compared] = await Promise.all([
      this.ask("read", ids, { edits: this.edits, watch: true }),
      this.baseline(ids, this.special.around(this.base)),
    ]);
    if (!answer || turn !== this.turn || this.frame.closed) return;
    Object.assign(this, { answer, compared: compared ?? answer, starts, startSegments: segments });
    this.show(turn);
    this.remind();
    this.showHeads();
    this.frame.renewTable();
  }

  /**
   * Let Python encode the text first, and what stands in place of its words; false if it could not, or something else is
   * asked for by now.
   * @param {number} turn
   */
  async learned(turn) {
    const learned = await this.readableText.learned(this.store.get("text"), (...call) => this.learn(...call));
    if (!learned || turn !== this.turn) return false;
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
   * @param {AskOptions} [options]
   * @returns {Promise<TextAnswer | null>}
   */
  async ask(lane, ids, options = {}) {
    const answer = await this.answers.ask(lane, ids, { ids: { shape: [1, ids.length], data: ids } }, options);
    return answer && Object.assign(answer, { ids });
  }

  showHeads() {
    const { answer } = this;
    if (!answer?.patterns || this.mappedAnswer === answer) return this.showModel();
    const words = this.vocab.words(answer.ids);
    this.showMaps(answer.patterns, () => [words, words]);
    this.mappedAnswer = answer;
  }
}

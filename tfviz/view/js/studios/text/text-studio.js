// The base class of studios of one text: a field to type it, its words as buttons below, and the model's predictions
// for it.

import { button, h, shadeElement } from "../../base/elements.js";
import { NO_LOCKS } from "../../base/locks.js";
import { quotedExcerpt } from "../../base/visible-text.js";
import { LogitsCache } from "../logits-cache.js";
import { SpecialTokens } from "./special-tokens.js";
import { Studio } from "../studio.js";
import { ReadableText } from "./readable-text.js";
import { tokenPhrase } from "../../base/token-names.js";
import { shadeOf } from "./token-text.js";
import { WordList } from "./word-list.js";

/** @import { ClassifyDocument, FillDocument } from "../../documents.js" */
/** @import { Grid } from "../../base/grid.js" */
/** @import { Answer, AskOptions } from "../logits-cache.js" */
/** @import { StudioArguments } from "../studio.js" */
/** @import { Segment } from "./word-segments.js" */
/** @typedef {{ ids: number[], logits: Float32Array }} Logits after each token */
/** @typedef {Answer & Logits} TextAnswer */

const MAX_NAMED = 3; // words that are not known
const MAX_LARGE_TEXT_LENGTH = 110; // letters of a text that is written larger where there is room

/**
 * A studio of one text, whose words can be acted on.
 * @template {ClassifyDocument | FillDocument} Document
 * @extends {Studio<Document>}
 */
export class TextStudio extends Studio {
  /** @abstract @returns {Partial<Document["state"]>} the choices of a text just typed */
  get initialState() {
    return {};
  }

  get clearedChoices() {
    return this.initialState;
  }

  /** @abstract @returns {number[]} the tokens of the text as it stands now */
  get ids() {
    return this.originalIds;
  }

  /** @abstract @returns {number[]} the tokens of the text for comparison */
  get baselineIds() {
    return this.originalIds;
  }

  /** @abstract @param {number} _i @param {{ key?: string, detail?: number }} _event */
  act(_i, _event) {}

  /** @abstract @param {number} _i */
  announceWord(_i) {}

  /** @abstract @param {HTMLElement} _span @param {Segment} _segment @param {number} _i */
  decorateWord(_span, _segment, _i) {}

  /** @abstract @param {() => boolean} _isCurrent @returns {void | Promise<void>} */
  show(_isCurrent) {}

  /** @abstract shade the words as they are when no word is pointed at */
  clearShading() {}

  /** @abstract @returns {number[]} how many tokens each word has as the model reads it */
  get tokenCounts() {
    return [];
  }

  /** @type {TextAnswer | null} */
  answer = null;
  /** @type {TextAnswer | null} the answer for comparison */
  baseline = null;
  /** @type {number | null} the word under the pointer */
  pointed = null;
  /** @type {number[]} the first token of each word, and one past the last */
  starts = [];
  /** @type {Segment[] | null} the words to which `starts` belongs */
  startSegments = null;

  /**
   * @param {StudioArguments<Document>} args
   * @param {string} help the help text of the list of words
   * @param {string} reset the name of the button that takes all changes of the text back
   * @param {number} [maxAnswers] the size of the cache of answers
   */
  constructor(args, help, reset, maxAnswers = 16) {
    super(...args);
    this.special = new SpecialTokens(this.viewDocument);
    this.answers = new LogitsCache(this, maxAnswers);
    this.readableText = new ReadableText(this.tokenizer, this.special.maxTokens);
    this.words = new WordList(help, {
      point: (i) => this.point(i),
      act: (i, event) => this.act(i, event),
      focus: (i) => {
        this.point(i);
        this.announceWord(i);
      },
    });
    const changeText = () => this.change({ text: this.field.value, ...this.initialState });
    const field = { dir: "auto", spellcheck: false, hidden: true, "aria-label": "Text", oninput: changeText };
    this.field = h("textarea", field);
    this.editButton = button("Edit the text", () => this.setEditing(!this.field.hidden));
    this.resetButton = button(reset, () => this.revert(), { class: "as-typed" });
  }

  /**
   * Lay out the text, how to act on it, and what the model says.
   * @param {{ how: string, legend?: HTMLElement[], prediction: HTMLElement[], predictionTitle: string }} panes
   *   legend: below the text
   */
  buildTextPanes({ how, legend = [], ...panes }) {
    const buttons = h("div", { class: "row" }, this.editButton, this.resetButton);
    const text = [
      this.words.element,
      this.field,
      h("p", { class: "muted" }, how),
      ...legend,
      h("div", { class: "foot" }, buttons),
    ];
    this.buildPanes({ textTitle: "The text", text, ...panes });
  }

  /** Show the words, or a field to edit the text. @param {boolean} ends */
  setEditing(ends) {
    this.field.hidden = ends;
    this.words.element.hidden = !ends;
    this.editButton.textContent = ends ? "Edit the text" : "Done";
    this.editButton.setAttribute("aria-pressed", String(!ends));
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
   * The first token of the word under the pointer; null while another text is being read.
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
    const { heads } = this;
    if (this.row === null || !heads.groups.length) return null; // the pointer may stand on a word before there are maps
    return heads.isAblated(heads.selected) ? null : heads.grid(heads.selected);
  }

  showSource() {
    const { answer, row, starts, shading: grid, words } = this;
    words.spans.forEach((span, i) => span.classList.toggle("from", grid !== null && i === this.pointed));
    this.sourceLabel.textContent = "";
    this.arcs?.show(null);
    if (!grid || !answer || row === null) return this.clearShading();
    /** @type {import("./look-arcs.js").ShadedPiece[]} */
    const shadedPieces = [];
    this.showShadingHead(`${tokenPhrase(this.tokenizer.tokens([answer.ids[row]])[0])} looks`);
    words.spans.forEach((span, i) => {
      const colours = shadeOf(this.frame.theme, grid, row, starts[i], starts[i + 1] - 1);
      shadeElement(span, colours);
      if (colours) shadedPieces.push({ element: span, code: colours.code });
    });
    this.arcs?.show(
      words.spans.find((_, i) => starts[i] <= row && row < starts[i + 1]) ?? null,
      shadedPieces,
      this.frame.theme,
    );
    return undefined;
  }

  /**
   * Change the text, and remove locks, which belong to rows of the earlier text.
   * @param {Partial<Document["state"]>} changes
   */
  change(changes) {
    this.store.set({ ...changes, ...NO_LOCKS });
  }

  revert() {
    this.change(this.initialState);
    this.words.focusStop(); // the button goes
  }

  /** Announce that the text is too long, else the values of the focused word, else the words that are not known. */
  announceFocus() {
    const { focused } = this.words;
    const { note } = this.read;
    if (!note && focused >= 0) this.announceWord(focused);
    else this.announce(note ?? unknownNote(this.unknownWords));
  }

  /** Whether the vocabulary lacks a word as it stands now. @param {number} i */
  isUnknown(i) {
    return this.segments[i].unknown;
  }

  /** The words as they stand now that the vocabulary lacks. */
  get unknownWords() {
    return this.segments.filter((_, i) => this.isUnknown(i)).map(({ text }) => text);
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
    const isCurrent = this.requests.begin();
    if (this.field.value !== this.store.get("text")) this.field.value = this.store.get("text");
    if (this.tokenizer.preloadEncodings && !(await this.prepareTexts(isCurrent))) return;
    const { segments } = this;
    this.showProblem(this.read.problem);
    if (this.read.problem) return;
    this.words.show(segments, (...word) => this.decorateWord(...word));
    this.words.element.classList.toggle("short", this.store.get("text").length <= MAX_LARGE_TEXT_LENGTH);
    const ids = this.special.around(this.ids);
    const starts = this.special.startsIn(this.tokenCounts, ids);
    if (!ids.length) return this.showProblem("nothing is left to read: bring a word back");
    const [answer, baseline] = await Promise.all([
      this.ask("read", ids, { edits: this.edits, capture: true }),
      this.readBaseline(ids, this.special.around(this.baselineIds)),
    ]);
    if (!answer || !isCurrent()) return;
    Object.assign(this, { answer, baseline: baseline ?? answer, starts, startSegments: segments });
    void this.show(isCurrent);
    this.announceFocus();
    this.showMaps(answer, answer.patterns, () => Array(2).fill(this.tokenizer.tokens(answer.ids)));
    this.frame.updateTable();
  }

  /**
   * Encode the text and the replacements of its words in Python, for a tokenizer that is not in the page; return
   * false if that failed or another state is requested meanwhile.
   * @param {() => boolean} isCurrent
   */
  async prepareTexts(isCurrent) {
    const prepared = await this.prepareText(this.readableText, this.store.get("text"));
    if (!prepared || !isCurrent()) return false;
    return (await this.preloadEncodings(this.tokenizer, this.replacementTexts)) !== null && isCurrent();
  }

  /** The replacements of words. @returns {string[]} */
  get replacementTexts() {
    return [];
  }

  /**
   * Run the model on the unchanged text with all heads on, for comparison; null if that is the same.
   * @param {number[]} ids
   * @param {number[]} baselineIds
   */
  readBaseline(ids, baselineIds) {
    return String(ids) === String(baselineIds) && !this.edits.length ? null : this.ask("baseline", baselineIds);
  }

  /**
   * Run the model on these tokens; null if a newer request on this channel replaced it.
   * @param {string} channel
   * @param {number[]} ids
   * @param {AskOptions} [options]
   * @returns {Promise<TextAnswer | null>}
   */
  async ask(channel, ids, options = {}) {
    const answer = await this.answers.ask(channel, ids, { ids: { shape: [1, ids.length], data: ids } }, options);
    return answer && Object.assign(answer, { ids });
  }
}

/** Say which words the vocabulary lacks. @param {string[]} words */
function unknownNote(words) {
  if (!words.length) return "";
  const named = words.slice(0, MAX_NAMED).map((word) => quotedExcerpt(word, 20));
  if (words.length > MAX_NAMED) named.push(`${words.length - MAX_NAMED} more`);
  return `The vocabulary lacks ${named.join(", ")}: read as unknown`;
}

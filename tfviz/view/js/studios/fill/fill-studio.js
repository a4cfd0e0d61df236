// The studio of a masked language model: words that can be masked, the model's predictions for them, heads that can be
// switched off, and for comparison the predictions of a model that reads from the left only.

import { quotedExcerpt, visibleText } from "../../base/visible-text.js";
import { PredictionPane } from "./prediction-pane.js";
import { drawPredictions, predictionsHeight, predictionRows } from "./predictions.js";
import { probabilityQuery } from "../head-ablation.js";
import { CausalPredictions } from "./causal-predictions.js";
import { logitsAt, softmax, topK } from "../logits.js";
import { probabilitiesPanel } from "../probability-bars.js";
import { joinPresent } from "../small-elements.js";
import { stacked } from "../text/text-drawing.js";
import { TextStudio } from "../text/text-studio.js";
import { fillExamples } from "../examples.js";

/** @import { FillDocument } from "../../documents.js" */
/** @import { Drawing, Pen } from "../../types.js" */
/** @import { Left } from "./causal-predictions.js" */
/** @import { StudioArguments } from "../studio.js" */
/** @import { Logits } from "../text/text-studio.js" */
/** @import { Segment } from "../text/word-segments.js" */
/**
 * @typedef {{ position: number, probabilities: Float64Array, baseline: Float64Array | null }} PositionPrediction the masked model's probabilities; baseline: those with all heads on
 */
/** @typedef {{ i: number, segment: Segment, both: PositionPrediction[], left: Left }} MaskedWord a masked word, or a part of it */

const HIDE_HELP = "Press a word to hide it: the model guesses what stood there; the true word is underlined.";
const COMPARE_HELP = "A second model reads only the left side.";

/** A studio that shows the predictions for the masked words of a text. @extends {TextStudio<FillDocument>} */
export class FillStudio extends TextStudio {
  get shortcuts() {
    return FILL_SHORTCUTS;
  }

  /** The choices for a newly typed text: nothing masked or filled in. */
  get initialState() {
    return { masked: [], filled: [] };
  }

  /** @param {StudioArguments<FillDocument>} args */
  constructor(...args) {
    super(args, "The words: press one to hide it", "Uncover all words");
    this.left = new CausalPredictions(this);
    this.predictionPane = new PredictionPane(this);
    this.buildTextPanes({
      how: `${HIDE_HELP}${this.viewDocument.compare_with ? ` ${COMPARE_HELP}` : ""}`,
      predictionTitle: "What it guesses",
      prediction: [this.predictionPane.element],
    });
    this.showExamples(fillExamples(this));
    this.open();
  }

  /** The ids that were filled in, by position. */
  get filled() {
    return new Map(/** @type {[number, number][]} */ (this.store.get("filled")));
  }

  get masked() {
    return new Set(this.store.get("masked"));
  }

  /** The tokens as the model reads them, with filled-in tokens and mask tokens. */
  get ids() {
    const { filled, masked } = this;
    const { mask } = this.tokenizer.special;
    return this.originalIds.map((id, position) => (masked.has(position) ? mask : (filled.get(position) ?? id)));
  }

  get baselineIds() {
    return this.ids;
  }

  get tokenCounts() {
    return this.segments.map(({ ids }) => ids.length);
  }

  /** @param {Segment} segment @returns {number[]} */
  positionsOf({ at, ids }) {
    return ids.map((_, piece) => at + piece);
  }

  /** Return the current text of a word, or null if a part of it is masked. @param {Segment} segment */
  textOf(segment) {
    const { masked, filled } = this;
    const positions = this.positionsOf(segment);
    if (positions.some((position) => masked.has(position))) return null;
    if (!positions.some((position) => filled.has(position))) return segment.text;
    return this.tokenizer.decode(segment.ids.map((id, piece) => filled.get(segment.at + piece) ?? id)).trim();
  }

  /** Neither a word that is hidden nor one that was filled in is unknown. @param {number} i */
  isUnknown(i) {
    const segment = this.segments[i];
    return segment.unknown && this.textOf(segment) === segment.text;
  }

  /** Choose the masked word whose predictions are shown. @param {number} i */
  chooseMaskedWord(i) {
    this.predictionPane.word = i;
    this.predictionPane.show();
    this.showModel();
  }

  /** The query: the word under the pointer, else the masked word whose predictions are shown. */
  get row() {
    const { current } = this.predictionPane;
    if (this.pointed !== null || !current || this.startSegments !== this.words.segments) return super.row;
    return this.starts[current.i];
  }

  /** Mask a word, unmask it, or mask a filled-in word again; with several masked words, the first press selects one. @param {number} i */
  act(i) {
    const positions = this.positionsOf(this.segments[i]);
    const { masked, filled } = this;
    const hidden = positions.some((position) => masked.has(position));
    if (hidden && this.maskedWords.some((maskedWord) => maskedWord.i === i) && this.predictionPane.current?.i !== i)
      return this.chooseMaskedWord(i);
    const others = [...masked].filter((position) => !positions.includes(position));
    this.predictionPane.word = i;
    const shows = hidden && !positions.some((position) => filled.has(position));
    return this.change({
      masked: shows ? others : [...others, ...positions].sort((a, b) => a - b),
      filled: [...filled].filter(([position]) => !positions.includes(position)),
    });
  }

  /** Fill a masked position with a token. @param {number} position @param {number} id */
  take(position, id) {
    const filled = [...this.store.get("filled").filter(([other]) => other !== position), [position, id]];
    this.change({ filled, masked: this.store.get("masked").filter((other) => other !== position) });
    this.words.focus(this.segments.findIndex((segment) => this.positionsOf(segment).includes(position)));
  }

  /** @param {() => boolean} isCurrent */
  async show(isCurrent) {
    this.resetButton.hidden = !this.store.get("masked").length && !this.store.get("filled").length;
    this.left.words = new Map();
    this.predictionPane.show();
    const { compare_with: model } = this.viewDocument;
    if (!model || !(await this.left.ask(isCurrent, model))) return;
    this.predictionPane.show();
    this.frame.updateTable();
  }

  /** The predictions for each masked word. @returns {MaskedWord[]} */
  get maskedWords() {
    const { masked, answer, baseline } = this;
    if (!answer || !baseline) return [];
    const front = this.special.prefixIds.length;
    const probabilities = (/** @type {Logits} */ logits, /** @type {number} */ position) =>
      softmax(logitsAt(logits, position + front, this.tokenizer.size));
    return this.segments.flatMap((segment, i) => {
      const positions = this.positionsOf(segment).filter((position) => masked.has(position));
      const both = positions.map((position) => ({
        position,
        probabilities: probabilities(answer, position),
        baseline: this.edits.length ? probabilities(baseline, position) : null,
      }));
      return positions.length ? [{ i, segment, both, left: this.left.words.get(i) }] : [];
    });
  }

  showSource() {
    super.showSource();
    const chosen = this.maskedWords.length > 1 ? this.predictionPane.current?.i : undefined;
    this.words.spans.forEach((span, i) => span.classList.toggle("chosen", i === chosen));
  }

  clearShading() {
    for (const span of this.words.spans) Object.assign(span.style, { background: "", color: "" });
  }

  get ablationQuery() {
    const { answer } = this;
    const [prediction] = this.predictionPane.current?.both ?? [];
    if (!answer || !prediction) return null;
    const { ids } = answer;
    const [id] = topK(prediction.probabilities, 1);
    const position = prediction.position + this.special.prefixIds.length;
    return probabilityQuery(quotedExcerpt(this.tokenizer.tokens([id])[0], 24), {
      key: `${position} ${ids}`,
      answer,
      probability: (other) => softmax(logitsAt(other, position, this.tokenizer.size))[id],
      ask: (edits) => this.ask("ablation", ids, { edits }),
    });
  }

  /** @param {number} i */
  announceWord(i) {
    const segment = this.segments[i];
    const now = this.textOf(segment);
    const remarks = [
      now === null && "hidden",
      now !== null && now !== segment.text && `in place of ${quotedExcerpt(segment.text)}`,
      segment.unknown && "not in the vocabulary: read as unknown",
    ];
    this.announce(joinPresent([quotedExcerpt(now ?? segment.text), joinPresent(remarks, "; ")], ": "));
  }

  /** @param {HTMLElement} span @param {Segment} segment @param {number} i */
  decorateWord(span, segment, i) {
    const now = this.textOf(segment);
    span.textContent = now === null ? "?" : visibleText(now);
    span.classList.toggle("blank", now === null);
    span.classList.toggle("swapped", now !== null && now !== segment.text);
    span.classList.toggle("unknown", this.isUnknown(i));
    span.setAttribute("aria-pressed", String(now === null));
    if (now === null) span.setAttribute("aria-label", `${visibleText(segment.text)}, hidden`);
    else span.removeAttribute("aria-label");
    span.title =
      now === null
        ? `${quotedExcerpt(segment.text)}, hidden: press to see its guesses, or to show it`
        : "press to hide it";
  }

  /** The likeliest words of each position, with the name of their table. */
  get predictionTables() {
    return this.maskedWords.flatMap((maskedWord) => {
      const { segment, both, left } = maskedWord;
      const top = this.predictionPane.sharedWords(maskedWord);
      return [
        ...both.map(({ probabilities, baseline }) => ({
          name: `${segment.text}, both sides`,
          rows: predictionRows({ probabilities, baseline, tokenizer: this.tokenizer }, top),
        })),
        ...(left && "probabilities" in left
          ? [{ name: `${segment.text}, left side`, rows: predictionRows(left, top) }]
          : []),
      ];
    });
  }

  panels() {
    return this.answer ? this.predictionTables.map(({ name, rows }) => probabilitiesPanel(name, "guess", rows)) : null;
  }

  /** @returns {Drawing} */
  get drawing() {
    const { theme } = this.frame;
    const tables = this.answer ? this.predictionTables : [];
    const draw = (/** @type {Pen} */ pen) => drawPredictions(pen, theme, tables, 0);
    return stacked([this.words.drawing, { width: 420, height: predictionsHeight(tables), draw }]);
  }
}

const FILL_SHORTCUTS = [
  ["arrows, Home, End", "in the text: from word to word"],
  ["Enter, Space", "hide a word, or show it"],
  ["Enter", "on a guess: put it in; on a head: switch it off"],
];

// The studio of a translation model: a sentence to translate, a beam search that can be moved forward and back, words
// that can be forced, and heads that can be switched off.

import { shortcuts } from "../../base/events.js";
import { throttle } from "../../base/throttle.js";
import { quoted } from "../../base/visible-text.js";
import { LatestCallQueue } from "../../engine/latest-call-queue.js";
import { EMPTY_HYPOTHESIS, logProbabilities } from "./beam-search.js";
import { querySentence } from "../../views/head-summary.js";
import { probabilityQuery } from "../head-ablation.js";
import { topK } from "../logits.js";
import { tokenPhrase } from "../../base/token-names.js";
import { SearchCache } from "./search-cache.js";
import { SourceSentence } from "./source-sentence.js";
import { probabilitiesDrawing } from "../probability-bars.js";
import { Studio } from "../studio.js";
import { stacked, textDrawing } from "../text/text-drawing.js";
import { TranslationView, NO_CHOICE } from "./translation-view.js";
import { translateExamples } from "../examples.js";

/** @import { TranslateDocument } from "../../documents.js" */
/** @import { Drawing, Pen, Tokenizer } from "../../types.js" */
/** @import { Hypothesis } from "./beam-search.js" */
/** @import { HeadAddress } from "../model-pane.js" */
/** @import { StudioArguments } from "../studio.js" */
/** @import { DecoderOutput, TranslationSearch } from "./translation-search.js" */
/** @import { SearchState } from "./translation-view.js" */

const MAX_FORCED = 12; // forced beginnings that are cached
const DRAW_INTERVAL = 50; // milliseconds between two drawings of a running search

/** A studio that shows how a model translates a sentence. @extends {Studio<TranslateDocument>} */
export class TranslateStudio extends Studio {
  get shortcuts() {
    return TRANSLATE_SHORTCUTS;
  }

  get clearedChoices() {
    return { prefix: [], forced: [], ...NO_CHOICE };
  }

  /** @type {SearchState | null} */
  current = null;
  /** @type {Hypothesis[][]} the steps of the search that are shown */
  columns = [];
  updates = new LatestCallQueue();
  /** Whether the search is running. */
  searching = false;

  /** @param {StudioArguments<TranslateDocument>} args */
  constructor(...args) {
    super(...args);
    this.source = new SourceSentence(this.tokenizers[0], this.viewDocument);
    this.searches = new SearchCache(this);
    this.view = new TranslationView(this);
    this.buildPanes({
      textTitle: "The sentence",
      text: this.view.makeTextParts(),
      predictionTitle: "What could stand here",
      prediction: this.view.nextParts(),
    });
    this.headPane.openedHead.after(this.view.makeSearchPart()); // where it looks comes first
    const actions = { s: () => this.step(), r: () => this.toggle(), b: () => this.back() };
    this.frame.body.addEventListener("keydown", shortcuts(actions));
    this.showExamples(translateExamples(this));
    this.open();
  }

  get tokenizer() {
    return /** @type {Tokenizer} */ (this.tokenizers.at(-1));
  }

  /** The number of steps of the search after the forced ones. */
  get searched() {
    return Math.max(0, this.columns.length - this.store.get("prefix").length);
  }

  /** Search one word further; after a translation that is done, begin with its first word. */
  step() {
    const done = this.current?.search.done && this.columns.length >= this.current.search.columns.length;
    if (done) this.store.set({ prefix: [], steps: 1, ...NO_CHOICE });
    else this.store.set({ steps: this.searched + 1, ...NO_CHOICE });
  }

  toggle() {
    this.store.set({ steps: this.searching ? this.searched : this.viewDocument.max_new_tokens, ...NO_CHOICE });
  }

  back() {
    const { store, searched } = this;
    const prefix = store.get("prefix");
    store.set({ steps: Math.max(0, searched - 1), prefix: searched ? prefix : prefix.slice(0, -1), ...NO_CHOICE });
  }

  /** Force a token at the chosen position, and continue the search from there. @param {number} token */
  force(token) {
    if (!this.current) return;
    const { search, text, position } = this.current;
    const prefix = [...text.tokens.slice(0, position), token];
    const others = this.store.get("forced").filter((tokens) => String(tokens) !== String(prefix));
    const steps = search.done && this.columns.length === search.columns.length ? this.viewDocument.max_new_tokens : 0;
    this.store.set({ prefix, steps, forced: [...others, prefix].slice(-MAX_FORCED), ...NO_CHOICE });
  }

  /** Show the current choices. A change meanwhile interrupts what is being done. */
  refresh() {
    const isCurrent = this.requests.begin();
    this.updates.run(() => this.update(isCurrent)).catch((error) => this.frame.showError(error));
    return this.updates.idle;
  }

  /** @param {() => boolean} isCurrent */
  async update(isCurrent) {
    this.view.showChoices();
    const source = await this.readSource(isCurrent);
    const searched = source?.ids && (await this.search(source.ids, isCurrent));
    const current = searched && (await this.readChosen(...searched));
    if (!current || !isCurrent()) return;
    this.current = current;
    this.announce(source.note);
    this.view.show(current);
    this.showMapsOf(current, /** @type {number[]} */ (source.ids));
    this.frame.updateTable();
  }

  /** Encode the sentence; return null if another state is requested meanwhile, or the encoding failed. @param {() => boolean} isCurrent */
  async readSource(isCurrent) {
    const sentence = this.store.get("sentence");
    if (!(await this.prepareText(this.source, sentence)) || !isCurrent()) return null;
    const { latest } = this.source;
    const source = this.source.read(sentence);
    if (source.ids || source !== latest) this.showProblem(source.ids ? "" : source.note);
    return source;
  }

  /**
   * Search, and if heads are off, also with all heads on; return null if another state is requested meanwhile.
   * @param {number[]} ids
   * @param {() => boolean} isCurrent
   * @returns {Promise<[search: TranslationSearch, baseline: TranslationSearch | null] | null>}
   */
  async search(ids, isCurrent) {
    const search = this.searches.searchFor(ids, this.edits);
    const baseline = this.edits.length ? this.searches.searchFor(ids, []) : null;
    if (!(await this.searchOn(search, isCurrent))) return null;
    if (baseline && !(await this.searchOn(baseline, isCurrent, false))) return null;
    return [search, baseline];
  }

  /**
   * Run the model on the chosen text of a search; return null if that failed.
   * @param {TranslationSearch} search
   * @param {TranslationSearch | null} baseline
   * @returns {Promise<SearchState | null>}
   */
  async readChosen(search, baseline) {
    const { chosen } = this;
    const text = chosen ? this.columns[chosen[0]][chosen[1]] : EMPTY_HYPOTHESIS;
    const ended = text.ended || text.tokens.length >= this.viewDocument.max_new_tokens;
    const read = ended ? text.tokens.slice(0, -1) : text.tokens;
    const answer = await search.reader.readText(read);
    const baselineOutput = baseline && (await baseline.reader.readText(read));
    if (!answer || (baseline && !baselineOutput)) return null;
    const unchosen = ended ? this.leastLikelyPosition(read, answer) : read.length;
    const position = Math.min(this.store.get("locked_rows")[0] ?? unchosen, read.length);
    return { search, baseline, text, ended, read, answer, baselineOutput, position };
  }

  /**
   * Return the position of the least probable word of a translation; punctuation counts only if there is nothing else.
   * @param {number[]} read
   * @param {DecoderOutput} answer
   */
  leastLikelyPosition(read, answer) {
    const logs = read.map(
      (id, position) => logProbabilities(answer.logitsAt(0, position), this.viewDocument.suppressed_ids)[id],
    );
    const words = this.tokenizer.tokens(read).map((word) => /[\p{L}\p{N}]/u.test(word));
    const positions = [...read.keys()].filter((position) => words[position] || !words.includes(true));
    return positions.reduce((least, position) => (logs[position] < logs[least] ? position : least), positions[0] ?? 0);
  }

  /**
   * Search as far as the choices say and show the searching tree; return false if another state is requested meanwhile.
   * @param {TranslationSearch} search
   * @param {() => boolean} isCurrent
   * @param {boolean} [visible]
   */
  async searchOn(search, isCurrent, visible = true) {
    const length = Math.min(this.viewDocument.max_new_tokens, search.prefix.length + this.store.get("steps"));
    const goesOn = () => search.columns.length < length && !search.done;
    const showProgress = (/** @type {boolean} */ searching) => {
      if (visible) this.setColumns(search.columns.slice(0, length), searching);
    };
    const showTree = throttle(() => this.view.showTree(), DRAW_INTERVAL);
    showProgress(goesOn());
    while (goesOn()) {
      if (!(await search.advance()) || !isCurrent()) {
        showProgress(false);
        return false;
      }
      showProgress(true);
      if (visible) showTree();
    }
    showProgress(false);
    return true;
  }

  /** @param {Hypothesis[][]} columns @param {boolean} searching whether the search goes on */
  setColumns(columns, searching) {
    this.columns = columns;
    this.searching = searching;
    this.view.showSearching(searching);
  }

  /**
   * The selected text as [column, rank]; null before the first word. A text that has ended stays in the column of its
   * end.
   * @returns {number[] | null}
   */
  get chosen() {
    const { columns } = this;
    let [column, rank] = this.store.get("node") ?? [columns.length - 1, 0];
    if (!columns[column]?.[rank]) [column, rank] = [columns.length - 1, 0];
    while (columns[column]?.[rank].endedBefore) [column, rank] = [column - 1, columns[column][rank].parent];
    return column < 0 ? null : [column, rank];
  }

  /** Select a position of the translation, or deselect it. @param {number} position */
  choosePosition(position) {
    const mode = this.store.get("mode") === "sheet" ? "words" : this.store.get("mode");
    const other = this.store.get("locked_rows")[0] !== position;
    this.store.set(other ? { locked_rows: [position], mode, part: 0, direction: "from" } : { locked_rows: [] });
  }

  /** Show the maps: of the cross-attention first, then the encoder's. @param {SearchState} current @param {number[]} ids */
  showMapsOf({ read, ended, text, answer }, ids) {
    const source = this.tokenizers[0].tokens(ids);
    const target = this.tokenizer.tokens([this.viewDocument.bos_id, ...read]);
    const written = [...this.tokenizer.tokens(text.tokens), ...(ended ? [] : ["…"])];
    /** @type {Record<string, string[][]>} */
    const words = { "cross-attention": [written, source], encoder: [source, source], decoder: [target, target] };
    const maps = Object.entries(answer.patterns);
    const patterns = Object.fromEntries([
      ...maps.filter(([site]) => site.includes("cross")),
      ...Object.entries(answer.encoderPatterns),
      ...maps.filter(([site]) => !site.includes("cross")),
    ]);
    this.showMaps(answer, patterns, ({ name }) => words[name]);
  }

  /** The name of the part of the chosen head. */
  get part() {
    const { groups } = this.heads;
    return groups.length ? groups[this.heads.selected.part].name : "";
  }

  /**
   * The query: of the encoder the word of the sentence that is pointed at, else the word of the translation that is
   * pointed at or chosen.
   * @returns {number | null}
   */
  get row() {
    if (!this.current || !this.heads.groups.length) return null;
    const { sourceText, translationText } = this.view;
    if (this.part === "encoder") return sourceText.row;
    const { pointed } = translationText;
    const { position, read } = this.current;
    // the decoder's own heads look from a word that is written, those of the cross-attention for one to be written
    return Math.min(pointed === null ? position : pointed + Number(this.part === "decoder"), read.length);
  }

  /** The row of the chosen head's map that shades the texts. @returns {import("./source-text.js").Shading} */
  get shading() {
    const { row, heads } = this;
    if (row === null || heads.isAblated(heads.selected)) return null;
    const grid = heads.grid(heads.selected);
    return row < grid.rows.length ? { grid, row } : null;
  }

  /** The query in the map of a head, if it is the same as that of the chosen head. @param {HeadAddress} at */
  markedRow({ part }) {
    const ofSource = (/** @type {string} */ name) => name === "encoder";
    return ofSource(this.heads.groups[part].name) === ofSource(this.part) ? this.row : null;
  }

  /** Update what depends on the word under the pointer. */
  repoint() {
    if (this.current) this.showModel();
  }

  showSource() {
    const { shading } = this;
    const word = shading?.grid.rows[shading.row];
    if (word !== undefined) this.showShadingHead(word === "…" ? "the next word looks" : `${tokenPhrase(word)} looks`);
    else this.sourceLabel.textContent = "";
    this.view.showShading();
  }

  /** Describe a head of the cross-attention at the selected word of the translation, another head over the whole text. @param {HeadAddress} at */
  describeHead(at) {
    const { row } = this;
    if (this.heads.groups[at.part].name !== "cross-attention" || row === null) return super.describeHead(at);
    const sentence = querySentence(this.heads.grid(at), row, (word) =>
      word === "“\u2068…\u2069”" ? "looks" : `looks, to write ${word},`,
    );
    return sentence || super.describeHead(at);
  }

  /** The probability of the word at the position. */
  get ablationQuery() {
    const { current } = this;
    const ids = this.source.latest?.ids;
    if (!current || !ids || this.searching) return null;
    const { read, text, answer } = current;
    const position = this.part === "cross-attention" ? (this.row ?? current.position) : current.position;
    const logsOf = (/** @type {DecoderOutput} */ output) =>
      logProbabilities(output.logitsAt(0, position), this.viewDocument.suppressed_ids);
    const id = text.tokens[position] ?? topK(logsOf(answer), 1)[0];
    return probabilityQuery(tokenPhrase(this.tokenizer.tokens([id])[0]), {
      key: JSON.stringify([ids, read, position, id]),
      answer,
      probability: (output) => Math.exp(logsOf(output)[id]),
      ask: (edits) => this.searches.readerFor(ids, edits, "ablation").readText(read),
    });
  }

  panels() {
    return this.current && this.view.next.panels;
  }

  /** Make tables of the alternatives at the chosen position and of the texts of the search. */
  tables() {
    return this.current ? [...super.tables(), this.view.texts.table] : [];
  }

  /** @returns {Drawing} */
  get drawing() {
    const { tree, next, sourceText, translationText } = this.view;
    const { element } = translationText;
    const sentence = sourceText.editor.element;
    const { theme } = this.frame;
    const rows = next.words.map(({ name, probability, baseline }) => ({
      name: quoted(name, 14),
      probability,
      baseline,
    }));
    return stacked([
      textDrawing(sentence, sentence.querySelectorAll(".token")),
      textDrawing(element, element.querySelectorAll(".word")),
      probabilitiesDrawing(theme, rows),
      { width: tree.width, height: tree.height, draw: (/** @type {Pen} */ pen) => tree.draw(pen) },
    ]);
  }
}

const TRANSLATE_SHORTCUTS = [
  ["Alt+S, Alt+R, Alt+B", "a step of the search, run or stop, a step back"],
  ["arrows, Enter", "in the translation: move, choose a place; in the tree: move, look at a text"],
  ["Enter", "on a word that could stand there: force it; on a head: switch it off"],
];

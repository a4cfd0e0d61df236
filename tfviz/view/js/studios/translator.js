// A translator to question: a sentence is read, a search goes on or back, a word is forced, heads are switched off.

import { NO_TEXT } from "./beams.js";
import { Searches } from "./searches.js";
import { SourceSentence } from "./source-sentence.js";
import { UNCHOSEN, TranslationStudio } from "./translation-studio.js";
import { translatorTries } from "./tries.js";

/** @import { Beam } from "./beams.js" */
/** @import { Search } from "./beam-search.js" */
/** @import { Current } from "./translation-studio.js" */

const MAX_FORCED = 12; // forced beginnings that are kept
const OFTEN_GROWN = 50; // milliseconds between two drawings of a search that goes on

export class Translator extends TranslationStudio {
  get keys() {
    return TRANSLATOR_KEYS;
  }

  get cleared() {
    return { prefix: [], forced: [], ...UNCHOSEN };
  }

  build() {
    super.build();
    /** @type {SourceSentence} */
    this.source = new SourceSentence(this.vocabularies[0], this.described);
    /** @type {Searches} */
    this.searches = new Searches(this);
    /** Whether the choices have changed since they were shown. */
    this.stale = false;
    /** Whether they are being shown. */
    this.working = false;
    /** Whether the search goes on. */
    this.growing = false;
    this.showTries(translatorTries(this));
  }

  /** How many steps of the search are behind those that were forced. */
  get searched() {
    return Math.max(0, this.columns.length - this.store.get("prefix").length);
  }

  /** Search one word further; after a translation that is done, begin with its first word. */
  step() {
    const done = this.current?.search.done && this.columns.length >= this.current.search.columns.length;
    if (done) this.store.set({ prefix: [], steps: 1, ...UNCHOSEN });
    else this.store.set({ steps: this.searched + 1, ...UNCHOSEN });
  }

  toggle() {
    this.store.set({ steps: this.growing ? this.searched : this.described.max_tokens, ...UNCHOSEN });
  }

  back() {
    const { store, searched } = this;
    const prefix = store.get("prefix");
    store.set({ steps: Math.max(0, searched - 1), prefix: searched ? prefix : prefix.slice(0, -1), ...UNCHOSEN });
  }

  /** Put another token at the chosen place, and search on from there. @param {number} token */
  force(token) {
    if (!this.current) return;
    const { search, text, place } = this.current;
    const prefix = [...text.tokens.slice(0, place), token];
    const others = this.store.get("forced").filter((tokens) => String(tokens) !== String(prefix));
    const steps = search.done && this.columns.length === search.columns.length ? this.described.max_tokens : 0;
    this.store.set({ prefix, steps, forced: [...others, prefix].slice(-MAX_FORCED), ...UNCHOSEN });
  }

  /** Show what is chosen, one choice after the other: another one ends what is being done. */
  async refresh() {
    this.stale = true;
    if (this.working) return;
    this.working = true;
    while (this.stale && !this.frame.closed) {
      this.stale = false;
      await this.renew().catch((error) => this.frame.failed(error));
    }
    this.working = false;
  }

  async renew() {
    const { store } = this;
    if (this.sentence.value !== store.get("sentence")) this.sentence.value = store.get("sentence");
    for (const name of /** @type {const} */ (["width", "alpha"])) this.controls[name].show(store.get(name));
    const source = await this.readSource();
    const searched = source?.ids && (await this.search(source.ids));
    const current = searched && (await this.look(...searched));
    if (!current) return;
    this.current = current;
    this.announce(source.note);
    this.show(current, /** @type {number[]} */ (source.ids));
  }

  /** Read the sentence; null if something else is asked for by now, or Python could not read it. */
  async readSource() {
    const sentence = this.store.get("sentence");
    if (!(await this.source.learned(sentence, (...call) => this.learn(...call))) || this.stale) return null;
    const { latest } = this.source;
    const source = this.source.read(sentence);
    if (!source.ids && source !== latest) this.announce(source.note);
    return source;
  }

  /**
   * Search, and where heads are off, also with all on; null if something else is asked for by now.
   * @param {number[]} ids
   * @returns {Promise<[search: Search, baseline: Search | null] | null>}
   */
  async search(ids) {
    const search = this.searches.of(ids, this.edits);
    const baseline = this.edits.length ? this.searches.of(ids, []) : null;
    if (!(await this.forward(search)) || (baseline && !(await this.forward(baseline, false)))) return null;
    return [search, baseline];
  }

  /**
   * Read the chosen text of a search; null if something else is asked for by now.
   * @param {Search} search
   * @param {Search | null} baseline
   * @returns {Promise<Current | null>}
   */
  async look(search, baseline) {
    const { chosen } = this;
    const text = chosen ? this.columns[chosen[0]][chosen[1]] : NO_TEXT;
    const ended = text.ended || text.tokens.length >= this.described.max_tokens;
    const read = ended ? text.tokens.slice(0, -1) : text.tokens;
    const answer = await search.reader.reading(read);
    const base = baseline && (await baseline.reader.reading(read));
    if (!answer || (baseline && !base) || this.stale) return null;
    const place = Math.min(this.store.get("rows")[0] ?? Infinity, read.length);
    return { search, baseline, text, ended, read, answer, base, place };
  }

  /**
   * Search as far as is asked for, and show how the tree grows; false if something else is asked for by now.
   * @param {Search} search
   * @param {boolean} [visible]
   */
  async forward(search, visible = true) {
    const length = Math.min(this.described.max_tokens, search.prefix.length + this.store.get("steps"));
    const goesOn = () => search.columns.length < length && !search.done;
    const grow = (/** @type {boolean} */ growing) => {
      if (visible) this.grow(search.columns.slice(0, length), growing);
    };
    let lastDraw = performance.now();
    grow(goesOn());
    while (goesOn()) {
      if (!(await search.advance()) || this.stale) return (grow(false), false);
      grow(true);
      if (!visible || performance.now() - lastDraw < OFTEN_GROWN) continue;
      this.showTree();
      lastDraw = performance.now();
    }
    grow(false);
    return true;
  }

  /** @param {Beam[][]} columns @param {boolean} growing whether the search goes on */
  grow(columns, growing) {
    this.columns = columns;
    this.growing = growing;
    this.runButton.textContent = growing ? "■ Stop" : "▶ Translate";
  }

  /**
   * The text that is looked at: [column, rank], null before the first word. One that ended is where it did.
   * @returns {number[] | null}
   */
  get chosen() {
    const { columns } = this;
    let [column, rank] = this.store.get("node") ?? [columns.length - 1, 0];
    if (!columns[column]?.[rank]) [column, rank] = [columns.length - 1, 0];
    while (columns[column]?.[rank].over) [column, rank] = [column - 1, columns[column][rank].parent];
    return column < 0 ? null : [column, rank];
  }
}

const TRANSLATOR_KEYS = [
  ["Alt+S, Alt+R, Alt+B", "a step of the search, run or stop, a step back"],
  ["arrows, Enter", "in the translation: move, choose a place; in the tree: move, look at a text"],
  ["Enter", "on a word that could stand there: force it; on a head: switch it off"],
];

// A translator to question: a sentence is read, a search goes on or back, a word is forced, heads are switched off.

import { quoted } from "../base/pen.js";
import { NO_TEXT } from "./beams.js";
import { UNCHOSEN, TranslationStudio } from "./translation-studio.js";
import { Reader, Search } from "./beam-search.js";
import { translatorTries } from "./tries.js";

/** @import { Edit, ProgramNode } from "../types.d.ts" */
/** @typedef {{ sentence: string, ids: number[] | null, note: string }} Source a sentence as the encoder reads it */

const MAX_LETTERS = 4000; // letters that are looked at
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
    /** @type {Source | null} */
    this.source = null;
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

  /** Return the ids of the sentence, or null if it cannot be read, which is announced. */
  sourceIds() {
    const sentence = this.store.get("sentence");
    if (this.source?.sentence === sentence) return this.source.ids;
    /** @type {Source} */
    const source = { sentence, ids: null, note: "" };
    this.source = source;
    try {
      const { source_end, max_source } = this.described;
      const [vocab] = this.vocabularies;
      const ids = vocab.encode(sentence.slice(0, MAX_LETTERS));
      const maxTokens = (max_source ?? Infinity) - source_end.length;
      const unknown = ids.filter((id) => id === vocab.special.unknown).length;
      if (ids.length > maxTokens || sentence.length > MAX_LETTERS)
        source.note = `the sentence is longer than the model reads: its first ${Math.min(maxTokens, ids.length)} tokens are translated`;
      else if (unknown)
        source.note = `the vocabulary lacks ${unknown} of these words: the model reads ${quoted(vocab.words([vocab.special.unknown])[0])} for each`;
      const read = [...ids.slice(0, maxTokens), ...source_end];
      if (read.length) source.ids = read;
      else this.announce("type a sentence to translate");
    } catch (error) {
      this.announce(/** @type {Error} */ (error).message);
    }
    return source.ids;
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
    const learned = await this.learn(this.vocabularies[0], [store.get("sentence").slice(0, MAX_LETTERS)]);
    if (learned) this.source = null;
    const ids = learned === null || this.stale ? null : this.sourceIds();
    if (!ids) return;
    const search = this.searchOf(ids, this.edits);
    const baseline = this.edits.length ? this.searchOf(ids, []) : null;
    if (!(await this.forward(search)) || (baseline && !(await this.forward(baseline, false)))) return;
    const chosen = this.chosen;
    const text = chosen ? this.columns[chosen[0]][chosen[1]] : NO_TEXT;
    const ended = text.ended || text.tokens.length >= this.described.max_tokens;
    const read = ended ? text.tokens.slice(0, -1) : text.tokens;
    const answer = await search.reader.reading(read);
    const base = baseline && (await baseline.reader.reading(read));
    if (!answer || (baseline && !base) || this.stale) return;
    const place = Math.min(store.get("rows")[0] ?? Infinity, read.length);
    const current = { search, baseline, text, ended, read, answer, base, place };
    this.current = current;
    this.announce(this.source?.note ?? "");
    this.show(current, ids);
  }

  /** @param {number[]} ids @param {Edit[]} edits */
  searchOf(ids, edits) {
    const { begin, end, suppressed, max_tokens, programs } = this.described;
    const { store } = this;
    const [width, alpha, prefix] = [store.get("width"), store.get("alpha"), store.get("prefix")];
    const reader = this.readers.getOrMake(JSON.stringify([ids, edits]), () => {
      /** @param {string} program */
      const within = (program) => {
        /** @type {ProgramNode[] | undefined} */
        const nodes = programs?.[program].nodes;
        return edits.filter(({ site }) => !nodes || nodes.some(({ pattern }) => pattern === site));
      };
      /** @type {Reader["ask"]} */
      const ask = (program, inputs, options) =>
        this.run("search", program, inputs, { ...options, edits: within(program) });
      return new Reader(ask, ids, begin, this.vocab.size);
    });
    const key = JSON.stringify([ids, edits, width, alpha, prefix]);
    return this.searches.getOrMake(
      key,
      () => new Search(reader, prefix, { width, alpha, end, suppressed, max_tokens }),
    );
  }

  /**
   * Search as far as is asked for, and show how the tree grows; false if something else is asked for by now.
   * @param {Search} search
   * @param {boolean} [seen]
   */
  async forward(search, seen = true) {
    const length = Math.min(this.described.max_tokens, search.prefix.length + this.store.get("steps"));
    let lastDraw = performance.now();
    const grow = (/** @type {boolean} */ growing) => {
      if (!seen) return;
      this.columns = search.columns.slice(0, length);
      this.growing = growing;
      this.runButton.textContent = growing ? "■ Stop" : "▶ Translate";
    };
    grow(search.columns.length < length && !search.done);
    while (search.columns.length < length && !search.done) {
      if (!(await search.advance()) || this.stale) return (grow(false), false);
      grow(true);
      if (!seen || performance.now() - lastDraw < OFTEN_GROWN) continue;
      this.showTree();
      lastDraw = performance.now();
    }
    grow(false);
    return true;
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

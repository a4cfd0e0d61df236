// A translator to question: a sentence is read, a search goes on or back, a word is forced, heads are switched off.

import { quoted } from "../base/pen.js";
import { NO_TEXT } from "./beams.js";
import { UNCHOSEN, TranslationStudio } from "./translation-studio.js";
import { Reader, Search } from "./search.js";

const SENTENCE_LETTERS = 4000; // letters that are looked at
const FORCED_KEPT = 12; // forced beginnings that are kept
const OFTEN_GROWN = 50; // milliseconds between two drawings of a search that goes on
const SEARCHES_KEPT = 8; // readers, and searches

export class Translator extends TranslationStudio {
  get keys() {
    return TRANSLATOR_KEYS;
  }

  // How many steps of the search are behind those that were forced.
  get searched() {
    return Math.max(0, this.columns.length - this.store.get("prefix").length);
  }

  // One word more; after a translation that is done, its first word.
  step() {
    const done = this.shown?.search.done && this.columns.length >= this.shown.search.columns.length;
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

  // Another token at the chosen place, and on from there.
  force(token) {
    const { search, text, place } = this.shown;
    const prefix = [...text.tokens.slice(0, place), token];
    const others = this.store.get("forced").filter((one) => String(one) !== String(prefix));
    const steps = search.done && this.columns.length === search.columns.length ? this.described.max_tokens : 0;
    this.store.set({ prefix, steps, forced: [...others, prefix].slice(-FORCED_KEPT), ...UNCHOSEN });
  }

  // The ids of the sentence, or null if it cannot be read, which is said.
  sourceIds() {
    const sentence = this.store.get("sentence");
    if (this.heard?.sentence === sentence) return this.heard.ids;
    this.heard = { sentence, ids: null, said: "" };
    try {
      const { source_end, max_source } = this.described;
      const [vocab] = this.vocabularies;
      const ids = vocab.encode(sentence.slice(0, SENTENCE_LETTERS));
      const room = (max_source ?? Infinity) - source_end.length;
      const unknown = ids.filter((id) => id === vocab.special.unknown).length;
      if (ids.length > room || sentence.length > SENTENCE_LETTERS)
        this.heard.said = `the sentence is longer than the model reads: its first ${Math.min(room, ids.length)} tokens are translated`;
      else if (unknown)
        this.heard.said = `the vocabulary lacks ${unknown} of these words: the model reads ${quoted(vocab.words([vocab.special.unknown])[0])} for each`;
      const read = [...ids.slice(0, room), ...source_end];
      if (read.length) this.heard.ids = read;
      else this.announce("type a sentence to translate");
    } catch (error) {
      this.announce(error.message);
    }
    return this.heard.ids;
  }

  // One after the other: what is asked meanwhile ends what is being done.
  async refresh() {
    this.wanted = true;
    if (this.working) return;
    this.working = true;
    while (this.wanted && !this.frame.closed) {
      this.wanted = false;
      await this.renew().catch((error) => this.frame.failed(error));
    }
    this.working = false;
  }

  async renew() {
    const { store } = this;
    if (this.sentence.value !== store.get("sentence")) this.sentence.value = store.get("sentence");
    for (const [name, control] of Object.entries(this.controls)) control.show(store.get(name));
    const learned = await this.learn(this.vocabularies[0], [store.get("sentence").slice(0, SENTENCE_LETTERS)]);
    if (learned) this.heard = null;
    const ids = learned === null || this.wanted ? null : this.sourceIds();
    if (!ids) return;
    const search = this.searchOf(ids, this.edits);
    const whole = this.edits.length ? this.searchOf(ids, []) : null;
    if (!(await this.forward(search)) || (whole && !(await this.forward(whole, false)))) return;
    const chosen = this.chosen;
    const text = chosen ? this.columns[chosen[0]][chosen[1]] : NO_TEXT;
    const ended = text.ended || text.tokens.length >= this.described.max_tokens;
    const read = ended ? text.tokens.slice(0, -1) : text.tokens;
    const answer = await search.reader.reading(read);
    const base = whole && (await whole.reader.reading(read));
    if (!answer || (whole && !base) || this.wanted) return;
    const asked = store.get("rows")[0] ?? Infinity;
    this.shown = { search, whole, chosen, text, ended, read, answer, base, place: Math.min(asked, read.length) };
    this.announce(this.heard.said);
    this.show(ids);
  }

  searchOf(ids, edits) {
    const { begin, end, suppressed, max_tokens, programs } = this.described;
    const { width, alpha, prefix } = Object.fromEntries(
      ["width", "alpha", "prefix"].map((name) => [name, this.store.get(name)]),
    );
    const reader = rememberedIn(this.readers, JSON.stringify([ids, edits]), () => {
      const within = (program) =>
        edits.filter(({ site }) => !programs || programs[program].nodes.some(({ pattern }) => pattern === site));
      const ask = (program, inputs, options) =>
        this.run("search", program, inputs, { ...options, edits: within(program) });
      return new Reader(ask, ids, begin, this.vocabularies.at(-1).size);
    });
    const key = JSON.stringify([ids, edits, width, alpha, prefix]);
    return rememberedIn(
      this.searches,
      key,
      () => new Search(reader, prefix, { width, alpha, end, suppressed, max_tokens }),
    );
  }

  // The search goes as far as it is wanted, and is seen to grow; false if something else is wanted by now.
  async forward(search, seen = true) {
    const wanted = Math.min(this.described.max_tokens, search.prefix.length + this.store.get("steps"));
    let drawn = performance.now();
    const grow = (growing) => {
      if (!seen) return;
      this.columns = search.columns.slice(0, wanted);
      this.growing = growing;
      this.running.textContent = growing ? "■ Stop" : "▶ Translate";
    };
    grow(search.columns.length < wanted && !search.done);
    while (search.columns.length < wanted && !search.done) {
      if (!(await search.advance()) || this.wanted) return (grow(false), false);
      grow(true);
      if (!seen || performance.now() - drawn < OFTEN_GROWN) continue;
      this.showTree();
      drawn = performance.now();
    }
    grow(false);
    return true;
  }

  // The text that is looked at: [column, rank], null before the first word. One that ended is where it did.
  get chosen() {
    const { columns } = this;
    let [column, rank] = this.store.get("node") ?? [columns.length - 1, 0];
    if (!columns[column]?.[rank]) [column, rank] = [columns.length - 1, 0];
    while (columns[column]?.[rank].over) [column, rank] = [column - 1, columns[column][rank].parent];
    return column < 0 ? null : [column, rank];
  }
}

// What stands in a map under this name, made if it is not there; the one longest unused goes.
function rememberedIn(map, key, make) {
  const found = map.get(key) ?? make();
  map.delete(key);
  map.set(key, found);
  if (map.size > SEARCHES_KEPT) map.delete(map.keys().next().value);
  return found;
}

const TRANSLATOR_KEYS = [
  ["Alt+S, Alt+R, Alt+B", "a step of the search, run or stop, a step back"],
  ["arrows, Enter", "in the translation: move, choose a place; in the tree: move, look at a text"],
  ["Enter", "on a word that could stand there: force it; on a head: switch it off"],
];

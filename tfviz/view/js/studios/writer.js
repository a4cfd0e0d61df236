// A language model to question: a text that is edited where it stands and written on, the next token to choose, heads to
// look at and to switch off.

import { activeIn, h, slider } from "../base/elements.js";
import { counted, fixed } from "../base/numbers.js";
import { label } from "../base/pen.js";
import { Branches } from "./branches.js";
import { tokenCosts } from "./logits.js";
import { button } from "./button.js";
import { travel } from "./motion.js";
import { NextTokens } from "./next-tokens.js";
import { Prompt } from "./prompt.js";
import { cutTo, lastOf, readingKey, LanguageModelReader } from "./language-model-reader.js";
import { sampleFrom, probabilities, MersenneTwister } from "./sampler.js";
import { shortcuts } from "./shortcuts.js";
import { Studio } from "./studio.js";
import { TextEditor } from "./text-editor.js";
import { TokenTree } from "./token-tree.js";
import { writerTries } from "./tries.js";
import { piecesOf } from "./word-segments.js";

/** @import { WriteDocument } from "../documents.d.ts" */
/** @import { Drawing, Edit } from "../types.d.ts" */
/** @import { Place } from "./model-pane.js" */
/** @import { Answer } from "./language-model-reader.js" */
/**
 * @typedef {{ ids: number[], start: number, prompt: number, key: string, off: number }} ModelInput what the model reads,
 *   from a token of the text on; tokens of the prompt; heads that are off
 */
/** @typedef {{ text: string, count: number, word?: string, written?: boolean }} Piece of the text, with its tokens */
/** @typedef {Piece & { first: number, last: number }} PlacedPiece and their places among those that the model reads */

const COST = (/** @type {string} */ unit) =>
  `of the whole text so far: the mean of −ln(the probability that the model gave each ${unit}); less is better`;
const SLOW = 400; // milliseconds of a reading

/** @extends {Studio<WriteDocument>} */
export class Writer extends Studio {
  get keys() {
    return WRITER_KEYS;
  }

  get cleared() {
    return { tree: [], node: -1 };
  }

  build() {
    const { store, described } = this;
    /** @type {TokenTree} */
    this.path = new TokenTree(store);
    /** @type {Prompt} */
    this.prompt = new Prompt(this.vocab, described.context);
    /** @type {LanguageModelReader} */
    this.reader = new LanguageModelReader((...call) => this.run(...call), {
      steps: Boolean(described.programs?.step),
      context: described.context,
      tokens: this.vocab.size,
    });
    /** @type {Answer | null} of what is shown */
    this.answer = null;
    /** @type {ModelInput | null} what it is the answer to */
    this.answerInput = null;
    /** @type {Answer | null} whose maps are shown */
    this.mappedAnswer = null;
    /** @type {{ prompt: string, pieces: Piece[] } | null} */
    this.promptCache = null;
    /** @type {{ seed: number, twister: MersenneTwister, numbers: number[] } | null} the numbers drawn so far */
    this.draws = null;
    /** @type {Promise<boolean>} */
    this.writing = Promise.resolve(false);
    /** @type {boolean} whether it writes on; and whether a token is being written */
    this.running = false;
    /** @type {boolean} */
    this.busy = false;
    /** @type {number} milliseconds of the last reading */
    this.reading = 0;
    /** @type {number | null} the piece that is pointed at */
    this.pointed = null;
    /** @type {Map<string, number | null>} what the text costs without a head; null: it is asked for */
    this.costsWithout = new Map();
    /** @type {TextEditor} */
    this.editor = new TextEditor("The text: type anywhere in it", {
      typed: (text) => this.begin(text),
      point: (place) => this.point(place),
    });
    /** @type {HTMLElement} */
    this.runButton = button("▶ Write on", () => this.toggle(), { title: "until stopped (Alt+R)", class: "go" });
    const step = button(`One ${this.unit}`, () => this.write(), { title: `write one ${this.unit} (Alt+S)` });
    const back = button("Back", () => this.path.back(), { title: `take the last ${this.unit} back (Alt+B)` });
    /** @type {HTMLElement} */
    this.cost = h("small", { class: "cost", title: COST(this.unit) });
    const textOf = (/** @type {number[]} */ tokens) =>
      tokens.map((id) => this.piece(id)).join(this.spaceSeparated ? " " : "");
    /** @type {Branches} */
    this.branches = new Branches(this.path, textOf, (node) => store.set({ node, rows: [], cols: [] }));
    /** @type {NextTokens} */
    this.next = new NextTokens(this.vocab, store, (id) => this.take(id));
    const temperature = slider("Temperature", {
      min: 0,
      max: Math.max(3, store.get("temperature")),
      step: 0.05,
      value: store.get("temperature"),
      text: (value) => fixed(value, 2),
      choose: (value) => store.set({ temperature: value }),
    });
    /** @type {{ show(temperature: number): void }} */
    this.temperature = temperature;
    /** @type {HTMLInputElement} */
    this.seed = h("input", { type: "number", min: 0, max: Number.MAX_SAFE_INTEGER, onchange: () => this.reseed() });
    const more = h("label", { class: "seed" }, h("span", {}, "Seed"), this.seed);
    this.compose({
      textTitle: "The text",
      text: [
        this.editor.element,
        h("div", { class: "row" }, this.runButton, step, back, this.cost),
        this.branches.element,
      ],
      saysTitle: "What comes next",
      says: [this.next.element, temperature.element, h("div", { class: "more" }, this.next.cutBy, more)],
    });
    this.showTries(writerTries(this));
    this.frame.body.addEventListener(
      "keydown",
      shortcuts({
        s: ({ repeat }) => (repeat && this.busy) || this.write(),
        r: ({ repeat }) => repeat || this.toggle(),
        b: ({ repeat }) => repeat || this.path.back(),
      }),
    );
  }

  closeEngine() {
    super.closeEngine();
    this.reader.cachedAnswer = null;
  }

  /** Begin with another text: all of it is the prompt. @param {string} prompt */
  begin(prompt) {
    this.running = false;
    this.store.set({ prompt, tree: [], node: -1, rows: [], cols: [] });
  }

  reseed() {
    const seed = Number(this.seed.value);
    this.store.set({ seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : 0 });
    this.seed.value = String(this.store.get("seed"));
  }

  /** Write a token that the reader chose, and show how it moves from the bars into the text. @param {number} id */
  take(id) {
    const pressed = this.next.buttonOf(id);
    const text = this.piece(id);
    this.path.take(id);
    travel(this.frame.body, pressed, this.editor.element, text);
  }

  /** Point at a token: its row shades the text and is marked in each map. @param {number | null} place */
  point(place) {
    if (place === this.pointed) return;
    this.pointed = place;
    if (!this.answer) return;
    this.showText();
    this.showModel();
  }

  get read() {
    return this.prompt.read(this.store.get("prompt"));
  }

  /**
   * What the model reads now: all, or past its context the newer half, as `generate.ids` does it. Null without a
   * prompt.
   * @returns {ModelInput | null}
   */
  get currentInput() {
    const prompt = this.read.ids;
    if (!prompt) return null;
    const ids = [...prompt, ...this.path.tokens];
    const { context } = this.described;
    let start = 0;
    for (let length = prompt.length; length <= ids.length; length++)
      if (length - start > context) start = length - Math.max(1, Math.floor(context / 2));
    return {
      ids: ids.slice(start),
      start,
      prompt: prompt.length,
      key: readingKey(ids.slice(start), this.edits),
      off: this.edits.length,
    };
  }

  async refresh() {
    const { store } = this;
    this.temperature.show(store.get("temperature"));
    if (activeIn(this.seed) !== this.seed) this.seed.value = String(store.get("seed"));
    const prompt = store.get("prompt");
    if (this.vocab.learn && !(await this.prompt.learned(prompt, (...call) => this.learn(...call)))) return;
    if (prompt !== store.get("prompt")) return;
    this.showText();
    const { currentInput: input } = this;
    if (!input) return void this.announce(this.read.error ?? "");
    if (this.answer?.key !== input.key) {
      const started = performance.now();
      const answer = await this.reader.read(input.ids, this.edits);
      this.reading = performance.now() - started;
      if (!answer || answer.turn < (this.answer?.turn ?? 0)) return;
      this.answer = answer;
      this.answerInput = input;
    }
    const { ids, cut } = this.read;
    const last = counted(ids?.length ?? 0, "token");
    this.announce(cut ? `the text is longer than the model reads: it goes on from its last ${last}` : "");
    try {
      if (this.answer) this.show(this.answer);
    } catch (error) {
      this.frame.failed(/** @type {Error} */ (error));
    }
  }

  /** @param {Answer} answer */
  show(answer) {
    this.next.show(answer);
    this.cost.textContent = this.costs(answer);
    this.branches.show(this.store.get("node"));
    if (this.mappedAnswer !== answer) {
      const words = this.vocab.words(answer.ids);
      this.mappedAnswer = answer;
      this.costsWithout.clear();
      this.showMaps(answer.patterns, () => [words, words]);
    } else this.showModel();
    this.showText();
    this.frame.renewTable();
  }

  /**
   * The text as pieces, each with the places of its tokens among those that the model reads.
   * @returns {PlacedPiece[]}
   */
  get pieces() {
    const prompt = this.store.get("prompt");
    const promptCache =
      this.promptCache?.prompt === prompt ? this.promptCache : { prompt, pieces: this.promptPieces(prompt) };
    this.promptCache = promptCache;
    const written = this.path.tokens.map((id) => ({
      text: (this.spaceSeparated ? " " : "") + (this.vocab.decode([id]) || this.piece(id)),
      word: this.vocab.words([id])[0],
      count: 1,
      written: true,
    }));
    /** @type {Piece[]} */
    const pieces = [...promptCache.pieces, ...written];
    const all = pieces.reduce((sum, { count }) => sum + count, 0);
    let at = (this.answer?.ids.length ?? all) - all; // below 0: before what the model reads
    return pieces.map((piece) => {
      const first = at;
      at += piece.count;
      return { ...piece, first, last: at - 1 };
    });
  }

  /** @param {string} prompt @returns {Piece[]} */
  promptPieces(prompt) {
    try {
      return piecesOf(this.vocab, prompt);
    } catch {
      return [{ text: prompt, count: this.read.ids?.length ?? 0 }];
    }
  }

  /** The token that the reader points at or, as long as there is none, the last. @returns {number | null} */
  get row() {
    const { answer, pieces } = this;
    if (!answer) return null;
    const last = pieces[this.pointed ?? -1]?.last ?? answer.ids.length - 1;
    return last >= 0 && last < answer.ids.length ? last : null;
  }

  showText() {
    const { pieces, row, answer } = this;
    const current = answer && this.currentInput && this.answerInput?.key === this.currentInput.key;
    const grid =
      current && this.groups.length && !this.isOff(this.selectedHead) ? this.gridOf(this.selectedHead) : null;
    const shade = (/** @type {number} */ place) => {
      const { first, last } = pieces[place];
      if (!grid || row === null || last < 0 || first > row || last >= grid.cols.length) return null;
      return this.shadeOf(grid, row, Math.max(0, first), Math.min(row, last));
    };
    const tokens = pieces.map(({ text, written, last, word }) => ({
      text,
      sign: signOf(text, word),
      kind: [written && "written", answer && last < 0 && "past"].filter(Boolean).join(" "),
    }));
    const longer = tokens.length > this.editor.tokens.length;
    this.editor.show(
      tokens,
      shade,
      current && row !== null ? pieces.findIndex(({ first, last }) => first <= row && row <= last) : null,
    );
    if (longer && this.running) this.editor.follow();
  }

  showFrom() {
    const { row } = this;
    if (!this.groups.length || !this.answer || row === null) return;
    const { part, layer, head } = this.selectedHead;
    const [word] = this.vocab.words([this.answer.ids[row]]);
    this.sourceLabel.textContent = `from “${word}”, layer ${layer} head ${head}`;
    this.sourceLabel.title = this.nameOf({ part, layer, head });
  }

  /** @returns {number[]} */
  idsOf() {
    return this.answer?.ids ?? [];
  }

  /**
   * Return the mean cost in nats a token, of a text of two tokens or more.
   * @param {Float32Array} logits
   * @param {Pick<Answer, "ids" | "size">} answer
   */
  meanCost(logits, { ids, size }) {
    return tokenCosts(logits, ids, size).reduce((a, b) => a + b) / (ids.length - 1);
  }

  /** Describe what the text costs. @param {Answer} answer */
  costs(answer) {
    const { ids, logits, unedited } = answer;
    if (ids.length < 2) return "";
    const now = (answer.cost ??= this.meanCost(logits, answer));
    const cost = `${fixed(now, 2)} nats a ${this.unit}`;
    if (!unedited) return cost;
    const before = (answer.before ??= this.meanCost(unedited, answer));
    return `${cost} without ${counted(this.answerInput?.off ?? 0, "head")}, ${fixed(before, 2)} with all`;
  }

  /** Describe what the text costs without this head; asked for once, and shown when it comes. @param {Place} at */
  worth(at) {
    const { answer } = this;
    if (!answer || answer.ids.length < 2 || this.options.engine) return ""; // of a kernel each answer takes its time
    const site = this.groups[at.part].sites[at.layer];
    const key = JSON.stringify([site, at.head, answer.key]);
    const known = this.costsWithout.get(key);
    const now = (answer.cost ??= this.meanCost(answer.logits, answer));
    if (known === undefined) {
      const large = this.reading > SLOW; // to read all again would keep the reader waiting
      if (!this.running && !large) this.askWithout(key, site, at.head, answer);
      return "";
    }
    if (known === null) return "";
    const words = (/** @type {number} */ cost) => `${fixed(cost, 2)} nats a ${this.unit}`;
    return this.isOff(at)
      ? `The text costs ${words(now)}; with this head on ${fixed(known, 2)}.`
      : `Without it the text costs ${words(known)} instead of ${fixed(now, 2)}.`;
  }

  /** @param {string} key @param {string} site @param {number} head @param {Answer} answer */
  async askWithout(key, site, head, answer) {
    this.costsWithout.set(key, null);
    const { ids, size } = answer;
    /** @type {Edit[]} */
    const off = this.edits.filter((edit) => edit.site !== site || edit.head !== head);
    /** @type {Edit[]} */
    const edits = off.length < this.edits.length ? off : [...off, { site, head, do: "zero" }];
    const result = await this.run("worth", "read", { ids: { shape: [1, ids.length], data: ids } }, { edits });
    if (!result || this.answer?.ids !== ids || result.outputs.logits.shape.at(-2) < ids.length) return;
    this.costsWithout.set(key, this.meanCost(cutTo(result.outputs.logits, size).data, answer));
    this.showSentence();
  }

  /** Write one token more, after those that are asked for already. Return whether it was written. */
  write() {
    this.writing = this.writing.then(() => this.writeToken());
    return this.writing;
  }

  /** Draw a token as `generate.ids` does, and write it, unless the reader changes something meanwhile. */
  async writeToken() {
    this.busy = true;
    try {
      if (this.answer?.key !== this.currentInput?.key) await this.refresh();
      const { answer, currentInput: input } = this;
      if (!input || answer?.key !== input.key) return false;
      const logits = lastOf(answer.logits, answer.size);
      const shares = probabilities(logits, this.next.sampler);
      const id =
        this.store.get("temperature") === 0
          ? shares.indexOf(1)
          : sampleFrom(shares, this.number(this.path.tokens.length));
      const next = await this.reader.extend(answer, id);
      if (this.currentInput?.key !== input.key) return false;
      if (this.running) this.path.take(id);
      else this.take(id);
      if (next && next.key === this.currentInput?.key) this.answer = next;
      this.answerInput = this.currentInput;
      return true;
    } catch (error) {
      this.frame.failed(/** @type {Error} */ (error));
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** Return the number drawn for the n-th token written: always the same one for a seed. @param {number} place */
  number(place) {
    const seed = this.store.get("seed");
    const draws = this.draws?.seed === seed ? this.draws : { seed, twister: new MersenneTwister(seed), numbers: [] };
    this.draws = draws;
    const { twister, numbers } = draws;
    while (numbers.length <= place) numbers.push(twister.number());
    return numbers[place];
  }

  /** Write on, or stop. All that one run writes is one step for Undo. */
  async toggle(most = this.described.max_tokens) {
    this.running = !this.running;
    if (!this.running) return;
    this.runButton.textContent = "■ Stop";
    await this.history.group(() => this.writeOn(most));
    this.running = false;
    this.runButton.textContent = "▶ Write on";
    this.showModel();
  }

  /** @param {number} most tokens */
  async writeOn(most) {
    const first = this.path.tokens.length;
    const end = first + most;
    while (this.running && !this.frame.closed && this.path.tokens.length < end) {
      const before = this.currentInput?.key;
      if (!(await this.write()) && this.currentInput?.key === before) break; // it cannot go on, and has said why
      await new Promise((done) => requestAnimationFrame(done));
    }
    if (most === this.described.max_tokens && this.path.tokens.length >= end)
      this.announce(`${counted(most, this.unit)} are written, and this stops here; Write on goes on`);
  }

  panels() {
    return this.answer ? this.next.panels : null;
  }

  /** @returns {Drawing} */
  get drawing() {
    return this.next.drawing(this.frame.theme);
  }
}

/**
 * The sign for a piece of text that cannot be seen as it is, or nothing.
 * @param {string} text
 * @param {string} word the vocabulary's own sign for it
 */
function signOf(text, word = text) {
  if (text.includes("\n")) return "⏎";
  if (text.includes("\ufffd")) return label(word, 8);
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}]/u.test(text) && !/\p{L}|\p{N}|\p{Emoji}/u.test(text) ? label(text, 8) : "";
}

const WRITER_KEYS = [
  ["Alt+R, Alt+S, Alt+B", "write on or stop, write one, take one back"],
  ["arrows in the text", "what the chosen head looks at from there"],
  ["arrows, Enter, x", "in the model: to another head, look at it, switch it off or on"],
  ["Enter", "on a next token: take it"],
  ["arrows", "on the dashed line: keep fewer or more"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
];

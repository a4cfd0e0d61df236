// A language model to question: a prompt to type, the next token to choose, heads to switch off.

import { h } from "../base/elements.js";
import { counted, fixed, withSign } from "../base/numbers.js";
import { Branches } from "./branches.js";
import { Knobs } from "./knobs.js";
import { NextTokens } from "./next-tokens.js";
import { TokenTree } from "./token-tree.js";
import { Prompt } from "./prompt.js";
import { lastOf, readingKey, TextReader } from "./reading.js";
import { costs, sampleFrom, probabilities, MersenneTwister } from "./sampler.js";
import { Studio } from "./studio.js";
import { TokenText } from "./token-text.js";

export class Writer extends Studio {
  get keys() {
    return WRITER_KEYS;
  }

  build() {
    const { store, frame, described } = this;
    this.path = new TokenTree(store);
    this.typed = new Prompt(this.vocab, described.context);
    this.reader = new TextReader((...asked) => this.run(...asked), {
      steps: Boolean(described.programs?.step),
      context: described.context,
      tokens: this.vocab.size,
    });
    this.writing = Promise.resolve(false);
    this.prompt = h("textarea", {
      rows: 2,
      dir: "auto",
      spellcheck: false,
      oninput: () => this.begin(this.prompt.value),
    });
    this.knobs = new Knobs(store, this.vocab.size);
    this.seed = h("input", { type: "number", min: 0, max: Number.MAX_SAFE_INTEGER, onchange: () => this.reseed() });
    const button = (text, title, onclick) => h("button", { type: "button", title, onclick }, text);
    this.runs = button("Run", "write on until stopped (Alt+R)", () => this.toggle());
    const step = button("Step", "write one token (Alt+S)", () => this.write());
    const back = button("Back", "take the last token back (Alt+B)", () => this.path.back());
    this.text = new TokenText("the text: choose a token", (place) => this.choose(place));
    this.next = new NextTokens(this.vocab, (id) => this.path.take(id));
    const said = (tokens) => tokens.map((id) => this.piece(id)).join(this.apart ? " " : "");
    this.branches = new Branches(this.path, said, (node) => store.set({ node, rows: [], cols: [] }));
    this.cost = h("p", { class: "cost" });
    frame.body.append(
      h("label", { class: "prompt" }, h("span", {}, "Prompt"), this.prompt),
      h(
        "div",
        { class: "controls" },
        h("span", { class: "steps", role: "group", "aria-label": "Write" }, step, this.runs, back),
        ...this.knobs.elements,
        h("label", { class: "seed" }, h("span", {}, "Seed"), this.seed),
      ),
    );
    const left = h("div", {}, this.text.element, this.cost, this.branches.element);
    frame.stage(h("div", { class: "stage desk" }, left, this.next.element, this.chips, this.inner), "");
    frame.body.addEventListener("keydown", (event) => this.key(event));
  }

  rest() {
    super.rest();
    this.reader.kept = null;
  }

  // By the key's place where Alt makes another letter of it, as on a Mac.
  key(event) {
    const act =
      event.altKey &&
      WRITER_ACTS.find(([letter]) => event.key.toLowerCase() === letter || event.code === `Key${letter.toUpperCase()}`);
    if (!act) return;
    if (!event.repeat || (act[0] === "s" && !this.busy)) act[1](this);
    event.preventDefault();
    event.stopPropagation();
  }

  // Another prompt: what was written goes with the old one.
  begin(prompt) {
    this.running = false;
    this.store.set({ prompt, tree: [], node: -1, rows: [], cols: [] });
  }

  reseed() {
    const seed = Number(this.seed.value);
    this.store.set({ seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : 0 });
    this.seed.value = this.store.get("seed");
  }

  // A token's row of attention is what it looked at.
  choose(place) {
    const [now] = this.store.get("rows");
    const mode = this.store.get("mode") === "sheet" ? "words" : this.store.get("mode");
    this.store.set(now === place ? { rows: [] } : { rows: [place], mode, direction: "at" });
  }

  get read() {
    return this.typed.read(this.store.get("prompt"));
  }

  // What the model sees now: all, or past its context the newer half, as `generate.ids` does it. Null without a prompt.
  get seen() {
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
    if (this.prompt.value !== store.get("prompt")) this.prompt.value = store.get("prompt");
    this.knobs.show();
    if (this.seed.getRootNode().activeElement !== this.seed) this.seed.value = store.get("seed");
    this.markChips();
    const prompt = store.get("prompt");
    if (this.vocab.learn && !(await this.typed.learned(prompt, (...given) => this.learn(...given)))) return undefined;
    if (prompt !== store.get("prompt")) return undefined;
    const { seen } = this;
    if (!seen) return void this.announce(this.read.error);
    if (this.answer?.key !== seen.key) {
      const answer = await this.reader.read(seen.ids, this.edits);
      if (!answer || answer.turn < this.answer?.turn) return undefined;
      this.answer = answer;
      this.shown = seen;
    }
    this.announce(
      this.read.cut
        ? `the prompt is longer than the model reads: these are its last ${counted(this.read.ids.length, "token")}`
        : "",
    );
    try {
      this.show();
    } catch (error) {
      this.frame.failed(error);
    }
    return undefined;
  }

  show() {
    const { answer, shown } = this;
    const { start, prompt } = shown;
    const tokens = answer.ids.map((id, i) => ({ text: this.piece(id), fresh: i + start >= prompt }));
    this.text.show(tokens, this.store.get("rows")[0], this.apart);
    this.next.show(answer, this.knobs.sampler);
    this.cost.textContent = this.costs(answer);
    this.branches.show(this.store.get("node"));
    if (this.mapped !== answer) {
      const words = this.vocab.words(answer.ids);
      this.showMaps(answer.patterns, () => [words, words]);
    }
    this.mapped = answer;
    this.frame.renewTable();
  }

  costs(answer) {
    const { ids, logits, whole, size } = answer;
    if (ids.length < 2) return "";
    const mean = (given) => costs(given, ids, size).reduce((a, b) => a + b) / (ids.length - 1);
    const now = (answer.cost ??= mean(logits));
    const said = `This text costs ${fixed(now, 2)} nats a token`;
    if (!whole) return `${said}.`;
    const before = (answer.before ??= mean(whole));
    const { off } = this.shown;
    return `${said} without ${counted(off, "head")}; ${fixed(before, 2)} with all (${withSign(now - before)}).`;
  }

  // One token more, after those that are asked for already; whether it was written.
  write() {
    this.writing = this.writing.then(() => this.one());
    return this.writing;
  }

  // Drawn as `generate.ids` draws it. What the reader changes meanwhile goes first: then nothing is written.
  async one() {
    this.busy = true;
    try {
      if (this.answer?.key !== this.seen?.key) await this.refresh();
      const { answer, seen } = this;
      if (!seen || answer?.key !== seen.key) return false;
      const logits = lastOf(answer.logits, answer.size);
      const shares = probabilities(logits, this.knobs.sampler);
      const id =
        this.store.get("temperature") === 0
          ? shares.indexOf(1)
          : sampleFrom(shares, this.number(this.path.tokens.length));
      const next = await this.reader.further(answer, id);
      if (this.seen?.key !== seen.key) return false;
      this.path.take(id);
      if (next?.key === this.seen.key) this.answer = next;
      this.shown = this.seen;
      return true;
    } catch (error) {
      this.frame.failed(error);
      return false;
    } finally {
      this.busy = false;
    }
  }

  // The number drawn for the n-th token written: always the same one for a seed.
  number(place) {
    const seed = this.store.get("seed");
    if (this.drawn?.seed !== seed) this.drawn = { seed, twister: new MersenneTwister(seed), numbers: [] };
    const { twister, numbers } = this.drawn;
    while (numbers.length <= place) numbers.push(twister.number());
    return numbers[place];
  }

  async toggle() {
    this.running = !this.running;
    this.runs.textContent = this.running ? "Stop" : "Run";
    if (!this.running) return;
    const { max_tokens } = this.described;
    while (this.running && !this.frame.closed && this.path.tokens.length < max_tokens) {
      const before = this.seen?.key;
      if (!(await this.write()) && this.seen?.key === before) break; // it cannot go on, and has said why
      await new Promise((done) => requestAnimationFrame(done));
    }
    if (this.path.tokens.length >= max_tokens)
      this.announce(`${counted(max_tokens, "token")} are written, and Run stops here; Step goes on`);
    this.running = false;
    this.runs.textContent = "Run";
  }

  panels() {
    return this.answer ? this.next.panels : null;
  }

  get drawing() {
    return this.next.drawing(this.frame.theme);
  }
}

/** @type {[letter: string, act: (writer: Writer) => any][]} */
const WRITER_ACTS = [
  ["s", (writer) => writer.write()],
  ["r", (writer) => writer.toggle()],
  ["b", (writer) => writer.path.back()],
];

const WRITER_KEYS = [
  ["Alt+S, Alt+R, Alt+B", "write a token, run or stop, take one back"],
  ["arrows, Enter", "in the text: move, see what a token looked at"],
  ["Enter", "on a next token: take it; on a head: switch it off"],
];

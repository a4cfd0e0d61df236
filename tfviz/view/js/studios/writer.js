// A language model to question: a prompt to type, the next token to choose, heads to switch off.

import { Grid, OPEN } from "../base/grid.js";
import { h, slider } from "../base/elements.js";
import { quoted, two } from "../base/pen.js";
import { table } from "../controls/table.js";
import { Path } from "./path.js";
import { costs, drawnFrom, probabilitiesOf, Twister } from "./sampler.js";
import { bars, percent, Studio } from "./studio.js";

const SHOWN = 12; // next tokens
const PROMPT = 4000; // letters of a prompt that are looked at
const CARRY = ["keys", "values"];

export class Writer extends Studio {
  get keys() {
    return WRITER_KEYS;
  }

  build() {
    const { store, frame } = this;
    const set = (name) => (value) => store.set({ [name]: value });
    const knob = (name, key, given) => slider(name, { value: store.get(key), choose: set(key), ...given });
    this.path = new Path(store);
    this.prompt = h("textarea", {
      rows: 2,
      dir: "auto",
      spellcheck: false,
      oninput: () => store.set({ prompt: this.prompt.value, tree: [], at: -1, rows: [], cols: [] }),
    });
    this.controls = {
      temperature: knob("Temperature", "temperature", { min: 0, max: 3, step: 0.05, text: (t) => t.toFixed(2) }),
      topK: knob("Top-k", "topK", { min: 0, max: Math.min(50, this.vocab.size), text: (k) => (k ? String(k) : "all") }),
      topP: knob("Top-p", "topP", { min: 0.05, max: 1, step: 0.05, text: (p) => (p < 1 ? p.toFixed(2) : "all") }),
    };
    this.seed = h("input", { type: "number", min: 0, max: 4294967295, value: store.get("seed"), onchange: () => this.reseed() });
    const button = (text, title, onclick) => h("button", { type: "button", title, onclick }, text);
    this.runs = button("Run", "write on until stopped (Alt+R)", () => this.toggle());
    this.step = button("Step", "write one token (Alt+S)", () => this.write());
    this.back = button("Back", "take the last token back (Alt+B)", () => this.path.back());
    this.text = h("p", { class: "sentence written", role: "listbox", "aria-label": "the text: choose a token", dir: "auto", tabIndex: -1 });
    this.next = h("div", { class: "shares", role: "group", "aria-label": "Next token: press one to take it" });
    this.tried = h("div", { class: "branches", role: "group", "aria-label": "Texts written so far" });
    this.cost = h("p", { class: "cost" });
    frame.body.append(
      h("label", { class: "prompt" }, h("span", {}, "Prompt"), this.prompt),
      h(
        "div",
        { class: "controls" },
        h("span", { class: "steps", role: "group", "aria-label": "Write" }, this.step, this.runs, this.back),
        ...Object.values(this.controls).map(({ element }) => element),
        h("label", { class: "seed" }, h("span", {}, "Seed"), this.seed),
      ),
    );
    frame.stage(h("div", { class: "stage desk" }, h("div", {}, this.text, this.cost, this.tried), this.next, this.chips, this.inner), "");
    frame.body.addEventListener("keydown", (event) => this.key(event));
    this.listen();
  }

  key(event) {
    const act = event.altKey && { s: () => this.write(), r: () => this.toggle(), b: () => this.path.back() }[event.key.toLowerCase()];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  }

  reseed() {
    const seed = Math.floor(Number(this.seed.value));
    this.store.set({ seed: seed >= 0 && seed <= 4294967295 ? seed : 0 });
    this.seed.value = this.store.get("seed");
  }

  // The ids of the prompt, or null if it cannot be read, which is said.
  promptIds() {
    const prompt = this.store.get("prompt");
    if (this.read?.prompt === prompt) return this.read.ids;
    this.read = { prompt, ids: null };
    try {
      const { context } = this.described;
      const ids = this.vocab.encode(prompt.slice(0, PROMPT));
      this.read.cut = ids.length > context || prompt.length > PROMPT;
      if (ids.length) this.read.ids = ids.slice(-context);
      else this.says("type a prompt: the model goes on from it");
    } catch (error) {
      this.says(error.message);
    }
    return this.read.ids;
  }

  // What the model sees now: all, or past its context the newer half, as `generate.ids` does it.
  get seen() {
    const prompt = this.promptIds();
    if (!prompt) return null;
    const ids = [...prompt, ...this.path.tokens];
    const { context } = this.described;
    let start = 0;
    for (let length = prompt.length; length <= ids.length; length++)
      if (length - start > context) start = length - Math.max(1, Math.floor(context / 2));
    return { ids: ids.slice(start), start, prompt: prompt.length };
  }

  async refresh() {
    const { store } = this;
    if (this.prompt.value !== store.get("prompt")) this.prompt.value = store.get("prompt");
    for (const [name, control] of Object.entries(this.controls)) control.show(store.get(name));
    const { seen } = this;
    if (!seen) return;
    const key = this.keyOf(seen);
    if (this.answer?.key !== key) {
      const [answer, base] = await Promise.all([this.ask(seen, key), this.ask({ ...seen, whole: true }, key)]);
      if (!answer || !base) return;
      Object.assign(this, { answer, base, kept: this.edits.length ? null : answer });
      if (this.read.cut) this.says(`the prompt is longer than the model reads: its last ${seen.ids.length} tokens are shown`);
      else if (!this.running) this.says("");
    }
    this.show();
  }

  keyOf({ ids }) {
    return JSON.stringify([ids, this.store.get("off")]);
  }

  // The logits and maps of a text; `whole`: with all heads on.
  async ask({ ids, whole = false }, key) {
    const edits = whole ? [] : this.edits;
    if (whole && !this.edits.length) return this.mine(ids, key, () => this.pending);
    const inputs = { ids: { shape: [1, ids.length], data: ids } };
    const made = this.run(whole ? "whole" : "read", "read", inputs, { edits, watch: !whole, carry: whole ? [] : CARRY });
    if (!whole) this.pending = made;
    return this.mine(ids, key, () => made);
  }

  async mine(ids, key, made) {
    const result = await made();
    return result && { key, ids, logits: result.outputs.logits.data, patterns: result.patterns };
  }

  get vocabSize() {
    return this.answer.logits.length / this.answer.ids.length;
  }

  last({ logits }) {
    return logits.subarray(logits.length - this.vocabSize);
  }

  get sampler() {
    const [temperature, topK, topP] = ["temperature", "topK", "topP"].map((name) => this.store.get(name));
    return { temperature, topK: topK || null, topP: topP < 1 ? topP : null };
  }

  show() {
    const { answer } = this;
    this.showText();
    this.showNext();
    this.showCost();
    this.showBranches();
    const words = this.vocab.words(answer.ids);
    if (this.shownMaps !== answer) this.showMaps(answer.patterns, () => [words, words]);
    else this.showChips(this.shownParts ?? []);
    this.shownMaps = answer;
    this.frame.renewTable();
  }

  showMaps(patterns, words) {
    super.showMaps(patterns, words);
    this.shownParts = this.live.parts.map((part, i) => ({ ...part, sites: this.sitesOf(patterns)[i], maps: this.live.maps[i] }));
  }

  sitesOf(patterns) {
    const kinds = new Map();
    for (const site of Object.keys(patterns)) {
      const kind = site.replace(/\d+/g, "*");
      kinds.set(kind, [...(kinds.get(kind) ?? []), site]);
    }
    return [...kinds.values()];
  }

  // Every token a place to choose: its row of attention is what it looked at.
  showText() {
    const { ids } = this.answer;
    const { start, prompt } = this.seen;
    const [chosen] = this.store.get("rows");
    this.text.replaceChildren(
      ...ids.flatMap((id, i) => {
        const piece = this.piece(id);
        const classes = ["word", i + start >= prompt && "new", i === chosen && "picked"].filter(Boolean).join(" ");
        const span = h("span", { class: classes, role: "option", "aria-selected": String(i === chosen) }, piece.replace(/\n/g, "⏎"));
        span.dataset.place = i;
        span.tabIndex = i === (chosen ?? ids.length - 1) ? 0 : -1;
        return piece.includes("\n") ? [span, h("br")] : [span];
      }),
    );
  }

  listen() {
    const choose = (place) => {
      const [now] = this.store.get("rows");
      const mode = this.store.get("mode") === "sheet" ? "words" : this.store.get("mode");
      this.store.set(now === place ? { rows: [] } : { rows: [place], mode, direction: "at" });
    };
    this.text.onclick = ({ target }) => target.dataset.place && choose(Number(target.dataset.place));
    this.text.onkeydown = (event) => {
      const place = Number(event.target.dataset.place);
      const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: this.answer.ids.length - 1 }[event.key];
      if (next === undefined && event.key !== "Enter" && event.key !== " ") return;
      if (next === undefined) choose(place);
      else this.text.querySelector(`[data-place="${Math.max(0, Math.min(this.answer.ids.length - 1, next))}"]`).focus();
      event.preventDefault();
      event.stopPropagation();
    };
  }

  // The likeliest next tokens: [id, share, share with all heads on].
  get likeliest() {
    const shares = probabilitiesOf(this.last(this.answer), this.sampler);
    const whole = this.edits.length ? probabilitiesOf(this.last(this.base), this.sampler) : null;
    const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a] || a - b).slice(0, SHOWN);
    return order.map((id) => [id, shares[id], whole?.[id] ?? null]);
  }

  showNext() {
    const focused = this.next.contains(this.frame.body.getRootNode().activeElement);
    this.next.replaceChildren(
      h("span", { class: "soft" }, this.edits.length ? "Next token; the line: with all heads on" : "Next token"),
      ...bars(
        this.likeliest.map(([id, share, other]) => ({
          name: quoted(this.vocab.words([id])[0], 24),
          share,
          other,
          title: other === null ? "take it" : `take it; with all heads on ${percent(other)}`,
          onclick: () => this.path.take(id),
        })),
      ),
    );
    if (focused) this.next.querySelector("button")?.focus();
  }

  showCost() {
    const mean = (answer) => {
      const all = costs(answer.logits, answer.ids, this.vocabSize);
      return all.reduce((a, b) => a + b, 0) / all.length;
    };
    if (this.answer.ids.length < 2) return void (this.cost.textContent = "");
    const now = mean(this.answer);
    const said = `This text costs ${now.toFixed(2)} nats a token`;
    if (!this.edits.length) return void (this.cost.textContent = `${said}.`);
    const whole = mean(this.base);
    const more = now - whole;
    this.cost.textContent = `${said} without ${this.edits.length} ${this.edits.length === 1 ? "head" : "heads"}; ${whole.toFixed(2)} with all (${more < 0 ? "−" : "+"}${Math.abs(more).toFixed(2)}).`;
    return undefined;
  }

  showBranches() {
    const leaves = this.path.leaves;
    this.tried.hidden = leaves.length < 2;
    this.tried.replaceChildren(
      h("span", { class: "soft" }, "Branches"),
      ...leaves.map((leaf) => {
        const tokens = this.path.to(leaf);
        const text = this.vocab.words(tokens).join("");
        const here = leaf === this.store.get("at");
        return h(
          "button",
          { type: "button", "aria-pressed": String(here), title: `${tokens.length} tokens`, onclick: () => this.store.set({ at: leaf, rows: [] }) },
          quoted([...text].length > 24 ? `…${[...text].slice(-23).join("")}` : text, 24),
        );
      }),
    );
  }

  // One token more, drawn as `generate.ids` draws it; false if it cannot go on.
  async write() {
    const { seen } = this;
    if (!seen || !this.answer || this.answer.key !== this.keyOf(seen)) return false;
    const written = this.path.tokens.length;
    const shares = probabilitiesOf(this.last(this.answer), this.sampler);
    const id = this.store.get("temperature") === 0 ? shares.indexOf(1) : drawnFrom(shares, this.number(written));
    const made = await this.further(seen, id);
    this.path.take(id);
    const now = this.seen;
    if (made) this.answer = this.base = this.kept = { ...made, key: this.keyOf(now), ids: now.ids };
    return true;
  }

  // The number drawn for the n-th token written: always the same one for a seed.
  number(place) {
    const seed = this.store.get("seed");
    if (this.drawn?.seed !== seed) this.drawn = { seed, twister: new Twister(seed), numbers: [] };
    const { twister, numbers } = this.drawn;
    while (numbers.length <= place) numbers.push(twister.number());
    return numbers[place];
  }

  // What one more token gives, its keys and values being kept; null where all must be read again.
  async further({ ids }, id) {
    const { context, programs } = this.described;
    if (!programs?.step || this.edits.length || ids.length + 1 > context || this.kept !== this.answer) {
      this.kept = null;
      return null;
    }
    const made = await this.run("step", "step", { ids: { shape: [1, 1], data: [id] } }, { watch: true, carry: CARRY });
    if (!made) return null;
    const before = this.answer;
    const logits = new Float32Array(before.logits.length + made.outputs.logits.data.length);
    logits.set(before.logits);
    logits.set(made.outputs.logits.data, before.logits.length);
    const patterns = {};
    for (const [site, [map]] of Object.entries(before.patterns)) patterns[site] = [longer(map, made.patterns[site][0])];
    return { logits, patterns };
  }

  async toggle() {
    this.running = !this.running;
    this.runs.textContent = this.running ? "Stop" : "Run";
    while (this.running && !this.frame.closed && this.path.tokens.length < this.described.most) {
      if (!(await this.write())) await this.refresh();
      await new Promise((done) => requestAnimationFrame(done));
    }
    this.running = false;
    this.runs.textContent = "Run";
  }

  panels() {
    if (!this.answer) return null;
    const found = this.likeliest;
    const values = Float32Array.from(found.flatMap(([, share, other]) => [share, other ?? share]));
    const cols = this.edits.length ? ["heads off", "all on"] : ["probability"];
    const kept = this.edits.length ? values : values.filter((_, i) => i % 2 === 0);
    const rows = found.map(([id]) => this.vocab.words([id])[0]);
    const grid = Grid.of(rows, cols, kept, new Uint8Array(kept.length).fill(OPEN), { scale: "share" });
    return [{ name: "", grid, axes: ["next token", ""] }];
  }

  tables() {
    return (this.panels() ?? []).map(table);
  }

  get drawing() {
    const { theme } = this.frame;
    const found = this.answer ? this.likeliest : [];
    const most = Math.max(...found.map(([, share]) => share), 1e-9);
    return {
      width: 420,
      height: 22 * found.length + 8,
      draw: (pen) =>
        found.forEach(([id, share], i) => {
          const y = 22 * i + 12;
          pen.text(0, y, quoted(this.vocab.words([id])[0], 16), { fill: theme.ink, size: 12 });
          pen.rect(130, y - 7, Math.max(1, (220 * share) / most), 14, { fill: theme.ramp });
          pen.text(360, y, percent(share), { fill: theme.ink, size: 12 });
        }),
    };
  }
}

// A map with one query more, which has one key more.
function longer(map, row) {
  const [, heads, queries, keys] = map.shape;
  const shape = [1, heads, queries + 1, keys + 1];
  const made = { shape, data: new Float32Array(heads * shape[2] * shape[3]), open: new Uint8Array(heads * shape[2] * shape[3]) };
  for (const name of ["data", "open"])
    for (let head = 0; head < heads; head++) {
      const from = head * shape[2] * shape[3];
      for (let query = 0; query < queries; query++) {
        const start = (head * queries + query) * keys;
        made[name].set(map[name].subarray(start, start + keys), from + query * shape[3]);
      }
      made[name].set(row[name].subarray(head * shape[3], (head + 1) * shape[3]), from + queries * shape[3]);
    }
  return made;
}

const WRITER_KEYS = [
  ["Alt+S, Alt+R, Alt+B", "write a token, run or stop, take one back"],
  ["arrows, Enter", "in the text: move, see what a token looked at"],
  ["Enter", "on a next token: take it; on a head: switch it off"],
];

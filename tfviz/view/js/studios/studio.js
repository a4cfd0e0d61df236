// What all studios share: a frame of three panes (the text, the model, what it says), an engine with the model's
// programs, its vocabulary, undo, and the chosen head: one sentence of what it does, and its map below.

import { Engine } from "../engine/client.js";
import { Explorer } from "../stages/explorer.js";
import { Frame } from "../controls/frame.js";
import { h } from "../base/elements.js";
import { headsOf, CapturedMaps, partsOf } from "./captured-maps.js";
import { ModelPane } from "./model-pane.js";
import { counted } from "../base/numbers.js";
import { label } from "../base/pen.js";
import { habitSentence } from "./summary.js";
import { tryButtons } from "./tries.js";
import { table } from "../controls/table.js";
import { TopBar } from "../controls/top-bar.js";
import { vocabulary } from "../text/vocabulary.js";
import CSS from "../controls/studio.css";

export class Studio {
  /** @abstract @returns {string[][]} each key, and what it does */
  get keys() {
    return [];
  }

  /** @abstract @returns {import("../types.d.ts").Drawing | null} */
  get drawing() {
    return null;
  }

  /** @abstract make what is inside the frame; called by the constructor */
  build() {}

  /** @abstract ask for what is chosen now, and show it */
  async refresh() {}

  /** @abstract @returns {any[] | null} panels of numbers: { name, grid, axes } */
  panels() {
    return null;
  }

  tables() {
    return (this.panels() ?? []).map(table);
  }

  constructor(host, source, store, options) {
    const described = source.document;
    this.described = described;
    this.store = store;
    this.options = options;
    this.vocabularies = described.vocabularies.map(options.vocabulary ?? vocabulary);
    this.frame = new Frame(host, described, store, {
      ...options,
      keys: this.keys,
      shown: () => this.panels(),
      drawing: () => this.drawing,
      tables: () => this.tables(),
      redraw: () => this.refresh(),
    });
    this.frame.zooms = false;
    this.frame.body.classList.add("studio");
    this.frame.body.before(h("style", {}, CSS));
    this.live = new CapturedMaps({ title: "", axes: described.axes ?? ["query", "key"], sheet: false });
    this.model = new ModelPane(this.frame.theme, {
      look: (at) => this.look(at),
      toggle: (site, heads) => this.toggleHeads(site, heads),
    });
    this.bar = new TopBar(this.frame, described.state, this.choices, Boolean(options.page) && !options.engine);
    this.history = this.bar.history;
    this.data = source.data;
    this.start();
    this.build();
    // A worker lives until it is told to stop, whatever becomes of its view: one that is off the page has none.
    const watcher = new ResizeObserver(() => host.isConnected || this.rest());
    watcher.observe(host);
    const end = this.frame.open();
    this.textPane.children[1].after(this.frame.status); // what is said stands beside what was typed
    this.close = () => {
      watcher.disconnect();
      this.explorer?.close();
      this.bar.close();
      this.rest();
      end();
    };
  }

  /** The choices that Undo takes back and a link carries. */
  get choices() {
    return Object.keys(this.described.state).filter((name) => !TRANSIENT.has(name));
  }

  // Three panes, and below them the sentence and the opened head.
  compose({ text, textTitle, says, saysTitle }) {
    const { frame, store } = this;
    this.from = h("small", {});
    const allOn = () => {
      store.set({ off: [] });
      this.model.element.querySelector("[tabindex='0']")?.focus(); // the button goes
    };
    this.allOn = h("button", { type: "button", class: "all-on", onclick: allOn }, "All on");
    this.howTo = h("small", {}, "click: look · ×: off");
    this.said = h("p", { class: "sentence-of-head" });
    this.opener = h("button", { type: "button", title: "its map with all words, below", onclick: () => this.open() });
    this.inner = h("div", { class: "inner" });
    this.tries = h("div", { class: "tries", role: "group", "aria-label": "Try" });
    const pane = (kind, title, more, ...parts) =>
      h("section", { class: `pane ${kind}` }, h("h4", {}, title, more), ...parts);
    this.textPane = pane("text", textTitle, this.from, ...text);
    const desk = h(
      "div",
      { class: "stage desk" },
      this.textPane,
      pane("says", saysTitle, null, ...says),
      pane("heads-of-model", "The model", this.howTo, this.model.element),
    );
    const under = h("div", { class: "under" }, this.said, this.opener);
    frame.body.append(this.tries);
    frame.stage(h("div", { class: "sheet" }, desk, under, this.inner), "");
  }

  open() {
    this.store.set({ open: !this.store.get("open"), mode: "head" });
  }

  // What authors and this kind of studio propose to try.
  showTries(tries) {
    const own = (this.described.tries ?? []).map(([name, state]) => ({ name, act: () => this.store.set(state) }));
    this.tries.replaceChildren(h("span", {}, "Try"), ...tryButtons(this, [...own, ...tries]));
  }

  /** Until what is chosen now is shown. */
  settled() {
    return this.refresh();
  }

  start() {
    const { described, options } = this;
    this.engine = options.engine?.(described) ?? new Engine(options.worker);
    this.ready = options.engine ? Promise.resolve() : this.engine.load(described.programs, bytesOf(this.data));
    this.ready.catch((error) => this.frame.failed(error));
    this.gone = new Promise((done) => {
      this.leave = () => done(null);
    });
  }

  // Until something is asked again.
  rest() {
    this.engine?.close();
    this.engine = null;
    this.leave();
  }

  get vocab() {
    return this.vocabularies[0];
  }

  // Where Python encodes: whether there was a text that it had not read yet; null if it could not, which is said.
  async learn(vocab, texts) {
    try {
      return vocab.learn ? await vocab.learn(texts) : false;
    } catch (error) {
      this.frame.failed(error);
      return null;
    }
  }

  // The heads that are off, as the engine is told.
  get edits() {
    return this.store.get("off").map(([site, head]) => ({ site, head, do: "zero" }));
  }

  // Ask for what is shown now; null if something else was asked for meanwhile, or it failed, which is then said.
  async run(lane, program, inputs, options) {
    this.going = (this.going ?? 0) + 1;
    this.frame.body.setAttribute("aria-busy", "true");
    try {
      if (!this.engine) this.start();
      const { engine, gone } = this;
      await Promise.race([this.ready, gone]);
      return await Promise.race([engine.latest(lane, program, inputs, options), gone]);
    } catch (error) {
      this.frame.failed(error);
      return null;
    } finally {
      this.going--;
      if (!this.going) this.frame.body.removeAttribute("aria-busy");
    }
  }

  // The maps of a run go to the model's pane. words: (part) -> [words of the rows, words of the columns]
  showMaps(patterns, words) {
    const parts = partsOf(patterns, (site) => this.named(site));
    this.live.renew(parts.map((part) => ({ ...part, rows: words(part)[0], cols: words(part)[1] })));
    this.groups = parts.map((part) => ({ name: part.name, sites: part.sites, heads: headsOf(part) }));
    this.showModel();
  }

  named(site) {
    const found = ["cross", "encoder", "decoder"].filter((word) => site.includes(word));
    return found.at(0) === "cross" ? "cross-attention" : (found.at(0) ?? "attention");
  }

  // The head that is looked at.
  get at() {
    const { store, groups } = this;
    const within = (place, count) => Math.max(0, Math.min(count - 1, place));
    const part = within(store.get("part"), groups.length);
    const layer = within(store.get("layer"), groups[part].sites.length);
    return { part, layer, head: within(store.get("head"), groups[part].heads) };
  }

  isOff({ part, layer, head }) {
    const site = this.groups[part].sites[layer];
    return this.store.get("off").some(([other, number]) => other === site && number === head);
  }

  gridOf({ part, layer, head }) {
    return this.live.grid(part, layer, head);
  }

  /** The row of the chosen head that the text is shaded by. @returns {number | null} */
  get row() {
    return null;
  }

  /** @abstract @returns {number[]} the tokens of the queries of a part */
  idsOf(_part) {
    return [];
  }

  look({ part, layer, head }) {
    this.store.set({ part, layer, head, marked: [] });
  }

  toggleHeads(site, heads) {
    const off = this.store.get("off");
    const chosen = ([other, number]) => other === site && heads.includes(number);
    const rest = off.filter((entry) => !chosen(entry));
    this.store.set({
      off: off.length - rest.length === heads.length ? rest : [...rest, ...heads.map((head) => [site, head])],
    });
  }

  // The heads, the sentence and the opened map, as they are chosen now.
  showModel() {
    if (!this.groups?.length) return;
    const { at } = this;
    const grid = (place) => this.gridOf(place);
    this.frame.subject.textContent = this.subject;
    const off = this.store.get("off").length > 0;
    this.howTo.replaceChildren(off ? this.allOn : "click: look · ×: off");
    this.model.show({ groups: this.groups, grid, off: this.store.get("off"), at, row: this.row });
    this.showFrom();
    this.showSentence();
    this.showOpened();
  }

  // What kind of model this is, beside the title.
  get subject() {
    const [{ sites, heads }] = this.groups;
    const size = `${counted(sites.length, "layer")} × ${counted(heads, "head")}`;
    return `${size} · ${this.unit === "token" ? `${counted(this.vocab.size, "token")}` : `${this.unit} by ${this.unit}`}`;
  }

  nameOf({ part, layer, head }) {
    return `${this.groups.length > 1 ? `${capital(this.groups[part].name)}, layer` : "Layer"} ${layer}, head ${head}`;
  }

  showFrom() {}

  showSentence() {
    const { at } = this;
    const does = this.isOff(at) ? "is off." : habitSentence(this.gridOf(at), this.idsOf(at.part), this.unit);
    this.said.replaceChildren(h("b", {}, this.nameOf(at)), ` ${does} ${this.worth(at)}`);
  }

  /** What the model loses without a head, in a sentence. @returns {string} */
  worth(_at) {
    return "";
  }

  // A head that is off has no map to open: the nearest that is on has.
  showOpened() {
    const open = Boolean(this.store.get("open"));
    this.opener.textContent = open ? "Close this head ↑" : "Open this head ↓";
    this.opener.setAttribute("aria-expanded", String(open));
    this.inner.hidden = !open;
    if (!open) return;
    if (this.isOff(this.at)) {
      const on = this.places.find((place) => !this.isOff(place));
      if (on) return void this.store.set({ ...on, marked: [] });
    }
    if (this.explorer) this.explorer.renew();
    else this.explorer = new Explorer(this.inner, this.live, this.store, { away: "Take the heads away" });
  }

  /** All heads there are. */
  get places() {
    return this.groups.flatMap(({ sites, heads }, part) =>
      sites.flatMap((_, layer) => Array.from({ length: heads }, (__, head) => ({ part, layer, head }))),
    );
  }

  // What one token is called.
  get unit() {
    const kinds = { characters: "letter", bytes: "byte" };
    return kinds[this.described.vocabularies.at(-1).kind] ?? "token";
  }

  // Whether tokens stand apart in a running text, since they do not carry their own spaces.
  get apart() {
    return ["spaces", "pieces"].includes(this.vocab.joiner?.kind);
  }

  // The text of one token, to stand in a running text: as it is where that can be seen, else signs for it.
  piece(id) {
    const text = this.vocab.decode([id]);
    return text && !/[\uFFFD\p{C}]/u.test(text.replace(/\n/g, "")) ? text : label(this.vocab.words([id])[0], 40);
  }

  announce(text) {
    this.frame.announce(text);
  }
}

// Choices of the moment, which no link carries and Undo leaves alone.
const TRANSIENT = new Set(["rows", "cols", "marked", "hidden", "forced"]);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function bytesOf(data) {
  if (typeof data !== "string") return data;
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

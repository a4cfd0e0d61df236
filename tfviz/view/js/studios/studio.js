// What all studios share: a frame of three panes (the text, the model, what it says), an engine with the model's
// programs, its vocabulary, undo, and the chosen head: one sentence of what it does, and its map below.

import { Engine } from "../engine/client.js";
import { Explorer } from "../stages/explorer.js";
import { Frame } from "../controls/frame.js";
import { h } from "../base/elements.js";
import { button } from "./button.js";
import { headsOf, CapturedMaps, partsOf } from "./captured-maps.js";
import { ModelPane } from "./model-pane.js";
import { counted } from "../base/numbers.js";
import { label } from "../base/pen.js";
import { habitSentence } from "./summary.js";
import { tryButtons } from "./tries.js";
import { table } from "../controls/table.js";
import { TopBar } from "../controls/top-bar.js";
import { vocabulary } from "../text/vocabulary.js";
import { bytesOf } from "../base/page-data.js";
import CSS from "../controls/studio.css";

/** @import { Grid } from "../base/grid.js" */
/** @import { StudioDocument, StudioState } from "../documents.d.ts" */
/** @import { Choices, Drawing, Edit, GridPanel, Pattern, RunOptions, ViewOptions, Vocabulary } from "../types.d.ts" */
/** @import { CapturedPart } from "./captured-maps.js" */
/** @import { Group, Place } from "./model-pane.js" */
/** @import { Try } from "./tries.js" */
/**
 * @typedef {ViewOptions & {
 *   engine?(document: StudioDocument): Engine,
 *   vocabulary?(described: Record<string, any>, number: number): Vocabulary,
 * }} StudioOptions what a kernel has instead of the page
 */

/** @template {StudioDocument} Document */
export class Studio {
  /** @type {Group[]} */
  groups = [];
  /** @type {Engine | null} */
  engine = null;
  /** @type {Explorer | undefined} */
  explorer;
  /** Runs that are not answered yet. */
  unanswered = 0;
  leave = () => {};

  /** @abstract @returns {string[][]} each key, and what it does */
  get keys() {
    return [];
  }

  /** @abstract @returns {Drawing | null} */
  get drawing() {
    return null;
  }

  /** @abstract make what is inside the frame; called by the constructor */
  build() {}

  /** @abstract ask for what is chosen now, and show it @returns {Promise<void>} */
  async refresh() {}

  /** @abstract @returns {GridPanel<Grid>[] | null} the numbers of what is shown */
  panels() {
    return null;
  }

  /** @returns {HTMLElement[]} */
  tables() {
    return (this.panels() ?? []).map(table);
  }

  /**
   * @param {HTMLElement} host
   * @param {{ document: Document, data: string | Uint8Array }} source
   * @param {Choices<any>} store
   * @param {StudioOptions} options
   */
  constructor(host, source, store, options) {
    const described = source.document;
    this.described = described;
    /** @type {Choices<StudioState> & Choices<Document["state"]>} */
    this.store = store;
    this.options = options;
    /** @type {Vocabulary[]} */
    this.vocabularies = described.vocabularies.map(options.vocabulary ?? vocabulary);
    this.frame = new Frame(host, described, store, {
      ...options,
      keys: this.keys,
      grids: () => this.panels(),
      drawing: () => this.drawing,
      tables: () => this.tables(),
      redraw: () => this.refresh(),
    });
    this.frame.zooms = false;
    this.frame.body.classList.add("studio");
    this.frame.body.before(h("style", {}, CSS));
    const axes = "axes" in described ? described.axes : ["query", "key"];
    this.capturedMaps = new CapturedMaps({ title: "", axes, sheet: false });
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
    const watcher = new ResizeObserver(() => host.isConnected || this.closeEngine());
    watcher.observe(host);
    const end = this.frame.open();
    this.textPane.children[1].after(this.frame.status); // what is said stands beside what was typed
    this.close = () => {
      watcher.disconnect();
      this.explorer?.close();
      this.bar.close();
      this.closeEngine();
      end();
    };
  }

  /** The choices that Undo takes back and a link carries. */
  get choices() {
    return Object.keys(this.described.state).filter((name) => !TRANSIENT.has(name));
  }

  /**
   * Lay out three panes, and below them the sentence and the opened head.
   * @param {{ text: HTMLElement[], textTitle: string, says: HTMLElement[], saysTitle: string }} panes
   */
  compose({ text, textTitle, says, saysTitle }) {
    const { frame, store } = this;
    /** @type {HTMLElement} */
    this.sourceLabel = h("small", {});
    const allOn = () => {
      store.set({ off: [] });
      /** @type {HTMLElement | null} */ (this.model.element.querySelector("[tabindex='0']"))?.focus(); // the button goes
    };
    /** @type {HTMLButtonElement} */
    this.allOn = button("All on", allOn, { class: "all-on" });
    /** @type {HTMLElement} */
    this.howTo = h("small", {}, "click: look · ×: off");
    const opening = "Opening the model …";
    /** @type {HTMLElement} */
    this.opening = h("p", { class: "opening" }, opening, h("progress", { "aria-label": opening }));
    /** @type {HTMLElement} */
    this.sentenceOfHead = h("p", { class: "sentence-of-head" });
    /** @type {HTMLButtonElement} */
    this.opener = button("", () => this.open(), { title: "its map with all words, below", hidden: true });
    /** @type {HTMLElement} */
    this.inner = h("div", { class: "inner", hidden: true });
    /** @type {HTMLElement} */
    this.tries = h("div", { class: "tries", role: "group", "aria-label": "Try" });
    /** @type {(kind: string, title: string, more: HTMLElement | null, ...parts: HTMLElement[]) => HTMLElement} */
    const pane = (kind, title, more, ...parts) =>
      h("section", { class: `pane ${kind}` }, h("h4", {}, title, more), ...parts);
    /** @type {HTMLElement} */
    this.textPane = pane("text", textTitle, this.sourceLabel, ...text);
    const desk = h(
      "div",
      { class: "stage desk" },
      this.textPane,
      pane("says", saysTitle, null, ...says),
      pane("heads-of-model", "The model", this.howTo, this.opening, this.model.element),
    );
    const under = h("div", { class: "under" }, this.sentenceOfHead, this.opener);
    frame.body.append(this.tries);
    frame.stage(h("div", { class: "sheet" }, desk, under, this.inner), "");
  }

  open() {
    this.store.set({ open: !this.store.get("open"), mode: "head" });
  }

  /** The choices that belong to a text, as they are for another one. @returns {any} */
  get cleared() {
    return {};
  }

  /** Show what authors and this kind of studio propose to try. @param {Try[]} tries */
  showTries(tries) {
    const proposed = (this.described.tries ?? []).map(([name, state]) => ({
      name,
      act: () => this.store.set({ ...(TEXTS.some((text) => text in state) ? this.cleared : {}), ...state }),
    }));
    this.tries.replaceChildren(h("span", {}, "Try"), ...tryButtons(this, [...proposed, ...tries]));
  }

  /** Until what is chosen now is shown, and all that follows from it is known. */
  settled() {
    return this.refresh();
  }

  start() {
    const { described, options } = this;
    this.engine = options.engine?.(described) ?? new Engine(options.worker ?? null);
    const bytes = typeof this.data === "string" ? bytesOf(this.data) : this.data;
    this.ready = options.engine ? Promise.resolve() : this.engine.load(described.programs ?? {}, bytes);
    this.ready.catch((error) => {
      this.opening.remove();
      this.frame.failed(error);
    });
    /** @type {Promise<null>} */
    this.closed = new Promise((resolve) => {
      this.leave = () => resolve(null);
    });
    return this.engine;
  }

  /** Close the engine, until something is asked for again. */
  closeEngine() {
    this.engine?.close();
    this.engine = null;
    this.leave();
  }

  get vocab() {
    return this.vocabularies[0];
  }

  /**
   * Let Python encode texts, where it does that. Return whether there was one that it had not read yet; null if it
   * could not, which is announced.
   * @param {Vocabulary} vocab
   * @param {string[]} texts
   */
  async learn(vocab, texts) {
    try {
      return vocab.learn ? await vocab.learn(texts) : false;
    } catch (error) {
      this.frame.failed(/** @type {Error} */ (error));
      return null;
    }
  }

  /** The heads that are off, as edits of the engine. @returns {Edit[]} */
  get edits() {
    return this.store.get("off").map(([site, head]) => ({ site, head, do: "zero" }));
  }

  /**
   * Run a program; null if something else was asked for meanwhile on this lane, or it failed, which is then announced.
   * @param {string} lane
   * @param {string} program
   * @param {Record<string, any>} inputs
   * @param {RunOptions} options
   */
  async run(lane, program, inputs, options) {
    this.unanswered++;
    this.frame.body.setAttribute("aria-busy", "true");
    try {
      const engine = this.engine ?? this.start();
      const { closed } = this;
      await Promise.race([this.ready, closed]);
      return await Promise.race([engine.latest(lane, program, inputs, options), closed]);
    } catch (error) {
      this.frame.failed(/** @type {Error} */ (error));
      return null;
    } finally {
      this.unanswered--;
      if (!this.unanswered) this.frame.body.removeAttribute("aria-busy");
    }
  }

  /**
   * Show the maps of a run in the model's pane; words are those of the rows and of the columns.
   * @param {Record<string, Pattern[]>} patterns
   * @param {(part: CapturedPart) => string[][]} words
   */
  showMaps(patterns, words) {
    this.opening.remove();
    const parts = partsOf(patterns, (site) => this.named(site));
    this.capturedMaps.renew(parts.map((part) => ({ ...part, rows: words(part)[0], cols: words(part)[1] })));
    this.groups = parts.map((part) => ({ name: part.name, sites: part.sites, heads: headsOf(part) }));
    this.showModel();
  }

  /** @param {string} site */
  named(site) {
    const kind = ["cross", "encoder", "decoder"].find((word) => site.includes(word));
    return kind === "cross" ? "cross-attention" : (kind ?? "attention");
  }

  /** The head that is looked at. */
  get selectedHead() {
    const { store, groups } = this;
    const within = (/** @type {number} */ place, /** @type {number} */ count) =>
      Math.max(0, Math.min(count - 1, place));
    const part = within(store.get("part"), groups.length);
    const layer = within(store.get("layer"), groups[part].sites.length);
    return { part, layer, head: within(store.get("head"), groups[part].heads) };
  }

  /** @param {Place} place */
  isOff({ part, layer, head }) {
    const site = this.groups[part].sites[layer];
    return this.store.get("off").some(([other, number]) => other === site && number === head);
  }

  /** @param {Place} place */
  gridOf({ part, layer, head }) {
    return this.capturedMaps.grid(part, layer, head);
  }

  /** The small map of a head. @param {Place} place */
  thumbOf(place) {
    return this.gridOf(place);
  }

  /**
   * Return the colours of a piece of text: those of the largest weight of its tokens, `first` to `last`, in a row of a
   * map.
   * @param {Grid} grid
   * @param {number} row
   * @param {number} first
   * @param {number} last
   */
  shadeOf(grid, row, first, last) {
    let code = 0;
    for (let key = first; key <= last; key++) code = Math.max(code, grid.codes[row * grid.cols.length + key]);
    if (code < FAINTEST) return null;
    const { theme } = this.frame;
    return { background: theme.colour(grid, code), ink: theme.inkOn(theme.lut(grid)[code]) };
  }

  /** The row of the chosen head that the text is shaded by. @returns {number | null} */
  get row() {
    return null;
  }

  /** @abstract @param {number} _part @returns {number[]} the tokens of its queries */
  idsOf(_part) {
    return [];
  }

  /** @param {Place} place */
  look({ part, layer, head }) {
    this.store.set({ part, layer, head, marked: [] });
  }

  /** @param {string} site @param {number[]} heads */
  toggleHeads(site, heads) {
    const off = this.store.get("off");
    const chosen = (/** @type {any[]} */ [other, number]) => other === site && heads.includes(number);
    const rest = off.filter((entry) => !chosen(entry));
    this.store.set({
      off: off.length - rest.length === heads.length ? rest : [...rest, ...heads.map((head) => [site, head])],
    });
  }

  /** Show the heads, the sentence and the opened map, as they are chosen now. */
  showModel() {
    if (!this.groups.length) return;
    const { selectedHead: at } = this;
    const grid = (/** @type {Place} */ place) => this.thumbOf(place);
    this.frame.subject.textContent = this.subject;
    const off = this.store.get("off").length > 0;
    this.howTo.replaceChildren(off ? this.allOn : "click: look · ×: off");
    this.model.show({ groups: this.groups, grid, off: this.store.get("off"), at, row: this.row });
    this.showFrom();
    this.showSentence();
    this.showOpened();
  }

  /** The size of the model, beside the title. */
  get subject() {
    const [{ sites, heads }] = this.groups;
    const size = `${counted(sites.length, "layer")} × ${counted(heads, "head")}`;
    return `${size} · ${this.unit === "token" ? `${counted(this.vocab.size, "token")}` : `${this.unit} by ${this.unit}`}`;
  }

  /** @param {Place} place */
  nameOf({ part, layer, head }) {
    return `${this.groups.length > 1 ? `${capital(this.groups[part].name)}, layer` : "Layer"} ${layer}, head ${head}`;
  }

  showFrom() {}

  showSentence() {
    const { selectedHead: at } = this;
    const does = this.isOff(at) ? "is off." : this.habit(at);
    this.sentenceOfHead.replaceChildren(h("b", {}, this.nameOf(at)), ` ${does} ${this.worth(at)}`);
  }

  /** What a head does, in a sentence. @param {Place} at */
  habit(at) {
    return habitSentence(this.gridOf(at), this.idsOf(at.part), this.unit);
  }

  /** What the model loses without a head, in a sentence. @param {Place} _at @returns {string} */
  worth(_at) {
    return "";
  }

  /** Show the opened head. One that is off has no map to open; if it is open already, the first that is on is shown. */
  showOpened() {
    const open = Boolean(this.store.get("open"));
    this.opener.hidden = !open && (!this.groups.length || this.isOff(this.selectedHead));
    this.opener.textContent = open ? "Close this head ↑" : "Open this head ↓";
    this.opener.setAttribute("aria-expanded", String(open));
    this.inner.hidden = !open;
    if (!open) return;
    if (this.isOff(this.selectedHead)) {
      const on = this.places.find((place) => !this.isOff(place));
      if (on) return void this.store.set({ ...on, marked: [] });
    }
    if (this.explorer) this.explorer.renew();
    else this.explorer = new Explorer(this.inner, this.capturedMaps, this.store, { away: "Take the heads away" });
  }

  /** All heads there are. */
  get places() {
    return this.groups.flatMap(({ sites, heads }, part) =>
      sites.flatMap((_, layer) => Array.from({ length: heads }, (__, head) => ({ part, layer, head }))),
    );
  }

  /** What one token is called. */
  get unit() {
    /** @type {Record<string, string>} */
    const kinds = { characters: "letter", bytes: "byte" };
    const [{ kind }] = this.described.vocabularies.slice(-1);
    return kinds[kind] ?? "token";
  }

  /** Whether tokens stand apart in a running text, since they do not carry their own spaces. */
  get spaceSeparated() {
    return ["spaces", "pieces"].includes(this.vocab.joiner?.kind ?? "");
  }

  /**
   * Return the text of one token for a running text: as it is where that can be seen, else signs for it.
   * @param {number} id
   */
  piece(id) {
    const text = this.vocab.decode([id]);
    return text && !/[\uFFFD\p{C}]/u.test(text.replace(/\n/g, "")) ? text : label(this.vocab.words([id])[0], 40);
  }

  /** @param {string} text */
  announce(text) {
    this.frame.announce(text);
  }
}

const FAINTEST = 8; // of the 256 codes of a map: what is below has no colour in a text
const TEXTS = ["prompt", "text", "sentence"]; // by the kind of studio

// Choices of the moment, which no link carries and Undo leaves alone.
const TRANSIENT = new Set(["rows", "cols", "marked", "hidden", "forced"]);

const capital = (/** @type {string} */ text) => text.charAt(0).toUpperCase() + text.slice(1);

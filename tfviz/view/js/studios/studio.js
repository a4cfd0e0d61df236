// The base class of studios: a frame with three panes (text, model, prediction), an engine with the model's programs,
// tokenizers, undo, and the selected head with its description and map.

import { h, whenRemoved } from "../base/elements.js";
import { LatestRequest } from "../base/latest-request.js";
import { formatCount } from "../base/numbers.js";
import { exampleButtons } from "../controls/example-buttons.js";
import { Frame } from "../controls/frame.js";
import { table } from "../controls/table.js";
import { TopBar } from "../controls/top-bar.js";
import { makeTokenizer } from "../text/make-tokenizer.js";
import { EngineSession } from "./engine-session.js";
import { HeadAblation } from "./head-ablation.js";
import { HeadImportance } from "./head-importance.js";
import { HeadPane } from "./head-pane.js";
import { ModelHeads } from "./model-heads.js";
import { moreButton, pane } from "./small-elements.js";
import { describeHead } from "../views/head-summary.js";
import { LookArcs } from "./text/look-arcs.js";
import { besideEachOther, mapDrawing } from "./text/text-drawing.js";
import { tokenName } from "./text/token-text.js";
import STUDIO_CSS from "../controls/studio.css";
import WIDTHS_CSS from "../controls/studio-widths.css";
import BARS_CSS from "./bars.css";
import HEADS_CSS from "./heads.css";
import MODEL_CSS from "./model.css";
import TEXT_CSS from "./text/text.css";

/** @import { Grid } from "../base/grid.js" */
/** @import { StudioDocument, StudioState } from "../documents.js" */
/** @import { Choices, Drawing, GridPanel, Pattern, ViewOptions, Tokenizer } from "../types.js" */
/** @import { CapturedPart } from "./captured-maps.js" */
/** @import { EncodedText } from "./text/encoded-text.js" */
/** @import { HeadAddress } from "./model-pane.js" */
/** @import { Example } from "../controls/example-buttons.js" */
/**
 * @typedef {ViewOptions & {
 *   engine?(viewDocument: StudioDocument): import("../engine/client.js").Engine,
 *   tokenizer?(spec: Record<string, any>, number: number): Tokenizer,
 * }} StudioOptions the engine and tokenizers of a kernel, if there is one
 */
/**
 * @template {StudioDocument} Document
 * @typedef {[host: HTMLElement, source: { viewDocument: Document, data: string | Uint8Array }, store: Choices<any>,
 *   options: StudioOptions]} StudioArguments
 */

/**
 * The base class of studios. The constructor of a subclass makes its parts between calling that of this class and
 * `open`.
 * @template {StudioDocument} Document
 */
export class Studio {
  /** Close the studio; set by `open`. */
  close = () => {};

  /** @abstract @returns {string[][]} each key, and what it does */
  get shortcuts() {
    return [];
  }

  /** @abstract @returns {Drawing | null} */
  get drawing() {
    return null;
  }

  /** A drawing of what is shown, with the map of the chosen head beside it. @returns {Drawing | null} */
  get frameDrawing() {
    const { drawing, headDrawing } = this;
    return drawing && headDrawing ? besideEachOther(drawing, headDrawing) : drawing;
  }

  /** The names of the rows and columns of a head's map. */
  get axes() {
    return "axes" in this.viewDocument ? this.viewDocument.axes : ["query", "key"];
  }

  /** The map of the chosen head. @returns {Drawing | null} */
  get headDrawing() {
    const { heads, frame } = this;
    if (!heads.groups.length || heads.isAblated(heads.selected)) return null;
    return mapDrawing(frame.theme, heads.grid(heads.selected), this.axes, heads.nameOf(heads.selected));
  }

  /** The line below the title, which says what the model is. */
  lead = h("p", { class: "lead" });
  /** Which head shades the text. */
  sourceLabel = h("small", {});
  /** @type {HTMLElement | null} */
  textPane = null;
  /** @type {LookArcs | undefined} */
  arcs;

  /** The answer whose maps are shown. @type {object | null} */
  mappedAnswer = null;

  /** What is measured in the background. @type {Promise<void> | undefined} */
  measuring;

  /** Why the text cannot be read; "": it can be. */
  problem = "";

  /** The states that were requested, of which only the latest is shown. */
  requests = new LatestRequest();

  /** @abstract ask for what is chosen now, and show it @returns {Promise<void>} */
  async refresh() {}

  /** @abstract @returns {GridPanel<Grid>[] | null} the numbers of what is shown */
  panels() {
    return null;
  }

  /** The numbers of what is shown, with those of heads that are measured. */
  get allPanels() {
    const panels = this.panels();
    return panels && [...panels, ...this.importance.panels];
  }

  /** @returns {HTMLElement[]} */
  tables() {
    return (this.allPanels ?? []).map(table);
  }

  /** @param {StudioArguments<Document>} args */
  constructor(...[host, source, store, options]) {
    const { viewDocument } = source;
    this.viewDocument = viewDocument;
    /** @type {Choices<StudioState> & Choices<Document["state"]>} */
    this.store = store;
    this.options = options;
    /** @type {Tokenizer[]} */
    this.tokenizers = viewDocument.tokenizers.map(options.tokenizer ?? makeTokenizer);
    this.frame = this.makeFrame(host);
    /** @type {ModelHeads} */
    this.heads = new ModelHeads(store, this.axes);
    this.headPane = new HeadPane(this.frame.theme, store, this.heads);
    this.ablation = new HeadAblation(this);
    this.importance = new HeadImportance(this);
    this.headPane.actions.append(this.importance.button);
    this.headPane.legendEnd = this.importance.legend;
    this.bar = new TopBar(this.frame, viewDocument.state, this.choices, Boolean(options.page) && !options.engine);
    this.history = this.bar.history;
    const { body } = this.frame;
    this.session = new EngineSession(viewDocument, source.data, options, {
      showError: (error) => {
        this.headPane.opening.remove();
        this.frame.showError(error);
      },
      busy: (busy) => (busy ? body.setAttribute("aria-busy", "true") : body.removeAttribute("aria-busy")),
    });
  }

  /** Show the parts and run the model for the first time. */
  open() {
    const { host } = this.frame;
    this.session.start();
    const unwatch = whenRemoved(host, () => this.closeEngine());
    const end = this.frame.open();
    this.textPane?.children[1].after(this.frame.status); // messages are shown beside the text field
    this.close = () => {
      this.requests.end();
      unwatch();
      this.headPane.close();
      this.bar.close();
      this.closeEngine();
      end();
    };
  }

  /** @param {HTMLElement} host */
  makeFrame(host) {
    const frame = new Frame(host, this.viewDocument, this.store, {
      ...this.options,
      shortcuts: this.shortcuts,
      grids: () => this.allPanels,
      drawing: () => this.frameDrawing,
      tables: () => this.tables(),
      redraw: () => this.refresh(),
    });
    frame.hasZoom = false;
    frame.body.classList.add("studio");
    frame.caption.hidden = true; // it names files; the line below the title says it in words
    frame.header.after(this.lead);
    frame.body.before(h("style", {}, ...STYLES));
    return frame;
  }

  /** The choices that Undo takes back and a link carries. */
  get choices() {
    return Object.keys(this.viewDocument.state).filter((name) => !TRANSIENT_KEYS.has(name));
  }

  /**
   * Build three panes, and below them the sentence and the opened head.
   * @param {{ text: HTMLElement[], textTitle: string, prediction: HTMLElement[], predictionTitle: string }} panes
   */
  buildPanes({ text, textTitle, prediction, predictionTitle }) {
    const { frame, headPane } = this;
    this.textPane = pane("text", textTitle, this.sourceLabel, ...text);
    const panes = h(
      "div",
      { class: "stage panes" },
      this.textPane,
      pane("prediction", predictionTitle, null, prediction[0], moreButton(prediction[0]), ...prediction.slice(1)),
      headPane.element,
    );
    this.arcs = new LookArcs(panes);
    frame.showStage(h("div", { class: "sheet" }, panes, headPane.selectedHead, headPane.openedHead), "");
  }

  /** The values that choices about a text get when the text changes. @returns {any} */
  get clearedChoices() {
    return {};
  }

  /** Show the experiments proposed by the author and by this kind of studio. @param {Example[]} examples */
  showExamples(examples) {
    const proposed = (this.viewDocument.examples ?? []).map(([name, state]) => ({
      name,
      act: () => this.store.set({ ...(TEXT_KEYS.some((text) => text in state) ? this.clearedChoices : {}), ...state }),
    }));
    const done = () => this.problem && this.announce(this.problem);
    this.frame.body.append(exampleButtons([...proposed, ...examples], this.bar, done));
  }

  /** Show which head shades the text, and for which token. @param {string} subject such as "“s” looks" */
  showShadingHead(subject) {
    const { layer, head } = this.heads.selected;
    this.sourceLabel.textContent = `Where ${subject}: layer ${layer}, head ${head}`;
  }

  /** Wait until the current choices are shown and everything that depends on them is computed. */
  async whenIdle() {
    await this.refresh();
    await this.measuring;
  }

  /** Close the engine, until the next run. */
  closeEngine() {
    this.session.close();
  }

  get tokenizer() {
    return this.tokenizers[0];
  }

  /**
   * Encode a text in Python, for a tokenizer that is not in the page; return false if that failed, which is
   * announced.
   * @param {EncodedText<any>} encoded
   * @param {string} text
   */
  prepareText(encoded, text) {
    return encoded.prepare(text, (...call) => this.preloadEncodings(...call));
  }

  /**
   * Encode texts in Python, for a tokenizer that is not in the page. Return whether any of them was new; null if the kernel failed, which is announced.
   * @param {Tokenizer} tokenizer
   * @param {string[]} texts
   */
  async preloadEncodings(tokenizer, texts) {
    const preload = tokenizer.preloadEncodings?.bind(tokenizer);
    return preload ? this.session.whileBusy(() => preload(texts)) : false;
  }

  /** The heads that are off, as edits of the engine. */
  get edits() {
    return this.heads.edits;
  }

  /**
   * Run a program, as `EngineSession.run`.
   * @param {Parameters<EngineSession["run"]>} call
   */
  run(...call) {
    return this.session.run(...call);
  }

  /**
   * Show the maps of an answer in the model's pane; words are those of the rows and of the columns.
   * @param {object} answer
   * @param {Record<string, Pattern[]> | null} patterns null: they are shown already
   * @param {(part: CapturedPart) => string[][]} words
   */
  showMaps(answer, patterns, words) {
    if (patterns && this.mappedAnswer !== answer) this.heads.update(patterns, words);
    this.mappedAnswer = answer;
    this.showModel();
  }

  /** Return the small map of a head. @param {HeadAddress} address */
  thumbnail(address) {
    return this.heads.grid(address);
  }

  /** How the small maps are read. @returns {import("./head-pane.js").MapLegend} */
  get mapLegend() {
    return { text: `Each row is one ${this.unit}, each column a ${this.unit} it looks at.`, limit: 1 };
  }

  /** The row of the chosen head that the text is shaded by. @returns {number | null} */
  get row() {
    return null;
  }

  /** The query that is marked in the small map of a head. @param {HeadAddress} _at @returns {number | null} */
  markedRow(_at) {
    return this.row;
  }

  /** @abstract @param {number} _part @returns {number[]} the tokens of its queries */
  idsOf(_part) {
    return [];
  }

  /** Show the heads, the sentence and the opened map of the current choices. */
  showModel() {
    if (!this.heads.groups.length) return;
    this.showSubject();
    this.headPane.show(
      (address) => this.thumbnail(address),
      (address) => this.markedRow(address),
    );
    this.headPane.showLegend(this.mapLegend);
    this.importance.update();
    this.showSource();
    this.showSentence();
    this.headPane.showOpened();
  }

  /** Say what the model is: in the names of files, and in the line below the title. */
  showSubject() {
    const { frame, lead, viewDocument, size, reads } = this;
    frame.caption.textContent = `${size}, ${reads}`;
    lead.textContent = introduction(viewDocument.kind, size, reads);
  }

  /** Layers and heads, in words. */
  get size() {
    return this.heads.size;
  }

  /** What the model reads, in words. */
  get reads() {
    const { unit, tokenizer } = this;
    return unit === "token" ? `knows ${formatCount(tokenizer.size, "token")}` : `reads ${unit} by ${unit}`;
  }

  showSource() {}

  showSentence() {
    const { heads } = this;
    const { selected } = heads;
    this.headPane.describe(
      heads.isAblated(selected) ? "is off." : this.describeHead(selected),
      this.describeAblation(selected),
    );
  }

  /** Describe the behaviour of a head in a sentence. @param {HeadAddress} at */
  describeHead(at) {
    return describeHead(this.heads.grid(at), this.idsOf(at.part), this.unit, this.row);
  }

  /** The measure of the answer by which heads are compared. @returns {import("./head-ablation.js").AblationQuery | null} */
  get ablationQuery() {
    return null;
  }

  /** Describe the effect of toggling a head in a sentence. @param {HeadAddress} address */
  describeAblation(address) {
    return this.ablation.describe(address, this.ablationQuery);
  }

  /** The word for one token in texts. */
  get unit() {
    return tokenName(this.viewDocument.tokenizers.at(-1)?.kind);
  }

  /** @param {string} text */
  announce(text) {
    this.frame.announce(text);
  }

  /**
   * Announce why the text cannot be read, and dim what is shown of an earlier one; "": it can be read.
   * @param {string} problem
   */
  showProblem(problem) {
    this.problem = problem;
    this.frame.body.classList.toggle("unread", problem !== "");
    if (problem) this.announce(problem);
  }
}

/** The style sheets: those of parts, then those of widths, which change them, then what only some studios have. */
const STYLES = [TEXT_CSS, BARS_CSS, STUDIO_CSS, HEADS_CSS, WIDTHS_CSS, MODEL_CSS];

const TEXT_KEYS = ["prompt", "text", "sentence", "clean", "corrupt"]; // by the kind of studio

// Choices that are not written into a link and not undone.
const TRANSIENT_KEYS = new Set(["locked_rows", "locked_columns", "selected_heads", "hidden_keys", "forced"]);

/** @type {Record<StudioDocument["kind"], [what: string, first: string]>} */
const INTRODUCTIONS = {
  write: ["A language model", "Type, press “Write on”, or click a head to see what it looks at."],
  patch: ["A language model", "Click a cell to copy the clean run’s activation into the corrupt run."],
  translate: ["A translation model", "Press a translated word to see what the model looked at."],
  classify: ["A text classifier", "Press a word to strike it out, or click a head to see what it looks at."],
  "classify-image": ["A picture classifier", "Hide patches, or click a head to see where it looks."],
  fill: ["A masked language model", "Press a word to hide it, then press a guess."],
};

/**
 * Introduce a studio in a line.
 * @param {StudioDocument["kind"]} kind
 * @param {string} size layers and heads, in words
 * @param {string} reads what it reads: "reads letter by letter", "knows 800 tokens"
 */
function introduction(kind, size, reads) {
  const [what, first] = INTRODUCTIONS[kind];
  return `${what} of ${size} that ${reads}. ${first}`;
}

// The studio of a language model: a text that can be edited and continued, the next token to choose, and heads that can
// be shown and switched off.

import { button, focusedIn, h, slider } from "../../base/elements.js";
import { shortcuts } from "../../base/events.js";
import { NO_LOCKS } from "../../base/locks.js";
import { formatCount, formatFixed } from "../../base/numbers.js";
import { Branches } from "./branches.js";
import { contextStart, LanguageModelReader, readingKey } from "./language-model-reader.js";
import { animateTravel } from "../animation.js";
import { NextTokens } from "./next-tokens.js";
import { HEAD_SHORTCUTS } from "../head-pane.js";
import { joinPresent } from "../small-elements.js";
import { Prompt } from "../text/prompt.js";
import { Studio } from "../studio.js";
import { lineDrawing, stacked, textDrawing } from "../text/text-drawing.js";
import { TextLoss } from "./text-loss.js";
import { pieceText, spaceSeparated } from "../text/token-text.js";
import { TokenTree } from "./token-tree.js";
import { writeExamples } from "../examples.js";
import { WriteText } from "./write-text.js";
import { WritingLoop } from "./writing-loop.js";

/** @import { WriteDocument } from "../../documents.js" */
/** @import { Drawing } from "../../types.js" */
/** @import { Answer } from "./language-model-reader.js" */
/** @import { StudioArguments } from "../studio.js" */
/** @typedef {{ ids: number[], key: string, ablatedHeadCount: number }} ModelInput the input of the model */

/** A studio that shows how a language model continues a text. @extends {Studio<WriteDocument>} */
export class WriteStudio extends Studio {
  get shortcuts() {
    return WRITE_SHORTCUTS;
  }

  get clearedChoices() {
    return { tree: [], node: -1 };
  }

  /** @type {Answer | null} of what is shown */
  answer = null;
  /** @type {ModelInput | null} the input of that answer */
  answerInput = null;
  runButton = button("▶ Write on", () => this.loop.toggle(), { title: "until stopped (Alt+R)", class: "primary" });
  next = new NextTokens(this.tokenizer, this.store, (id) => this.take(id));
  temperature = slider("Temperature", {
    min: 0,
    max: Math.max(3, this.store.get("temperature")),
    step: 0.05,
    value: this.store.get("temperature"),
    text: (value) => formatFixed(value, 2),
    choose: (value) => this.store.set({ temperature: value }),
  });
  /** @type {HTMLInputElement} */
  seed = h("input", { type: "number", min: 0, max: Number.MAX_SAFE_INTEGER, onchange: () => this.reseed() });
  path = new TokenTree(this.store);
  branches = new Branches(
    this.path,
    (tokens) => this.textOf(tokens),
    (node) => this.store.set({ node, ...NO_LOCKS }),
  );

  /** @param {StudioArguments<WriteDocument>} args */
  constructor(...args) {
    super(...args);
    const { viewDocument, tokenizer } = this;
    this.prompt = new Prompt(tokenizer, viewDocument.context);
    this.text = new WriteText(this);
    this.reader = new LanguageModelReader((...call) => this.run(...call), {
      steps: Boolean(viewDocument.programs?.step),
      context: viewDocument.context,
      vocabSize: tokenizer.size,
    });
    this.loop = new WritingLoop(this);
    this.textLoss = new TextLoss(this);
    this.buildPanes({
      textTitle: "The text",
      text: this.buildText(),
      predictionTitle: `The next ${this.unit}`,
      prediction: this.buildNext(),
    });
    this.showExamples(writeExamples(this));
    this.frame.body.addEventListener("keydown", shortcuts(this.actions));
    this.open();
  }

  /** @returns {Parameters<typeof shortcuts>[0]} */
  get actions() {
    return {
      s: ({ repeat }) => (repeat && this.loop.busy) || this.loop.write(),
      r: ({ repeat }) => repeat || this.loop.toggle(),
      b: ({ repeat }) => repeat || this.path.back(),
    };
  }

  /** @param {number[]} tokens */
  textOf(tokens) {
    const { tokenizer } = this;
    return tokens.map((id) => pieceText(tokenizer, id)).join(spaceSeparated(tokenizer) ? " " : "");
  }

  /** Make the text and the buttons that write. */
  buildText() {
    const { unit } = this;
    const step = button(`One ${unit}`, () => this.loop.write(), { title: `write one ${unit} (Alt+S)` });
    const back = button("Back", () => this.path.back(), { title: `take the last ${unit} back (Alt+B)` });
    const buttons = h("div", { class: "row" }, this.runButton, step, back, this.textLoss.line);
    return [this.text.editor.element, buttons, this.textLoss.bars.element, this.branches.element];
  }

  /** Make the list of next tokens and the controls of the sampler. */
  buildNext() {
    const seed = h("label", { class: "seed" }, h("span", {}, "Seed"), this.seed);
    return [this.next.element, this.temperature.element, h("div", { class: "more" }, this.next.cutBy, seed)];
  }

  closeEngine() {
    super.closeEngine();
    this.reader.cachedAnswer = null;
  }

  /** Begin with another text: all of it is the prompt. @param {string} prompt */
  beginWith(prompt) {
    this.loop.running = false;
    this.store.set({ prompt, tree: [], node: -1, ...NO_LOCKS });
  }

  reseed() {
    const seed = Number(this.seed.value);
    this.store.set({ seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : 0 });
    this.seed.value = String(this.store.get("seed"));
  }

  /** Append a token that the reader chose, with an animation from its bar into the text. @param {number} id */
  take(id) {
    const pressed = this.next.buttonOf(id);
    this.path.take(id);
    animateTravel(this.frame.body, pressed, this.text.editor.element, pieceText(this.tokenizer, id));
  }

  /** Append a sampled token. @param {number} id @param {Answer | null} next the model's answer after it */
  append(id, next) {
    if (this.loop.running) this.path.take(id);
    else this.take(id);
    const input = this.currentInput;
    if (next && next.key === input?.key) {
      this.requests.beginInOrder().accept(); // what was asked for before comes too late
      this.answer = next;
    }
    this.answerInput = input;
  }

  get readPrompt() {
    return this.prompt.read(this.store.get("prompt"));
  }

  /**
   * The current input of the model: the whole text, or beyond its context the newer half. Null without a prompt.
   * @returns {ModelInput | null}
   */
  get currentInput() {
    const prompt = this.readPrompt.ids;
    if (!prompt) return null;
    const all = [...prompt, ...this.path.tokens];
    const ids = all.slice(contextStart(prompt.length, all.length, this.viewDocument.context));
    const { edits } = this;
    return { ids, key: readingKey(ids, edits), ablatedHeadCount: edits.length };
  }

  async refresh() {
    const { store } = this;
    this.temperature.show(store.get("temperature"));
    if (focusedIn(this.seed) !== this.seed) this.seed.value = String(store.get("seed"));
    if (!(await this.preloadPrompt())) return;
    this.text.show();
    const { currentInput: input } = this;
    this.showProblem(this.readPrompt.error ?? "");
    if (!input) return;
    if (!(await this.answerTo(input))) return;
    const { ids, cut } = this.readPrompt;
    const isCut = cut || input.ids.length < (ids?.length ?? 0) + this.path.tokens.length;
    const limit = formatCount(this.viewDocument.context, this.unit);
    this.announce(isCut ? `longer than the ${limit} that the model reads: it does not see the grey part` : "");
    try {
      if (this.answer) this.show(this.answer);
    } catch (error) {
      this.frame.showError(/** @type {Error} */ (error));
    }
  }

  /**
   * Encode the prompt in Python, for a tokenizer that is not in the page; return false if that failed or the prompt
   * has changed meanwhile.
   */
  async preloadPrompt() {
    const prompt = this.store.get("prompt");
    if (this.tokenizer.preloadEncodings && !(await this.prepareText(this.prompt, prompt))) return false;
    return prompt === this.store.get("prompt");
  }

  /**
   * Run the model on an input; return false if that failed or a newer input is requested meanwhile.
   * @param {ModelInput} input
   */
  async answerTo(input) {
    const { accept } = this.requests.beginInOrder();
    if (this.answer?.key === input.key) return accept();
    await this.session.ready.catch(() => {}); // a failure is announced by the session
    const started = performance.now();
    const answer = await this.reader.read(input.ids, this.edits);
    this.textLoss.readingTime = performance.now() - started;
    if (!answer || !accept()) return false;
    this.answer = answer;
    this.answerInput = input;
    return true;
  }

  /** @param {Answer} answer */
  show(answer) {
    this.next.show(answer);
    this.textLoss.show(answer, this.answerInput?.ablatedHeadCount ?? 0);
    this.branches.show(this.store.get("node"));
    this.showMaps(answer, answer.patterns, () => Array(2).fill(this.tokenizer.tokens(answer.ids)));
    this.text.show();
    this.frame.updateTable();
  }

  get row() {
    return this.text.row;
  }

  showSource() {
    const { row } = this;
    const { heads } = this;
    if (!heads.groups.length || !this.answer || row === null) return;
    if (heads.isAblated(heads.selected)) this.sourceLabel.textContent = `${heads.nameOf(heads.selected)} is off`;
    else this.showShadingHead(`“${this.tokenizer.tokens([this.answer.ids[row]])[0]}” looks`);
    this.sourceLabel.title = heads.nameOf(heads.selected);
  }

  /** @returns {number[]} */
  idsOf() {
    return this.answer?.ids ?? [];
  }

  get ablationQuery() {
    return this.answer && this.textLoss.ablationQuery(this.answer);
  }

  panels() {
    return this.answer ? this.next.panels : null;
  }

  /** @returns {Drawing} */
  get drawing() {
    const { frame, heads, next, text } = this;
    const { element } = text.editor;
    const ablated = heads.addresses.filter((address) => heads.isAblated(address));
    const without =
      ablated.length === 1 ? heads.nameOf(ablated[0]) : ablated.length && formatCount(ablated.length, "head");
    const settings = joinPresent([next.about, next.settings, without && `${without} off`], "; ");
    const parts = [textDrawing(element, element.querySelectorAll(".token")), next.drawing(frame.theme)];
    return stacked([...parts, lineDrawing(frame.theme, settings)]);
  }
}

const WRITE_SHORTCUTS = [
  ["Alt+R, Alt+S, Alt+B", "write on or stop, write one, take one back"],
  ["arrows in the text", "what the chosen head looks at from there"],
  HEAD_SHORTCUTS,
  ["Enter", "on a next token: take it"],
  ["arrows", "on the dashed line: keep fewer or more"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
];

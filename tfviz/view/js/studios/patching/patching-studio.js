// The studio of activation patching: the corrupt text is run with one activation of the clean text's run. Two tables
// hold what that changes, target by target.

import { button, h } from "../../base/elements.js";
import { formatCount, withSign } from "../../base/numbers.js";
import { quoted } from "../../base/visible-text.js";
import { PatchingAnswers } from "./patching-answers.js";
import { changeText, patchedText, scaleText, unpatchedText } from "./patching-description.js";
import { PatchingSweep } from "./patching-sweep.js";
import { PatchingGauge } from "./patching-gauge.js";
import { PatchingKernelRuns } from "./patching-kernel-runs.js";
import { answersOf, KINDS, PatchingRuns } from "./patching-runs.js";
import { PatchingTable } from "./patching-tables.js";
import { PatchingTexts } from "./patching-texts.js";
import { gradient, pane } from "../small-elements.js";
import { Studio } from "../studio.js";
import { stacked, textDrawing } from "../text/text-drawing.js";
import CSS from "./patching.css";

/** @import { PatchDocument } from "../../documents.js" */
/** @import { Drawing, GridPanel } from "../../types.js" */
/** @import { Grid } from "../../base/grid.js" */
/** @import { Kind, Pair, PatchTarget } from "./patching-runs.js" */
/** @import { StudioArguments } from "../studio.js" */

/** A studio that patches a language model. @extends {Studio<PatchDocument>} */
export class PatchingStudio extends Studio {
  get shortcuts() {
    return SHORTCUTS;
  }

  get clearedChoices() {
    return { clean_answer_id: -1, corrupt_answer_id: -1, target: [] };
  }

  /** @type {Pair | null} the texts that are shown */
  pair = null;
  /** @type {number[]} the ids of both answers */
  answers = [];
  /** @type {Float32Array | null} the logits of the patched run */
  patchedLogits = null;
  /** What the pointer or the cursor is at, in words. */
  reading = h("p", { class: "muted how-to", role: "status" });
  scale = h("p", { class: "scale-of-tables", hidden: true });
  sentence = h("p", {});
  remover = button("Without the patch", () => this.store.set({ target: [] }), { title: "Escape, in a table" });
  gauge = new PatchingGauge();

  /** @param {StudioArguments<PatchDocument>} args */
  constructor(...args) {
    super(...args);
    const { store, viewDocument, tokenizer, frame } = this;
    this.texts = new PatchingTexts(tokenizer, viewDocument.context, store);
    const Runs = this.options.engine ? PatchingKernelRuns : PatchingRuns;
    this.runs = new Runs(viewDocument, tokenizer.size, (...call) => this.run(...call));
    this.sweep = new PatchingSweep(this);
    this.next = new PatchingAnswers(tokenizer, store, {
      announce: (text) => this.announce(text),
      preload: (texts) => this.preloadEncodings(tokenizer, texts),
    });
    this.targetTables = KINDS.map(
      (kind) =>
        new PatchingTable(kind, frame.theme, {
          patch: (target) => this.patchAt(target),
          leave: () => store.set({ target: [] }),
          reading: (target) => this.describeCell(target),
          announce: (text) => {
            this.reading.textContent = text || scaleText(this.metrics);
          },
          fill: (kind) => void this.sweep.fill(kind),
        }),
    );
    this.buildPatchingPanes();
    this.showExamples([
      { name: "Find the position that brings most back", act: () => this.findStrongest("residual") },
      { name: "Find the head that brings most back", act: () => this.findStrongest("heads") },
      { name: "Swap the texts", act: () => this.swap() },
    ]);
    this.open();
  }

  buildPatchingPanes() {
    const { frame, headPane } = this;
    this.textPane = pane("text", "The texts", null, this.texts.element, this.next.choice, this.gauge.element);
    const tables = this.targetTables.map(({ element }) => element);
    const middle = pane(
      "heads-of-model",
      "Where does the answer come back?",
      null,
      this.reading,
      this.scale,
      headPane.opening,
      ...tables,
    );
    const bars = pane("prediction", "What comes next?", null, this.next.element);
    const summary = h("div", { class: "studio-summary" }, this.sentence, this.remover);
    const panes = h("div", { class: "stage panes patching" }, this.textPane, bars, middle);
    frame.body.before(h("style", {}, CSS));
    frame.showStage(h("div", { class: "sheet" }, panes, summary), "");
  }

  /** What is patched, if there is such a target in these texts. @returns {PatchTarget | null} */
  get target() {
    const [kind, layer, at] = this.store.get("target");
    if (!this.pair || !KINDS.includes(kind)) return null;
    const { layers, attentions, heads } = this.viewDocument;
    const [rows, columns] = kind === "residual" ? [layers, this.pair.ids[0].length] : [attentions, heads];
    const isIn = (/** @type {unknown} */ number, /** @type {number} */ count) =>
      Number.isInteger(number) && Number(number) >= 0 && Number(number) < count;
    return isIn(layer, rows.length) && isIn(at, columns) ? [kind, layer, at] : null;
  }

  /** @param {PatchTarget} target */
  patchAt(target) {
    const { problem } = this.texts;
    if (problem) return this.announce(problem);
    const same = String(target) === String(this.store.get("target"));
    return this.store.set({ target: same ? [] : target });
  }

  /** Encode both texts in Python, for a vocabulary that is not in the page; return false if that failed. */
  async preloadTexts() {
    const { store, texts } = this;
    const prepared = texts.texts.map(({ name, prompt }) => this.prepareText(prompt, store.get(name)));
    return (await Promise.all(prepared)).every(Boolean);
  }

  async refresh() {
    const isCurrent = this.requests.begin();
    if ((await this.preloadTexts()) && isCurrent()) await this.compare(isCurrent);
  }

  /** Run the model on both texts and on the patched one, and show what it says. @param {() => boolean} isCurrent */
  async compare(isCurrent) {
    const { problem, ids } = this.texts;
    this.texts.show(this.markedPosition);
    if (problem) {
      this.sweep.stop();
      return void this.announce(problem);
    }
    this.announce("");
    try {
      const pair = await this.runs.read(ids);
      if (!pair || !isCurrent()) return;
      const other = this.pair !== pair;
      if (other) this.sweep.stop();
      this.pair = pair;
      const { target } = this;
      const patched = target && (await this.runs.patch("patch", pair, target));
      if (!isCurrent() || (target && !patched)) return;
      this.patchedLogits = patched;
      this.answers = answersOf(pair, [this.store.get("clean_answer_id"), this.store.get("corrupt_answer_id")]);
      this.show(pair);
      if (other) await this.sweep.fillIfQuick(pair);
    } catch (error) {
      if (isCurrent()) this.frame.showError(/** @type {Error} */ (error));
    }
  }

  /** The position that is patched. */
  get markedPosition() {
    return this.target?.[0] === "residual" ? this.target[2] : null;
  }

  /** @param {Pair} pair */
  show(pair) {
    const { clean, corrupt } = pair;
    this.headPane.opening.remove();
    this.showSubject();
    this.texts.show(this.markedPosition);
    this.next.show({ clean: clean.logits, corrupt: corrupt.logits, patched: this.patchedLogits }, this.answers);
    this.reading.textContent = scaleText(this.metrics); // until a cell is pointed at
    this.showTables();
    this.gauge.show(this.metrics, this.patchedLogits && this.metric(this.patchedLogits));
    this.showSentence();
    this.frame.updateTable();
  }

  showTables() {
    const { pair } = this;
    if (!pair) return;
    const { layers, attentions, heads } = this.viewDocument;
    const [positions] = pair.ids;
    const changes = this.targetTables.map(({ kind }) =>
      this.runs.targetsOf(kind, positions.length).map((target) => this.changeAt(target)),
    );
    const limit = changes.flat().reduce((/** @type {number} */ most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
    this.showScale(limit);
    this.targetTables.forEach((patchingTable, i) => {
      const { kind } = patchingTable;
      const values = changes[i];
      const isResidual = kind === "residual";
      patchingTable.show({
        rows: isResidual ? layers : attentions,
        columns: isResidual
          ? this.texts.positionNames(pair.ids)
          : Array.from({ length: heads }, (_, head) => String(head)),
        values,
        limit: limit || 1,
        target: this.target,
      });
      const known = values.filter((value) => value !== null).length;
      patchingTable.showProgress(known, values.length, this.sweep.kind === kind);
    });
  }

  /** Show the colours of both tables, once a cell is known. @param {number} limit */
  showScale(limit) {
    this.scale.hidden = !limit;
    const ends = [-limit, 0, limit].map((value) => h("output", {}, value ? withSign(value) : "0"));
    this.scale.replaceChildren(h("span", { class: "marked-scale" }, gradient(this.frame.theme.diverging), ...ends));
  }

  /** The difference of both answers' logits. @param {Float32Array} logits */
  metric(logits) {
    const [cleanAnswer, corruptAnswer] = this.answers;
    return logits[cleanAnswer] - logits[corruptAnswer];
  }

  /** The metric of both unpatched runs. */
  get metrics() {
    const { pair } = this;
    return { clean: pair ? this.metric(pair.clean.logits) : 0, corrupt: pair ? this.metric(pair.corrupt.logits) : 0 };
  }

  /** How much a patch there changes the metric of the corrupt run; null if it is not computed yet. @param {PatchTarget} target */
  changeAt(target) {
    const logits = this.pair && this.runs.known(this.pair, target);
    return logits ? this.metric(logits) - this.metrics.corrupt : null;
  }

  /** @param {PatchTarget} target */
  nameOf([kind, layer, at]) {
    const { layers, attentions } = this.viewDocument;
    if (kind === "heads") return `layer ${attentions[layer]}, head ${at}`;
    const name = this.pair ? this.texts.positionNames(this.pair.ids)[at] : "";
    return `layer ${layers[layer]}, position ${at} ${quoted(name)}`;
  }

  /** @param {PatchTarget} target */
  describeCell(target) {
    const change = this.changeAt(target);
    return `${this.nameOf(target)}: ${change === null ? "not computed yet" : changeText(this.metrics, change)}`;
  }

  showSentence() {
    const { target, patchedLogits, metrics } = this;
    const [cleanAnswer, corruptAnswer] = this.tokenizer.tokens(this.answers).map((word) => quoted(word));
    const metric = `logit of ${cleanAnswer} − logit of ${corruptAnswer}`;
    this.remover.hidden = !target;
    const parts =
      target && patchedLogits
        ? patchedText(metrics, this.metric(patchedLogits), { name: this.nameOf(target), kind: target[0], metric })
        : unpatchedText(metrics, metric, this.strongestCell);
    this.sentence.replaceChildren(...parts.map(([text, bold]) => (bold ? h("b", {}, text) : text)));
  }

  /** Fill a table, and patch the target that brings most of the answer back. @param {Kind} kind */
  async findStrongest(kind) {
    const { pair } = this;
    if (!pair || this.texts.problem) return;
    await (this.sweep.kind === kind ? this.sweep.running : this.sweep.fill(kind));
    if (this.pair !== pair) return;
    const best = this.strongestOf(kind, pair);
    if (best) this.store.set({ target: best });
    await this.whenIdle();
  }

  /** Return the target that brings most of the answer back, of those that are known. @param {Kind} kind @param {Pair} pair */
  strongestOf(kind, pair) {
    const sign = Math.sign(this.metrics.clean - this.metrics.corrupt) || 1;
    const targets = this.runs.targetsOf(kind, pair.ids[0].length).filter((target) => this.changeAt(target) !== null);
    const gain = (/** @type {PatchTarget} */ target) => sign * Number(this.changeAt(target));
    return targets.reduce((most, target) => (gain(target) > gain(most) ? target : most), targets[0]);
  }

  /** The position of the residual stream that brings most of the answer back; null until all are known. */
  get strongestCell() {
    const { pair } = this;
    const targets = pair ? this.runs.targetsOf("residual", pair.ids[0].length) : [];
    if (!pair || targets.some((target) => this.changeAt(target) === null)) return null;
    const target = this.strongestOf("residual", pair);
    return { name: this.nameOf(target), change: Number(this.changeAt(target)) };
  }

  /** Patch the clean run with what the corrupt run has. */
  swap() {
    const { store } = this;
    const [cleanAnswer, corruptAnswer] = this.answers;
    const [clean, corrupt] = [store.get("corrupt"), store.get("clean")];
    const swapped = cleanAnswer === undefined ? {} : { clean_answer_id: corruptAnswer, corrupt_answer_id: cleanAnswer };
    store.set({ clean, corrupt, ...swapped });
  }

  get size() {
    const { layers, heads } = this.viewDocument;
    return `${formatCount(layers.length, "layer")} × ${formatCount(heads, "head")}`;
  }

  /** @returns {GridPanel<Grid>[] | null} */
  panels() {
    return this.pair ? [...this.targetTables.flatMap(({ panels }) => panels), ...this.next.panels] : null;
  }

  /** @returns {Drawing} */
  get drawing() {
    const { theme } = this.frame;
    const texts = this.texts.texts.map(({ editor: { element } }) =>
      textDrawing(element, element.querySelectorAll(".token")),
    );
    return stacked([
      ...texts,
      ...this.targetTables.map((patchingTable) => patchingTable.drawing(theme)),
      this.next.drawing(theme),
    ]);
  }
}

const SHORTCUTS = [
  ["arrows, Enter", "in a table: to another cell, patch there"],
  ["Escape", "in a table: take the patch away"],
  ["+ − 0", "in a table: closer, farther, all"],
  ["Enter", "on a next token: make it an answer"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
];

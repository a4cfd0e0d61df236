// The studio of an image classifier: patches that can be hidden, the effect of each patch, and heads that can be shown
// and switched off.

import { button, h, tabs } from "../../base/elements.js";
import { clamp, percent } from "../../base/numbers.js";
import { capital, quotedExcerpt } from "../../base/visible-text.js";
import { LogitsCache } from "../logits-cache.js";
import { AttendedPatches } from "./attended-patches.js";
import { HEAD_SHORTCUTS } from "../head-pane.js";
import { PatchAttention } from "./patch-attention.js";
import { probabilityQuery } from "../head-ablation.js";
import { effectSentence, attentionSentence, topPatches } from "./image-summary.js";
import { LabelBars } from "./label-bars.js";
import { imageExamples } from "./image-examples.js";
import { softmax } from "../logits.js";
import { note } from "../small-elements.js";
import { PatchEffects } from "./patch-effects.js";
import { PatchPane, scaleParts } from "./patch-pane.js";
import { probabilitiesDrawing } from "../probability-bars.js";
import { Studio } from "../studio.js";
import { stacked } from "../text/text-drawing.js";

/** @import { ClassifyImageDocument, ClassifyImageState } from "../../documents.js" */
/** @import { Grid } from "../../base/grid.js" */
/** @import { Drawing, Pen } from "../../types.js" */
/** @import { Answer, AskOptions } from "../logits-cache.js" */
/** @import { HeadAddress } from "../model-pane.js" */
/** @import { StudioArguments } from "../studio.js" */

const MAX_ANSWERS = 2000; // cached answers
const HIDE_HELP = "Click a patch, or drag over some, to hide them.";
/** @type {(readonly [ClassifyImageState["shade"], string])[]} */
const SHADE_OPTIONS = [
  ["nothing", "nothing"],
  ["effect", "effect of hiding"],
  ["attention", "attention"],
];

/** A studio that shows the labels a model predicts for a picture. @extends {Studio<ClassifyImageDocument>} */
export class ClassifyImageStudio extends Studio {
  get shortcuts() {
    return IMAGE_SHORTCUTS;
  }

  /** @type {Answer | null} */
  answer = null;
  /** @type {Answer | null} the answer for the whole picture with all heads on */
  baseline = null;
  answers = new LogitsCache(this, MAX_ANSWERS);
  attention = new PatchAttention(this.viewDocument);

  /** @param {StudioArguments<ClassifyImageDocument>} args */
  constructor(...args) {
    super(...args);
    this.heads.selectedToo = { shade: "attention" }; // who clicks a head asks where it looks
    const { image, patches } = this.viewDocument;
    this.pane = new PatchPane(this.frame.theme, image, patches, {
      point: () => this.repoint(),
      hide: (hidden) => this.hide(hidden),
      group: (stroke) => this.history.group(stroke),
    });
    this.loading = this.pane.source.ready();
    this.effects = new PatchEffects(this, () => this.showEffects());
    this.shades = tabs("Shade patches by", SHADE_OPTIONS, this.store.get("shade"), (shade) =>
      this.store.set({ shade }),
    );
    this.scale = h("p", { class: "scale" });
    const showAll = () => {
      this.hide([]);
      this.pane.canvas.focus(); // the button goes
    };
    this.resetButton = button("Show all", showAll, { title: "all patches" });
    this.verdict = new LabelBars(this);
    this.attended = new AttendedPatches(this);
    const shading = h("div", { class: "row" }, note("Shade by"), this.shades.element, this.resetButton);
    this.buildPanes({
      textTitle: "The picture",
      text: [this.pane.element, this.scale, this.effects.progress, h("div", { class: "foot" }, shading)],
      predictionTitle: "What it says",
      prediction: [this.verdict.element, this.attended.element],
    });
    this.showExamples(imageExamples(this));
    this.open();
  }

  get reads() {
    const { rows, columns } = this.viewDocument.patches;
    return `reads ${rows} × ${columns} patches`;
  }

  /** How many patches there are. */
  get patchCount() {
    const { rows, columns } = this.viewDocument.patches;
    return rows * columns;
  }

  /** Name a patch by its row and column, as a reader counts. @param {number} patch */
  patchName(patch) {
    const { columns } = this.viewDocument.patches;
    return `row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`;
  }

  /** Names of all tokens: those before the patches belong to no place of the picture. */
  get tokenNames() {
    const { tokens, patches } = this.viewDocument;
    const { first } = patches;
    return tokens.map((name, token) => {
      if (token >= first && token < first + this.patchCount) return this.patchName(token - first);
      return token === 0 ? "the class token" : `the extra token ${name}`;
    });
  }

  /** The hidden patches that exist; an address may name others. */
  get hidden() {
    return this.store.get("hidden_patches").filter((patch) => patch >= 0 && patch < this.patchCount);
  }

  /** @param {Iterable<number>} patches */
  hide(patches) {
    this.store.set({ hidden_patches: [...new Set(patches)].sort((a, b) => a - b) });
  }

  /** The label that is followed. */
  get label() {
    return clamp(this.store.get("label"), 0, this.viewDocument.labels.length - 1);
  }

  get pointed() {
    return this.pane.pointed;
  }

  /** Update everything that depends on the patch under the pointer. */
  repoint() {
    if (this.answer) this.showModel();
    else this.showPicture();
    this.announceFocus();
  }

  async refresh() {
    await this.loading;
    this.showPicture(); // at once, without waiting for the model
    this.shades.show(this.store.get("shade"));
    this.measuring = undefined;
    const isCurrent = this.requests.begin();
    if (!(await this.read(isCurrent))) return;
    this.verdict.show();
    this.announceFocus();
    this.frame.updateTable();
    if (this.store.get("shade") === "effect") this.measuring = this.effects.measure(isCurrent);
  }

  /** The query: the patch that is pointed at, else the class token; null for the mean over all. */
  get query() {
    const { first } = this.viewDocument.patches;
    if (this.pointed !== null) return first + this.pointed;
    return first ? 0 : null;
  }

  /** What shades the picture, in words. */
  get shadingName() {
    return this.query === null ? "all patches look, on average" : `${this.tokenNames[this.query]} looks`;
  }

  /** The query in words. */
  get from() {
    return this.query === null ? "from all patches in the mean" : `from ${this.tokenNames[this.query]}`;
  }

  /**
   * Run the model without these patches; null if a newer request on this channel replaced it.
   * @param {string} channel
   * @param {number[]} hidden
   * @param {AskOptions} [options]
   * @returns {Promise<Answer | null>}
   */
  ask(channel, hidden, options = {}) {
    const data = new Uint8Array(this.patchCount);
    for (const patch of hidden) data[patch] = 1;
    return this.answers.ask(channel, hidden, { hidden: { shape: [data.length], data } }, options);
  }

  /**
   * Request the answers for the current choices and for the whole picture; false if the choices have changed meanwhile.
   * @param {() => boolean} isCurrent
   */
  async read(isCurrent) {
    const { hidden, edits } = this;
    const [answer, baseline] = await Promise.all([
      this.ask("read", hidden, { edits, capture: true }),
      hidden.length || edits.length ? this.ask("baseline", []) : null,
    ]);
    if (!answer || !isCurrent()) return false;
    this.answer = answer;
    this.baseline = baseline ?? answer;
    const { tokens } = this.viewDocument;
    this.showMaps(answer, answer.patterns, () => [tokens, tokens]);
    return true;
  }

  showModel() {
    if (!this.heads.groups.length) return;
    this.attention.update(this.heads, this.query);
    super.showModel();
  }

  /** @param {HeadAddress} address */
  thumbnail(address) {
    return this.attention.thumb(address);
  }

  /** The grid that shades the patches; null for none. @returns {Grid | null} */
  get shading() {
    const shade = this.store.get("shade");
    if (!this.answer || !this.heads.groups.length || shade === "nothing") return null;
    if (shade === "effect") return this.effects.grid;
    return this.heads.isAblated(this.heads.selected) ? null : this.attention.thumb(this.heads.selected);
  }

  showPicture() {
    const { shading } = this;
    this.resetButton.hidden = !this.hidden.length;
    this.scale.hidden = !shading;
    if (shading) this.scale.replaceChildren(...scaleParts(this.frame.theme, shading, this.verdict.labelText));
    const { profile } = this;
    this.pane.show(this.hidden, shading, profile ? this.attended.strongest(profile) : []);
  }

  /** What the chosen head gives each token; null if it is off or not known yet. */
  get profile() {
    const { heads, attention } = this;
    return heads.groups.length && !heads.isAblated(heads.selected) ? (attention.of(heads.selected) ?? null) : null;
  }

  /** The patch that the chosen head looks at most. @returns {number | null} */
  get topPatch() {
    const { profile } = this;
    return profile && topPatches(profile.values, this.viewDocument.patches, 1)[0];
  }

  get mapLegend() {
    return { text: "Each map shows where on the picture that head looks.", limit: this.attention.limit };
  }

  showSource() {
    if (this.topPatch === null) this.sourceLabel.textContent = "";
    else if (this.store.get("shade") === "attention") this.showShadingHead(this.shadingName);
    else this.sourceLabel.textContent = "Numbered: where it looks most";
    this.attended.show(this.profile);
    this.showPicture();
  }

  showEffects() {
    this.showPicture();
    this.announceFocus();
    if (this.effects.progress.hidden) this.frame.updateTable();
  }

  /** @param {HeadAddress} at */
  describeHead(at) {
    return attentionSentence(this.attention.of(at), this.tokenNames, this.viewDocument.patches, this.from);
  }

  get ablationQuery() {
    const { answer, label, hidden } = this;
    if (!answer) return null;
    return probabilityQuery(this.verdict.labelText, {
      key: `${label} ${hidden}`,
      answer,
      probability: ({ logits }) => softmax(logits)[label],
      ask: (edits) => this.ask("ablation", hidden, { edits }),
    });
  }

  /** Describe the effect of all hidden patches and switched-off heads together; if there are none, of the head. @param {HeadAddress} address */
  describeAblation(address) {
    const { answer, baseline, label, hidden } = this;
    if (!answer || !baseline) return "";
    if (!hidden.length && !this.edits.length) return super.describeAblation(address);
    const [baselineProbability, edited] = [baseline, answer].map(({ logits }) => softmax(logits)[label]);
    return effectSentence(this.verdict.labelText, baselineProbability, edited, this.hidden.length, this.edits.length);
  }

  /** Announce the values of the patch under the pointer. */
  announceFocus() {
    const { pointed: patch, answer } = this;
    if (patch === null || !answer || !this.heads.groups.length) return this.announce(HIDE_HELP);
    const remarks = [];
    if (this.hidden.includes(patch)) remarks.push("hidden");
    if (this.viewDocument.patches.first && !this.heads.isAblated(this.heads.selected)) {
      const weight = this.heads.grid(this.heads.selected).at(0, this.viewDocument.patches.first + patch);
      remarks.push(`the class token gives it ${percent(weight)} of its attention`);
    }
    const without = this.effects.of(patch) === undefined ? null : this.effects.logits.get(patch);
    if (without) {
      const [now, then] = [answer.logits, without].map((logits) => percent(softmax(logits)[this.label]));
      remarks.push(`without it ${this.verdict.labelText} goes ${now} → ${then}`);
    }
    return this.announce(`${capital(this.patchName(patch))}${remarks.length ? `: ${remarks.join("; ")}` : ""}`);
  }

  panels() {
    return this.answer && [this.verdict.panel];
  }

  /** The picture is shaded by it already. */
  get headDrawing() {
    return null;
  }

  /** @returns {Drawing} */
  get drawing() {
    const { width, height } = this.pane;
    const rows = this.verdict.rows.map(({ name, probability }) => ({ name: quotedExcerpt(name, 16), probability }));
    const picture = { width, height, draw: (/** @type {Pen} */ pen) => this.pane.paint(pen) };
    return stacked([picture, probabilitiesDrawing(this.frame.theme, rows)]);
  }
}

const IMAGE_SHORTCUTS = [
  ["arrows, Home, End", "on the picture: from patch to patch"],
  ["Space", "hide a patch, or bring it back"],
  ["Esc", "point at no patch"],
  HEAD_SHORTCUTS,
];

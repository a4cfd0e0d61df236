// A classifier of pictures to question: patches to hide, what each is worth, heads to look at and to switch off.

import { h, tabs } from "../base/elements.js";
import { formatted, percent } from "../base/numbers.js";
import { HEAD_KEYS } from "./head-pane.js";
import { ImageStudio } from "./image-studio.js";
import { effectSentence, lookSentence } from "./image-summary.js";
import { imageTries } from "./image-tries.js";
import { softmax, topK } from "./logits.js";
import { button, joined, note } from "./parts.js";
import { PatchEffects } from "./patch-effects.js";
import { PatchPane } from "./patch-pane.js";
import { scaleParts } from "./patch-scale.js";
import { bars, drawShares, sharesHeight, sharesPanel } from "./probability-bars.js";
import { cited, visibleText } from "./visible-text.js";

/** @import { ClassifyImageState } from "../documents.d.ts" */
/** @import { Grid } from "../base/grid.js" */
/** @import { Drawing, Pen } from "../types.d.ts" */
/** @import { Place } from "./model-pane.js" */
/** @import { Share } from "./probability-bars.js" */

const LABELS = 8; // that are shown, the likeliest
const HOW = "Click or drag over patches to hide them: a hidden patch has the picture’s mean colour.";
/** @type {(readonly [ClassifyImageState["shade"], string])[]} */
const SHADES = [
  ["attention", "attention"],
  ["effect", "effect"],
  ["nothing", "nothing"],
];

export class ImageClassifier extends ImageStudio {
  get keys() {
    return IMAGE_KEYS;
  }

  build() {
    const { picture, patches } = this.described;
    /** @type {PatchPane} */
    this.pane = new PatchPane(this.frame.theme, picture, patches, {
      point: () => this.repoint(),
      hide: (hidden) => this.hide(hidden),
      group: (stroke) => this.history.group(stroke),
    });
    this.loading = this.pane.source.ready();
    /** @type {PatchEffects} */
    this.effects = new PatchEffects(this, () => this.showEffects());
    /** @type {{ element: HTMLElement, show(shade: ClassifyImageState["shade"]): void }} */
    this.shades = tabs("Shade patches by", SHADES, this.store.get("shade"), (shade) => this.store.set({ shade }));
    /** @type {HTMLElement} */
    this.scale = h("p", { class: "scale" });
    const showAll = () => {
      this.hide([]);
      this.pane.canvas.focus(); // the button goes
    };
    /** @type {HTMLElement} */
    this.reset = button("Show all patches", showAll);
    /** @type {HTMLElement} */
    this.verdict = h("div", { class: "shares", role: "group", "aria-label": "Verdict: press a label to follow it" });
    const shading = h("div", { class: "row" }, note("Shade by"), this.shades.element, this.reset);
    this.compose({
      textTitle: "The picture",
      text: [this.pane.element, shading, this.scale, this.effects.progress],
      saysTitle: "What it says",
      says: [this.verdict],
    });
    this.showTries(imageTries(this));
  }

  get pointed() {
    return this.pane?.pointed ?? null;
  }

  /** Show what another patch, now pointed at, changes. */
  repoint() {
    if (this.answer) this.showModel();
    else this.showPicture();
    this.remind();
  }

  async refresh() {
    await this.loading;
    this.showPicture(); // at once, whatever the model takes
    this.shades.show(this.store.get("shade"));
    this.measuring = undefined;
    if (!(await this.read())) return;
    this.showVerdict();
    this.remind();
    this.frame.renewTable();
    if (this.store.get("shade") === "effect") this.measuring = this.effects.measure();
  }

  /** Until each patch is measured, too. */
  async settled() {
    await this.refresh();
    await this.measuring;
  }

  /** What the patches are shaded by; null for nothing. @returns {Grid | null} */
  get shading() {
    const shade = this.store.get("shade");
    if (!this.answer || !this.heads.groups.length || shade === "nothing") return null;
    if (shade === "effect") return this.effects.grid;
    return this.heads.isOff(this.heads.selected) ? null : this.thumbOf(this.heads.selected);
  }

  showPicture() {
    const { shading } = this;
    this.reset.hidden = !this.hidden.length;
    this.scale.hidden = !shading;
    if (shading)
      this.scale.replaceChildren(...scaleParts(this.frame.theme, shading, this.described.words.length, this.labelText));
    this.pane.show(this.hidden, shading);
  }

  showFrom() {
    const { layer, head } = this.heads.selected;
    const attention = this.store.get("shade") === "attention";
    this.sourceLabel.textContent = attention ? `${this.from}, layer ${layer} head ${head}` : "";
    this.showPicture();
  }

  showEffects() {
    this.showPicture();
    this.remind();
    if (this.effects.progress.hidden) this.frame.renewTable();
  }

  get labelText() {
    return cited(this.described.labels[this.label], 24);
  }

  /** @param {Place} at */
  habit(at) {
    const { words, patches } = this.described;
    return lookSentence(this.lookOf(at), words, patches, this.from);
  }

  /** Describe the effect of all hidden patches and switched-off heads together. */
  worth() {
    const { answer, compared, label } = this;
    if (!answer || !compared) return "";
    const [before, after] = [compared, answer].map(({ logits }) => softmax(logits)[label]);
    return effectSentence(this.labelText, before, after, this.hidden.length, this.edits.length);
  }

  /** Announce what is known of the patch under the pointer. */
  remind() {
    const { pointed: patch, answer } = this;
    if (patch === null || !answer || !this.heads.groups.length) return this.announce(HOW);
    const remarks = [];
    if (this.hidden.includes(patch)) remarks.push("hidden");
    if (this.described.patches.first && !this.heads.isOff(this.heads.selected)) {
      const weight = this.heads.grid(this.heads.selected).at(0, this.described.patches.first + patch);
      remarks.push(`${this.described.words[0]} looks at it with ${formatted(weight)}`);
    }
    const without = this.effects.of(patch) === undefined ? null : this.effects.logits.get(patch);
    if (without) {
      const [now, then] = [answer.logits, without].map((logits) => percent(softmax(logits)[this.label]));
      remarks.push(`without it ${this.labelText} goes ${now} → ${then}`);
    }
    return this.announce(`Patch ${joined([this.patchName(patch), remarks.join("; ")], ": ")}`);
  }

  showVerdict() {
    const changed = this.compared !== this.answer;
    const line = changed ? "The line: the whole picture, all heads on" : "";
    const follow = (/** @type {number} */ label) => () => this.store.set({ label });
    const rows = this.verdicts.map((row) => ({
      ...row,
      name: visibleText(row.name),
      kind: row.label === this.label ? "followed" : "",
      title: row.label === this.label ? "followed in the sentence below" : "press to follow it",
      onclick: follow(row.label),
    }));
    this.verdict.replaceChildren(note(line), ...bars(rows));
  }

  /**
   * The likeliest labels of the whole picture, the one that is followed and the likeliest now; sorted by the whole
   * picture, so that the order stays.
   * @returns {(Share & { label: number })[]}
   */
  get verdicts() {
    const { answer, compared, label } = this;
    if (!answer || !compared) return [];
    const [now, before] = [answer, compared].map(({ logits }) => softmax(logits));
    const labels = [...new Set([label, topK(now, 1)[0], ...topK(before, LABELS)])].slice(0, LABELS);
    const changed = compared !== answer;
    return labels
      .sort((a, b) => before[b] - before[a] || a - b)
      .map((i) => ({ label: i, name: this.described.labels[i], share: now[i], other: changed ? before[i] : null }));
  }

  panels() {
    return this.answer
      ? [sharesPanel("verdict", "label", this.verdicts, ["now", "whole picture, all heads on"])]
      : null;
  }

  /** @returns {Drawing} */
  get drawing() {
    const { width, height } = this.pane;
    const rows = this.verdicts.map(({ name, share }) => ({ name: cited(name, 16), share }));
    const draw = (/** @type {Pen} */ pen) => {
      this.pane.paint(pen);
      drawShares(pen, this.frame.theme, rows, height + 12);
    };
    return { width: Math.max(420, width), height: height + 12 + sharesHeight(rows), draw };
  }
}

const IMAGE_KEYS = [
  ["arrows, Home, End", "on the picture: from patch to patch"],
  ["Space", "hide a patch, or bring it back"],
  ["Esc", "point at no patch"],
  HEAD_KEYS,
];

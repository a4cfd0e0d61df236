// The effect of each patch of a picture on a classifier, measured by running the model once without each patch.

import { ABSENT, Grid, ALLOWED } from "../../base/grid.js";
import { numbered } from "../../base/patch-grid.js";
import { h } from "../../base/elements.js";
import { throttle } from "../../base/throttle.js";
import { answerKey } from "../logits-cache.js";
import { logOdds } from "../logits.js";

/** @import { ClassifyImageStudio } from "./classify-image-studio.js" */

const MIN_LIMIT = 0.5; // of the scale: below it all are pale
const DRAW_INTERVAL = 150; // milliseconds between two drawings while patches are measured

/** A component that measures and stores the effects of patches. */
export class PatchEffects {
  /** @type {Map<number, Float32Array>} patch -> the logits without it */
  logits = new Map();
  /** The key of the picture and heads that were measured. */
  key = "";

  /** @param {ClassifyImageStudio} studio @param {() => void} changed called when more effects are known */
  constructor(studio, changed) {
    this.studio = studio;
    this.changed = changed;
    this.progress = h("progress", { "aria-label": "Patches left out so far", hidden: true });
  }

  /**
   * Measure all patches, again if the picture or the heads have changed; stop if another state is requested.
   * @param {() => boolean} isCurrent
   */
  async measure(isCurrent) {
    const { studio } = this;
    const { hidden, edits } = studio;
    const key = answerKey(hidden, edits);
    if (key !== this.key) this.logits = new Map();
    this.key = key;
    const rest = [...Array(studio.patchCount).keys()].filter(
      (patch) => !hidden.includes(patch) && !this.logits.has(patch),
    );
    this.progress.max = rest.length;
    const showProgress = throttle(this.changed, DRAW_INTERVAL);
    for (const [done, patch] of rest.entries()) {
      this.progress.value = done;
      this.progress.hidden = false;
      const without = [...hidden, patch].sort((a, b) => a - b);
      const answer = await studio.ask("measure", without, { edits });
      if (!isCurrent()) return;
      if (answer) this.logits.set(patch, answer.logits);
      showProgress();
    }
    this.progress.hidden = true;
    this.changed();
  }

  /**
   * Return the change of the followed label's log-odds without a patch; undefined if it is not known.
   * @param {number} patch
   * @returns {number | undefined}
   */
  of(patch) {
    const { answer, label } = this.studio;
    const without = this.logits.get(patch);
    if (!answer || !without || this.key !== answer.key) return undefined;
    return logOdds(without, label) - logOdds(answer.logits, label);
  }

  /** What each patch adds to the followed label, as a grid of the picture's patches. */
  get grid() {
    const { studio } = this;
    const { rows, columns } = studio.viewDocument.patches;
    const effects = Array.from({ length: rows * columns }, (_, patch) => this.of(patch));
    const limit = Math.max(MIN_LIMIT, ...effects.map((effect) => Math.abs(effect ?? 0)));
    const state = Uint8Array.from(effects, (effect) => (effect === undefined ? ABSENT : ALLOWED));
    const values = effects.map((effect) => -(effect ?? 0)); // what it adds
    return Grid.of(numbered(rows), numbered(columns), values, state, { scale: "diverging", limit });
  }

  /** The patch without which the followed label's log-odds fall most; null if none is measured. */
  get topPatch() {
    const known = [...this.logits.keys()].filter((patch) => this.of(patch) !== undefined);
    return known.sort((a, b) => Number(this.of(a)) - Number(this.of(b)))[0] ?? null;
  }
}

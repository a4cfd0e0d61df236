// A component that shows the likeliest labels of a picture as bars, one of which is selected.

import { h } from "../../base/elements.js";
import { quotedExcerpt, visibleText } from "../../base/visible-text.js";
import { softmax, topK } from "../logits.js";
import { bars, markFew, probabilitiesPanel } from "../probability-bars.js";
import { note } from "../small-elements.js";

/** @import { ClassifyImageStudio } from "./classify-image-studio.js" */
/** @import { ProbabilityRow } from "../probability-bars.js" */

const MAX_LABELS = 8; // the likeliest labels that are shown

/** A list of labels with their probabilities. */
export class LabelBars {
  /** @param {ClassifyImageStudio} studio */
  constructor(studio) {
    this.studio = studio;
    this.element = h("div", { class: "bar-list", role: "group", "aria-label": "Verdict: press a label to follow it" });
  }

  /** The label that is followed, in quotes. */
  get labelText() {
    const { viewDocument, label } = this.studio;
    return quotedExcerpt(viewDocument.labels[label], 24);
  }

  show() {
    const { baseline, answer, label, store } = this.studio;
    const line = baseline !== answer ? "The line: the whole picture, all heads on" : "";
    const rows = this.rows.map((row) => ({
      ...row,
      name: visibleText(row.name),
      kind: row.label === label ? "followed" : "",
      title: row.label === label ? "followed in the sentence below" : "press to follow it",
      onclick: () => store.set({ label: row.label }),
    }));
    this.element.replaceChildren(note(line), ...bars(rows));
    markFew(this.element);
  }

  /**
   * The likeliest labels of the whole picture, the one that is followed and the likeliest now; sorted by the whole
   * picture, so that the order stays.
   * @returns {(ProbabilityRow & { label: number })[]}
   */
  get rows() {
    const { answer, baseline, viewDocument, label } = this.studio;
    if (!answer || !baseline) return [];
    const [now, baselineProbabilities] = [answer, baseline].map(({ logits }) => softmax(logits));
    const labels = [...new Set([label, topK(now, 1)[0], ...topK(baselineProbabilities, MAX_LABELS)])].slice(
      0,
      MAX_LABELS,
    );
    const changed = baseline !== answer;
    return labels
      .sort((a, b) => baselineProbabilities[b] - baselineProbabilities[a] || a - b)
      .map((i) => ({
        label: i,
        name: viewDocument.labels[i],
        probability: now[i],
        baseline: changed ? baselineProbabilities[i] : null,
      }));
  }

  get panel() {
    return probabilitiesPanel("verdict", "label", this.rows, ["now", "whole picture, all heads on"]);
  }
}

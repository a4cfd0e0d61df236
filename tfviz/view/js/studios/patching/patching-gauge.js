// A gauge of patching: from the metric of the corrupt run to that of the clean one, and how far a patch gets.

import { h } from "../../base/elements.js";
import { clamp, percent, withSign } from "../../base/numbers.js";
import { shareBack } from "./patching-runs.js";

/** A bar from the corrupt run to the clean run, with the share that a patch brings back. */
export class PatchingGauge {
  constructor() {
    this.corrupt = h("span", {});
    this.share = h("b", {});
    this.clean = h("span", {});
    this.bar = h("span", { class: "bar" });
    this.note = h("small", {}, "logit of the clean text's answer − logit of the other");
    const track = h("span", { class: "track" }, this.bar);
    this.element = h("div", { class: "gauge" }, this.corrupt, this.share, this.clean, track, this.note);
  }

  /** @param {{ clean: number, corrupt: number }} metrics of both runs @param {number | null} patched */
  show(metrics, patched) {
    const share = patched === null ? null : shareBack(metrics, patched);
    this.corrupt.textContent = `corrupt ${withSign(metrics.corrupt)}`;
    this.clean.textContent = `clean ${withSign(metrics.clean)}`;
    this.share.textContent = share === null ? "" : percent(share);
    this.bar.style.width = `${100 * clamp(share ?? 0, 0, 1)}%`;
  }
}

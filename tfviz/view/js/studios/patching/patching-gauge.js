// A gauge of patching: the metric of the corrupt run and that of the clean one as two ticks, and how far a patch gets,
// short of them or beyond.

import { h } from "../../base/elements.js";
import { clamp, percent, withSign } from "../../base/numbers.js";
import { shareBack } from "./patching-runs.js";

const [MIN_SHARE, MAX_SHARE] = [-1, 2]; // that the gauge shows; of more, its number tells

/** A bar from the tick of the corrupt run, with the share that a patch brings back. */
export class PatchingGauge {
  constructor() {
    this.corrupt = h("span", {});
    this.share = h("b", {});
    this.clean = h("span", {});
    this.bar = h("span", { class: "bar" });
    this.note = h("small", {}, "logit of the clean answer − logit of the corrupt one");
    const ticks = [h("span", { class: "tick from" }), h("span", { class: "tick to" })];
    const ends = h("span", { class: "ends" }, this.corrupt, this.clean);
    const track = h("span", { class: "track" }, this.bar, ...ticks);
    this.element = h("div", { class: "gauge" }, ends, track, this.note, this.share);
  }

  /** @param {{ clean: number, corrupt: number }} metrics of both runs @param {number | null} patched */
  show(metrics, patched) {
    const share = patched === null ? null : shareBack(metrics, patched);
    this.corrupt.textContent = `corrupt ${withSign(metrics.corrupt)}`;
    this.clean.textContent = `clean ${withSign(metrics.clean)}`;
    this.share.textContent = share === null ? "" : percent(share);
    const clamped = clamp(share ?? 0, MIN_SHARE, MAX_SHARE);
    const [low, high] = [clamped < 0 ? MIN_SHARE : 0, clamped > 1 ? MAX_SHARE : 1];
    const at = (/** @type {number} */ value) => `${(100 * (value - low)) / (high - low)}%`;
    this.element.style.setProperty("--from", at(0));
    this.element.style.setProperty("--to", at(1));
    this.element.classList.toggle("against", clamped < 0);
    this.bar.style.left = at(Math.min(0, clamped));
    this.bar.style.width = at(low + Math.abs(clamped)); // the share of the track that it covers
  }
}

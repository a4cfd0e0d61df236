// A component that shows the likeliest next tokens: as bars with a line that sets the cut-off, as a table, and as a
// drawing.

import { focusedIn, h, tabs } from "../../base/elements.js";
import { clamp, formatFixed } from "../../base/numbers.js";
import { label, quotedExcerpt } from "../../base/visible-text.js";
import { animateReorder } from "../animation.js";
import { topK } from "../logits.js";
import { joinPresent } from "../small-elements.js";
import { ThresholdLine } from "./threshold-line.js";
import { bars, probabilitiesDrawing, probabilitiesPanel } from "../probability-bars.js";
import { lastOf } from "./language-model-reader.js";
import { probabilities } from "./sampler.js";

const MAX_BARS = 10;
const MAX_ENDING = 12; // letters of the text that are quoted

/** @import { Theme } from "../../base/theme.js" */
/** @import { WriteState } from "../../documents.js" */
/** @import { Choices, Drawing, Tokenizer } from "../../types.js" */
/** @import { Answer } from "./language-model-reader.js" */

/** A list of next tokens with their probabilities, which are appended to the text when they are pressed. */
export class NextTokens {
  /** @type {{ id: number, name: string, probability: number, unfiltered: number, baseline: number | null }[]} the likeliest */
  tokens = [];
  /** The text that they follow, in words. */
  about = "";
  /** @type {number[]} the likeliest first */
  order = [];
  /** The probabilities before top-k or top-p. */
  unfiltered = new Float64Array();
  /** The ids of the text, joined: rows move only while it stays the same. */
  textKey = "";
  /** The number of tokens with a probability above 0. */
  candidates = 0;

  /** @param {Tokenizer} tokenizer @param {Choices<WriteState>} store @param {(id: number) => void} take */
  constructor(tokenizer, store, take) {
    this.tokenizer = tokenizer;
    this.store = store;
    this.take = take;
    this.line = new ThresholdLine({ name: "How many tokens may be drawn", cut: (count) => this.cut(count) });
    this.rows = h("div", { class: "bar-list", role: "group", "aria-label": "Next token: press one to take it" });
    this.note = h("small", {});
    this.element = h("div", {}, this.note, this.rows);
    this.kind = store.get("top_p") < 1 && !store.get("top_k") ? "top_p" : "top_k";
    /** @type {[string, string][]} */
    const kinds = [
      ["top_k", "top-k"],
      ["top_p", "top-p"],
    ];
    const choose = (/** @type {string} */ kind) => {
      this.kind = kind;
      this.tabs.show(kind);
      this.cut(this.candidates);
    };
    this.tabs = tabs("Cut by", kinds, this.kind, choose);
    this.cutBy = h("span", { class: "cut-by" }, "Cut by", this.tabs.element);
  }

  /** The settings of the sampler, as `probabilities` takes them. */
  get sampler() {
    const { store } = this;
    const topP = store.get("top_p");
    return { temperature: store.get("temperature"), topK: store.get("top_k") || null, topP: topP < 1 ? topP : null };
  }

  /** @param {Answer} answer */
  show(answer) {
    const { logits, vocabSize, baseline } = answer;
    const { temperature } = this.sampler;
    const last = lastOf(logits, vocabSize);
    const distribution = probabilities(last, this.sampler);
    const unfiltered = probabilities(last, { temperature });
    const lastBaseline = baseline && lastOf(baseline, vocabSize); // with all heads on
    const others = lastBaseline && probabilities(lastBaseline, { temperature });
    this.order = topK(last, MAX_BARS);
    const [favourite] = topK(lastBaseline ?? last, 1);
    if (!this.order.includes(favourite)) this.order.splice(-1, 1, favourite);
    this.unfiltered = unfiltered;
    this.candidates = distribution.filter((probability) => probability > 0).length;
    this.about = `After ${quotedExcerpt(this.tokenizer.decode(answer.ids), MAX_ENDING, "end")}`;
    if (baseline) this.about += "; line: all heads on";
    const sameText = String(answer.ids) === this.textKey;
    const orderBefore = String(this.tokens.map(({ id }) => id));
    this.textKey = String(answer.ids);
    this.tokens = this.order.map((id) => ({
      id,
      name: this.tokenizer.tokens([id])[0],
      probability: distribution[id],
      unfiltered: unfiltered[id],
      baseline: others ? others[id] : null,
    }));
    if (sameText && String(this.order) !== orderBefore) animateReorder(this.rows, () => this.draw());
    else this.draw();
  }

  draw() {
    const focused = [...this.rows.querySelectorAll("button")].indexOf(focusedIn(this.rows));
    const rows = bars(
      this.tokens.map(({ id, name, probability, unfiltered, baseline }) => ({
        name: label(name, 14),
        probability,
        pale: probability === unfiltered ? null : unfiltered,
        baseline,
        title: "press to take it",
        onclick: () => this.take(id),
      })),
    );
    rows.forEach((row, i) => (row.dataset.id = String(this.tokens[i].id)));
    const cutoff = Math.min(this.candidates, rows.length);
    this.line.show(cutoff, rows.length, this.cutName);
    this.line.element.hidden = this.store.get("temperature") === 0;
    // The line stays in the document: removing it would end a drag.
    const { element } = this.line;
    if (!element.isConnected) this.rows.replaceChildren(element);
    for (const row of [...this.rows.children]) if (row !== element) row.remove();
    element.before(...rows.slice(0, cutoff));
    element.after(...rows.slice(cutoff));
    this.note.textContent = this.about;
    if (focused >= 0) (this.rows.querySelectorAll("button")[focused] ?? this.rows.querySelector("button"))?.focus();
  }

  /** Which tokens are kept, in words. */
  get filterName() {
    const { topK, topP } = this.sampler;
    return joinPresent([topK && `top-k ${topK}`, topP && `top-p ${formatFixed(topP, 2)}`], ", ");
  }

  /** The rule of the threshold line, in words. */
  get cutName() {
    return this.filterName ? `${this.filterName} · drag` : "all kept · drag up to drop unlikely ones";
  }

  /** The settings of the sampler, in words. */
  get settings() {
    return joinPresent([`temperature ${formatFixed(this.sampler.temperature, 2)}`, this.filterName], ", ");
  }

  /**
   * Keep `count` tokens by setting top-k, or top-p.
   * @param {number} count
   */
  cut(count) {
    const all = count >= Math.min(MAX_BARS, this.order.length);
    if (this.kind === "top_k") return this.store.set({ top_k: all ? 0 : count, top_p: 1 });
    const sum = this.order.slice(0, count).reduce((total, id) => total + this.unfiltered[id], 0);
    return this.store.set({ top_k: 0, top_p: all ? 1 : clamp(Math.ceil(100 * sum - 1e-9 - 1) / 100, 0.01, 0.99) });
  }

  /** @param {number} id */
  buttonOf(id) {
    const index = this.tokens.findIndex((bar) => bar.id === id);
    return index < 0 ? this.rows : this.rows.querySelectorAll("button")[index];
  }

  get panels() {
    return [probabilitiesPanel("", "next token", this.tokens)];
  }

  /** @param {Theme} theme @returns {Drawing} */
  drawing(theme) {
    const rows = this.tokens.map((row) => ({ ...row, name: label(row.name, 16) }));
    return probabilitiesDrawing(theme, rows);
  }
}

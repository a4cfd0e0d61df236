// Bars of what each token of a text costs a language model. A bar that is pointed at names its token and its cost.

import { h } from "../../base/elements.js";
import { counted, fixed } from "../../base/numbers.js";
import { quoted } from "../../base/visible-text.js";

const MAX_BARS = 240; // of a longer text its last tokens
const MAX_SPACED_BARS = 80; // so many have gaps between them
const NAMED = 3; // of the costliest tokens, which a screen reader hears

/**
 * @typedef {object} Costs in nats, of each token after the first
 * @property {string[]} words of all tokens
 * @property {number[]} now
 * @property {number[] | null} unedited with all heads on, where some are off
 * @property {number} evenGuess the cost of a token if all were equally likely
 */

/** A row of bars, one for each token. */
export class CostBars {
  /** @type {Costs | null} */
  costs = null;
  /** The token of the first bar. */
  first = 1;

  /**
   * @param {string} unit what a token is called
   * @param {(token: number | null, text: string) => void} point a bar is pointed at: its token and its cost in words
   */
  constructor(unit, point) {
    this.unit = unit;
    this.bars = h("div", { class: "bars", role: "img" });
    this.bars.onpointermove = ({ target }) => {
      const at = [...this.bars.children].indexOf(/** @type {Element} */ (target));
      if (at >= 0) point(this.first + at, this.describe(this.first + at));
    };
    this.bars.onpointerleave = () => point(null, "");
    this.caption = h("figcaption", { class: "soft" });
    this.element = h("figure", { class: "costs", hidden: true }, this.caption, this.bars);
  }

  /** @param {Costs | null} costs null hides the bars */
  show(costs) {
    this.costs = costs;
    this.element.hidden = !costs?.now.length;
    if (!costs?.now.length) return;
    const { now, unedited, evenGuess } = costs;
    this.first = 1 + Math.max(0, now.length - MAX_BARS);
    const most = [...now, ...(unedited ?? [])].reduce((a, b) => Math.max(a, b), evenGuess);
    const height = (/** @type {number} */ cost) => `${(100 * cost) / most}%`;
    const bars = now.slice(this.first - 1).map((cost, i) => {
      const bar = h("i", {});
      bar.style.setProperty("--cost", height(cost));
      if (unedited) bar.style.setProperty("--unedited", height(unedited[this.first - 1 + i]));
      bar.classList.toggle("changed", unedited !== null);
      return bar;
    });
    this.bars.replaceChildren(...bars);
    this.bars.classList.toggle("few", bars.length <= MAX_SPACED_BARS);
    this.caption.textContent = `cost of each ${this.unit}, in nats${unedited ? "; thin line: with all heads on" : ""}`;
    this.bars.setAttribute("aria-label", this.summary(costs));
  }

  /** Mark the bar of a token. @param {number | null} token */
  mark(token) {
    [...this.bars.children].forEach((bar, i) => bar.classList.toggle("from", this.first + i === token));
  }

  /** @param {number} token */
  describe(token) {
    if (!this.costs) return "";
    const { words, now, unedited } = this.costs;
    const cost = `${quoted(words[token])} costs ${fixed(now[token - 1], 2)} nats`;
    return unedited ? `${cost}, ${fixed(unedited[token - 1], 2)} with all heads` : cost;
  }

  /** @param {Costs} costs */
  summary({ words, now }) {
    const costliest = now
      .map((cost, i) => ({ cost, word: words[i + 1] }))
      .sort((a, b) => b.cost - a.cost)
      .slice(0, NAMED)
      .map(({ cost, word }) => `${quoted(word)} ${fixed(cost, 2)}`);
    return `Cost of each of ${counted(now.length, this.unit)}, in nats; most: ${costliest.join(", ")}`;
  }
}

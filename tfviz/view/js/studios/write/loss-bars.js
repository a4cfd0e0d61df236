// The loss of a language model at each token of a text: heights of the bars under its letters, and a line that describes them.

import { h } from "../../base/elements.js";
import { formatFixed } from "../../base/numbers.js";
import { quoted } from "../../base/visible-text.js";
import { joinPresent } from "../small-elements.js";

/** @import { PlacedPiece } from "../text/text-pieces.js" */
/**
 * @typedef {object} Losses in nats, of each token after the first
 * @property {string[]} words of all tokens
 * @property {number[]} now
 * @property {number[] | null} baseline with all heads on, where some are off
 * @property {number} evenGuess the loss of a token if all were equally likely
 */

/** The bars of a text's tokens. */
export class LossBars {
  /** @type {Losses | null} */
  losses = null;
  /** The loss whose bar is the highest. */
  most = 1;

  /** @param {string} unit what a token is called */
  constructor(unit) {
    this.unit = unit;
    this.element = h("small", { class: "token-losses", hidden: true });
  }

  /** @param {Losses | null} losses null where they are not known */
  show(losses) {
    this.losses = losses?.now.length ? losses : null;
    this.element.hidden = !this.losses;
    if (this.losses) {
      const { now, baseline, evenGuess } = this.losses;
      this.most = [...now, ...(baseline ?? [])].reduce((a, b) => Math.max(a, b), evenGuess);
    }
  }

  /**
   * Return the heights, 0 to 1, of the bar under a piece of the text and of the line over it, which says where the bar
   * ends with all heads on; those of the largest of its tokens.
   * @param {Pick<PlacedPiece, "first" | "last">} piece
   * @returns {{ bar: number, line: number | null }}
   */
  heightsOf({ first, last }) {
    /** @param {number[] | null | undefined} losses */
    const height = (losses) =>
      (losses ?? []).slice(Math.max(0, first - 1), Math.max(0, last)).reduce((a, b) => Math.max(a, b), 0) / this.most;
    return { bar: height(this.losses?.now), line: this.losses?.baseline ? height(this.losses.baseline) : null };
  }

  /** Describe the bars, and the loss of a token. @param {number | null} token */
  describe(token) {
    if (!this.losses) return;
    const { words, now, baseline } = this.losses;
    const largestIndex = now.indexOf(Math.max(...now));
    /** @param {number} i */
    const lossText = (i) => `${quoted(words[i + 1])} ${formatFixed(now[i], 2)}`;
    this.element.textContent = joinPresent(
      [
        `Bars: cost of each ${this.unit} in nats`,
        baseline && "thin line: with all heads on",
        token !== null && token > 0 && lossText(token - 1),
        `most: ${lossText(largestIndex)}`,
      ],
      "; ",
    );
  }
}

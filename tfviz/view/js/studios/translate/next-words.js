// A component that shows the words that could stand at a position of a translation, as bars.

import { focusedIn, h } from "../../base/elements.js";
import { percent } from "../../base/numbers.js";
import { quoted } from "../../base/visible-text.js";
import { likeliestTokens, logProbabilities } from "./beam-search.js";
import { note } from "../small-elements.js";
import { tokenPhrase, withoutSpace } from "../../base/token-names.js";
import { bars, markFew, othersRow, probabilitiesPanel, withoutTiny } from "../probability-bars.js";

/** @import { Tokenizer } from "../../types.js" */
/** @import { SearchState } from "./translation-view.js" */

const MAX_WORDS = 6;

/** A list of alternative words with their probabilities, which are forced when they are pressed. */
export class NextWords {
  /** @type {{ id: number, name: string, probability: number, baseline: number | null }[]} baseline: with all heads on */
  words = [];

  /** @param {Tokenizer} tokenizer @param {number[]} suppressedIds ids that never come @param {(id: number) => void} force */
  constructor(tokenizer, suppressedIds, force) {
    this.tokenizer = tokenizer;
    this.suppressedIds = suppressedIds;
    this.force = force;
    this.element = h("div", {
      class: "bar-list",
      role: "group",
      "aria-label": "What could stand here: press one to force it",
    });
  }

  /** @param {SearchState} current */
  show({ text, position, answer, baselineOutput }) {
    const { element, suppressedIds } = this;
    const logs = logProbabilities(answer.logitsAt(0, position), suppressedIds);
    const others = baselineOutput && logProbabilities(baselineOutput.logitsAt(0, position), suppressedIds);
    const probabilities = logs.map((log) => Math.exp(log));
    this.words = withoutTiny(likeliestTokens(logs, MAX_WORDS), probabilities).map((id) => {
      const name = this.tokenizer.tokens([id])[0];
      return { id, name, probability: Math.exp(logs[id]), baseline: others && Math.exp(others[id]) };
    });
    const focused = element.contains(focusedIn(element));
    const about = position < text.tokens.length ? `In place of ${this.phrase(text.tokens[position])}` : "The next word";
    element.replaceChildren(
      note(baselineOutput ? `${about}; the line: with all heads on` : about),
      ...bars([
        ...this.words.map(({ id, name, probability, baseline }) => ({
          name: quoted(withoutSpace(name), 24),
          probability,
          baseline,
          title: baseline === null ? "force it" : `force it; with all heads on ${percent(baseline)}`,
          onclick: () => this.force(id),
        })),
        ...othersRow(
          probabilities,
          this.words.map(({ id }) => id),
        ),
      ]),
    );
    markFew(element);
    if (focused) element.querySelector("button")?.focus();
  }

  /** @param {number} id */
  phrase(id) {
    return tokenPhrase(this.tokenizer.tokens([id])[0]);
  }

  get panels() {
    return [probabilitiesPanel("", "word", this.words)];
  }
}

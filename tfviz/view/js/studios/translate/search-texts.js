// A component that lists the texts of a beam search, best first, as buttons and as a table.

import { button, h } from "../../base/elements.js";
import { formatFixed } from "../../base/numbers.js";
import { quotedExcerpt } from "../../base/visible-text.js";
import { tableElement } from "../../controls/table.js";
import { scoreOf } from "./beam-search.js";

/** @import { Tokenizer } from "../../types.js" */
/** @import { Hypothesis } from "./beam-search.js" */

/** A list with a button for each text of a beam. */
export class SearchTexts {
  /** @type {Hypothesis[]} */
  texts = [];
  lengthPenalty = 0;

  /** @param {Tokenizer} tokenizer @param {(column: number, rank: number) => void} choose */
  constructor(tokenizer, choose) {
    this.tokenizer = tokenizer;
    this.choose = choose;
    this.element = h("div", { class: "found", role: "group", "aria-label": "Texts of the search, best first" });
  }

  /** Quote a whole text. @param {number[]} tokens */
  quote(tokens) {
    return quotedExcerpt(this.tokenizer.decode(tokens), Infinity);
  }

  /** @param {Hypothesis[][]} columns @param {number[]} tokens the tokens of the selected text @param {number} lengthPenalty */
  show(columns, tokens, lengthPenalty) {
    const column = columns.length - 1;
    const texts = columns[column] ?? [];
    Object.assign(this, { texts, lengthPenalty });
    this.element.replaceChildren(
      ...texts.map((text, rank) => {
        const score = h("span", { class: "score" }, formatFixed(scoreOf(text, lengthPenalty), 2));
        const name = h("span", { class: "name", dir: "auto" }, this.quote(text.tokens), text.ended ? "" : " …");
        const pressed = String(text.tokens) === String(tokens);
        return button([score, name], () => this.choose(column, rank), { "aria-pressed": String(pressed) });
      }),
    );
  }

  get table() {
    const number = (/** @type {number} */ value) => formatFixed(value, 4);
    const rows = this.texts.map((text) => [
      this.quote(text.tokens),
      ...[text.sum, scoreOf(text, this.lengthPenalty)].map(number),
    ]);
    return tableElement("texts of the search", ["text", "nats", "score"], rows, "text");
  }
}

// A component that shows a translation. Each word is a button, which selects its position to show alternatives and
// attention.

import { focusedIn, h, shadeElement } from "../../base/elements.js";
import { consume, followPointer, indexAfterKey } from "../../base/events.js";
import { joinPresent } from "../small-elements.js";
import { clamp } from "../../base/numbers.js";
import { isSpecial, tokenPhrase } from "../../base/token-names.js";
import { pieceText, shadeOf, spaceSeparated } from "../text/token-text.js";

/** @import { Tokenizer } from "../../types.js" */
/** @import { Theme } from "../../base/theme.js" */
/** @import { Shading } from "./source-text.js" */
/** @import { SearchState } from "./translation-view.js" */

/** A row of buttons for the words of a translation. */
export class TranslationText {
  /** @type {number | null} the position of the word under the pointer */
  pointed = null;

  /** @param {Tokenizer} tokenizer @param {{ choose(position: number): void, point(): void }} handlers */
  constructor(tokenizer, { choose, point }) {
    this.tokenizer = tokenizer;
    this.choose = choose;
    const pointAt = (/** @type {number | null} */ position) => {
      if (position === this.pointed) return;
      this.pointed = position;
      point();
    };
    this.element = h("p", {
      class: "sentence written",
      role: "listbox",
      "aria-label": "the translation: choose a word",
      dir: "auto",
      tabIndex: -1,
      onclick: (/** @type {any} */ { target }) => target.dataset.position && choose(Number(target.dataset.position)),
      onkeydown: (event) => this.press(event),
    });
    followPointer(
      this.element,
      ({ target }) => pointAt(positionOf(target)),
      () => pointAt(null),
    );
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const position = Number(/** @type {HTMLElement} */ (event.target).dataset.position);
    const last = this.element.children.length - 1;
    const next = indexAfterKey(event.key, position, last);
    if (next !== undefined) this.wordAt(clamp(next, 0, last)).focus();
    else if (event.key === "Enter" || event.key === " ") this.choose(position);
    else return;
    consume(event);
  }

  /** @param {number} position */
  wordAt(position) {
    return /** @type {HTMLElement} */ (this.element.children[position]);
  }

  /** @param {SearchState} current @param {number} forced how many words the reader asked for */
  show({ text, ended, position }, forced) {
    const { element, tokenizer } = this;
    const words = [...text.tokens.map((id) => pieceText(tokenizer, id).replace(/\n/g, "⏎")), ...(ended ? [] : [" …"])];
    const apart = spaceSeparated(tokenizer);
    element.classList.toggle("loose", apart);
    const focused = element.contains(focusedIn(element));
    element.replaceChildren(
      ...words.flatMap((word, at) => {
        const classes = joinPresent([
          "word",
          "new",
          at < forced && "forced",
          at === position && "picked",
          isSpecial(word) && "special",
        ]);
        const properties = {
          class: classes,
          role: "option",
          "aria-selected": String(at === position),
          tabIndex: at === position ? 0 : -1,
          "data-position": at,
        };
        if (isSpecial(word)) return [h("span", properties, tokenPhrase(word)), ...(apart ? [" "] : [])];
        const lead = word.slice(0, word.length - word.trimStart().length); // it is not shaded
        return [at && !apart ? lead : "", h("span", properties, word.slice(lead.length)), ...(apart ? [" "] : [])];
      }),
    );
    if (focused) this.wordAt(position).focus();
  }

  /**
   * Shade the words by a row of the decoder's own map, whose first key is the beginning, and mark the word that looks.
   * @param {Theme} theme
   * @param {Shading} shading
   * @param {number | null} from the position of the word
   */
  shade(theme, shading, from) {
    for (const word of /** @type {NodeListOf<HTMLElement>} */ (this.element.querySelectorAll(".word"))) {
      const position = Number(word.dataset.position);
      const exists = shading && position + 1 < shading.grid.columns.length && position + 1 <= shading.row;
      const colours = exists ? shadeOf(theme, shading.grid, shading.row, position + 1, position + 1) : null;
      word.classList.toggle("from", position === from);
      shadeElement(word, colours);
    }
  }
}

/** @param {EventTarget | null} target @returns {number | null} */
function positionOf(target) {
  const { position } = /** @type {HTMLElement} */ (target).dataset;
  return position === undefined ? null : Number(position);
}

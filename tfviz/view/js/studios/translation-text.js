// A component that shows a translation. Each word is a button, which selects its place to show alternatives and
// attention.

import { clamp } from "../base/clamp.js";
import { focusedIn, h } from "../base/elements.js";
import { consume, placeAfterKey } from "../base/events.js";
import { joinPresent } from "./small-elements.js";
import { isSpecial, tokenPhrase } from "./token-names.js";
import { pieceText, spaceSeparated } from "./token-text.js";

/** @import { Vocabulary } from "../types.d.ts" */
/** @import { Current } from "./translation-view.js" */

/** A row of buttons for the words of a translation. */
export class TranslationText {
  /** @param {Vocabulary} vocab @param {(place: number) => void} choose */
  constructor(vocab, choose) {
    this.vocab = vocab;
    this.choose = choose;
    this.element = h("p", {
      class: "sentence written",
      role: "listbox",
      "aria-label": "the translation: choose a word",
      dir: "auto",
      tabIndex: -1,
      onclick: (/** @type {any} */ { target }) => target.dataset.place && choose(Number(target.dataset.place)),
      onkeydown: (event) => this.press(event),
    });
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const place = Number(/** @type {HTMLElement} */ (event.target).dataset.place);
    const last = this.element.children.length - 1;
    const next = placeAfterKey(event.key, place, last);
    if (next !== undefined) this.wordAt(clamp(next, 0, last)).focus();
    else if (event.key === "Enter" || event.key === " ") this.choose(place);
    else return;
    consume(event);
  }

  /** @param {number} place */
  wordAt(place) {
    return /** @type {HTMLElement} */ (this.element.children[place]);
  }

  /** @param {Current} current @param {number} forced how many words the reader asked for */
  show({ text, ended, place }, forced) {
    const { element, vocab } = this;
    const words = [...text.tokens.map((id) => pieceText(vocab, id).replace(/\n/g, "⏎")), ...(ended ? [] : ["…"])];
    const apart = spaceSeparated(vocab);
    element.classList.toggle("loose", apart);
    const focused = element.contains(focusedIn(element));
    element.replaceChildren(
      ...words.flatMap((word, at) => {
        const classes = joinPresent([
          "word",
          "new",
          at < forced && "forced",
          at === place && "picked",
          isSpecial(word) && "special",
        ]);
        const properties = {
          class: classes,
          role: "option",
          "aria-selected": String(at === place),
          tabIndex: at === place ? 0 : -1,
          "data-place": at,
        };
        return [h("span", properties, isSpecial(word) ? tokenPhrase(word) : word), ...(apart ? [" "] : [])];
      }),
    );
    if (focused) this.wordAt(place).focus();
  }
}

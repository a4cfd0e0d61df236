// A control for a text, which the page encodes as Python does.

import { h } from "../base/elements.js";
import { formatCount } from "../base/numbers.js";
import { label, quoted } from "../base/visible-text.js";
import { makeTokenizer } from "../text/make-tokenizer.js";
import { Control } from "./control.js";

/** @import { TextSpec } from "../documents.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Named } from "./control.js" */

/** A text field whose value is a sequence of token ids. @extends {Control<TextSpec>} */
export class TextControl extends Control {
  /** @param {Named<TextSpec>} spec @param {(value: TextSpec["start"]) => void} set @param {Theme} theme */
  constructor(spec, set, theme) {
    super(spec, set, theme);
    this.tokenizer = makeTokenizer(/** @type {any} */ (spec.tokenizer));
    /** @type {{ value: string, ids: number[] } | null} */
    this.encoded = null;
    this.area = h("textarea", { rows: 1, spellcheck: false, oninput: () => set(this.area.value) });
    this.area.value = spec.start;
    this.area.setAttribute("autocomplete", "off");
    this.element = h(
      "label",
      { class: "typed" },
      h("span", {}, this.name),
      h("small", { "aria-hidden": "true" }, this.limitsText),
      this.area,
    );
  }

  /** How long a text can be, in words. */
  get limitsText() {
    const { min_tokens: least, max_tokens: most } = this.spec;
    if (least === most) return `exactly ${formatCount(most, "token")}`;
    return least > 1 ? `${least} to ${formatCount(most, "token")}` : `at most ${formatCount(most, "token")}`;
  }

  /**
   * Show a text, unless the field already holds it: setting it would move the caret.
   * @param {TextSpec["start"]} value
   */
  show(value) {
    if (this.area.value !== value) this.area.value = value;
  }

  /** @param {TextSpec["start"]} value */
  ids(value) {
    if (this.encoded?.value !== value) this.encoded = { value, ids: Array.from(this.tokenizer.encode(value)) };
    return this.encoded.ids;
  }

  /** @param {TextSpec["start"]} value */
  input(value) {
    const ids = this.ids(value);
    const { min_tokens, max_tokens } = this.spec;
    if (!ids.length) throw new Error(`${label(this.name, 40)} is empty: type something`);
    if (ids.length > max_tokens)
      throw new Error(
        `${label(this.name, 40)} has ${formatCount(ids.length, "token")}, and there is room for ${max_tokens}`,
      );
    if (ids.length < min_tokens)
      throw new Error(`${label(this.name, 40)} has ${formatCount(ids.length, "token")}, and needs ${min_tokens}`);
    return { shape: [1, ids.length], data: ids };
  }

  /** @param {TextSpec["start"]} value */
  words(value) {
    return this.tokenizer.tokens(this.ids(value));
  }

  /** @param {TextSpec["start"]} value */
  describe(value) {
    return quoted(value, 60);
  }
}

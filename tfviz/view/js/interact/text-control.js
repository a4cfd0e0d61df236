// Text to type: encoded in the page just as in Python.

import { h } from "../base/elements.js";
import { counted } from "../base/numbers.js";
import { label, quoted } from "../base/pen.js";
import { vocabulary } from "../text/vocabulary.js";
import { Control } from "./control.js";

export class TextControl extends Control {
  constructor(spec, set, theme) {
    super(spec, set, theme);
    this.vocabulary = vocabulary(spec.vocab);
    this.area = h("textarea", { rows: 1, spellcheck: false, oninput: () => set(this.area.value) });
    this.area.value = spec.start;
    this.area.setAttribute("autocomplete", "off");
    this.element = h("label", { class: "typed" }, h("span", {}, this.name), this.area);
  }

  // What has been typed stays as it is: to set it anew would move the caret.
  show(value) {
    if (this.area.value !== value) this.area.value = value;
  }

  ids(value) {
    if (this.encoded?.value !== value) this.encoded = { value, ids: Array.from(this.vocabulary.encode(value)) };
    return this.encoded.ids;
  }

  input(value) {
    const ids = this.ids(value);
    const { most } = this.spec;
    if (!ids.length) throw new Error(`${label(this.name, 40)} is empty: type something`);
    if (ids.length > most)
      throw new Error(`${label(this.name, 40)} has ${counted(ids.length, "token")}, and there is room for ${most}`);
    return { shape: [1, ids.length], data: ids };
  }

  words(value) {
    return this.vocabulary.words(this.ids(value));
  }

  said(value) {
    return quoted(value, 60);
  }
}

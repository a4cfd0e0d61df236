// A control for the order of words, which are dragged. The buttons stay in place while their words are exchanged, so
// that the element with the pointer or the focus is never removed from the page.

import { h } from "../base/elements.js";
import { ARROW_STEPS, consume, followDrag } from "../base/events.js";
import { clamp } from "../base/numbers.js";
import { label, quoted } from "../base/visible-text.js";
import { Control } from "./control.js";

/** @import { OrderSpec } from "../documents.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Named } from "./control.js" */

/** A row of words that can be reordered by pointer or keys. @extends {Control<OrderSpec>} */
export class OrderControl extends Control {
  /**
   * @param {Named<OrderSpec>} spec
   * @param {(value: OrderSpec["start"]) => void} set
   * @param {Theme} theme
   * @param {(text: string) => void} announce
   */
  constructor(spec, set, theme, announce) {
    super(spec, set, theme);
    this.announce = announce;
    this.value = spec.start;
    /** @type {number | null} the word that was picked up */
    this.held = null;
    this.dragged = false;
    /** Whether the focus is moving from one button to another. */
    this.moving = false;
    /** The word that was moved last. */
    this.moved = 0;
    this.buttons = spec.names.map((_, index) => this.button(index));
    const described = { class: "order", role: "group", "aria-label": `${this.name}: words to put in order` };
    this.element = h("div", { class: "control wide" }, h("span", {}, this.name), h("div", described, ...this.buttons));
  }

  /** @param {number} index */
  button(index) {
    /** @type {HTMLButtonElement} */
    const button = h("button", { type: "button", class: "ordered" });
    const begin = () => {
      [this.held, this.dragged] = [this.value[index], true];
      this.show(this.value);
      return (/** @type {PointerEvent} */ event) => this.move(this.indexUnder(event));
    };
    followDrag(button, begin, () => this.drop());
    button.onclick = (event) => {
      if (event.detail === 0) this.pick(index); // by key
    };
    button.onblur = () => {
      if (!this.moving && !this.dragged) this.drop();
    };
    button.onkeydown = (event) => this.press(event, index);
    return button;
  }

  /** @param {KeyboardEvent} event @param {number} index */
  press(event, index) {
    const [down, right] = ARROW_STEPS[event.key] ?? [0, 0];
    const step = down + right;
    if (event.key === "Escape") return this.drop();
    if (!step || event.metaKey || event.ctrlKey) return undefined;
    const to = clamp(index + step, 0, this.buttons.length - 1);
    if (event.altKey || this.held !== null) {
      const held = this.held;
      this.held = this.value[index];
      this.move(to);
      this.held = held;
    }
    this.moving = true;
    this.buttons[to].focus();
    this.moving = false;
    consume(event);
    return undefined;
  }

  /** @param {number} index */
  pick(index) {
    this.held = this.held === null ? this.value[index] : null;
    this.show(this.value);
    const word = quoted(this.spec.names[this.value[index]], 30);
    this.announce(
      this.held === null ? `${word} stays here` : `${word} is picked up: arrows move it, Space puts it down`,
    );
  }

  drop() {
    this.dragged = false;
    if (this.held === null) return;
    this.held = null;
    this.show(this.value);
  }

  /**
   * Return the index under the pointer, or the nearest one. A word counts only once the pointer is half across it;
   * else words of different lengths would flicker under a pointer that stands still.
   * @param {PointerEvent} event
   */
  indexUnder(event) {
    let [best, minDistance] = [0, Infinity];
    this.buttons.forEach((button, index) => {
      const { left, right, top, bottom } = button.getBoundingClientRect();
      /** @param {number} at @param {number} low @param {number} high */
      const beyond = (at, low, high) => Math.max(low - at, 0, at - high);
      const distance = Math.hypot(beyond(event.clientX, left, right), 4 * beyond(event.clientY, top, bottom));
      if (distance < minDistance) [best, minDistance] = [index, distance];
    });
    const from = this.value.indexOf(this.held ?? -1);
    const { left, right } = this.buttons[best].getBoundingClientRect();
    const beyond = Math.sign(best - from) * (event.clientX - (left + right) / 2);
    return beyond < 0 && event.clientX > left && event.clientX < right ? best - Math.sign(best - from) : best;
  }

  /** Move the held word to an index and shift the words between. @param {number} to */
  move(to) {
    const { held } = this;
    if (held === null || this.value.indexOf(held) === to) return;
    const rest = this.value.filter((word) => word !== held);
    rest.splice(to, 0, held);
    this.moved = held;
    this.set(rest);
    this.show(rest);
  }

  /** @param {OrderSpec["start"]} value */
  show(value) {
    this.value = value;
    value.forEach((word, index) => {
      const button = this.buttons[index];
      const text = label(this.spec.names[word], 30);
      if (button.textContent !== text) button.textContent = text;
      button.setAttribute("aria-label", `${text}, ${index + 1} of ${value.length}`);
      button.setAttribute("aria-pressed", String(word === this.held));
    });
  }

  /** @param {OrderSpec["start"]} value */
  input(value) {
    return { shape: [value.length], data: value };
  }

  /** @param {OrderSpec["start"]} value */
  words(value) {
    return value.map((word) => this.spec.names[word]);
  }

  /** @param {OrderSpec["start"]} value */
  describe(value) {
    return this.words(value)
      .map((word) => label(word))
      .join(" ");
  }

  /** @param {OrderSpec["start"]} _before @param {OrderSpec["start"]} after */
  describeChange(_before, after) {
    return `${quoted(this.spec.names[this.moved], 30)} is number ${after.indexOf(this.moved) + 1} of ${after.length}`;
  }
}

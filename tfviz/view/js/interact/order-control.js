// Words to drag into another order. The buttons stay where they are and the words go from one to the next, so that what
// holds the pointer or the focus is never taken off the page.

import { h } from "../base/elements.js";
import { label, quoted } from "../base/pen.js";
import { Control } from "./control.js";

export class OrderControl extends Control {
  constructor(spec, set, theme, announce) {
    super(spec, set, theme);
    this.announce = announce;
    this.held = null; // the number of the word that was picked up
    this.buttons = spec.names.map((_, place) => this.button(place));
    const described = { class: "order", role: "group", "aria-label": `${this.name}: words to put in order` };
    this.element = h("div", { class: "control wide" }, h("span", {}, this.name), h("div", described, ...this.buttons));
  }

  button(place) {
    const button = h("button", { type: "button", class: "ordered" });
    button.onpointerdown = (event) => {
      [this.held, this.dragged] = [this.value[place], true];
      button.setPointerCapture(event.pointerId);
      this.show(this.value);
    };
    button.onpointermove = (event) => {
      if (button.hasPointerCapture(event.pointerId) && this.held !== null) this.move(this.under(event));
    };
    button.onpointerup = (event) => {
      if (button.hasPointerCapture(event.pointerId)) this.drop();
    };
    button.onpointercancel = () => this.drop();
    button.onclick = (event) => {
      if (event.detail === 0) this.pick(place); // by key
    };
    button.onblur = () => this.moving || this.dragged || this.drop();
    button.onkeydown = (event) => this.key(event, place);
    return button;
  }

  key(event, place) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Escape") return this.drop();
    if (!step || event.metaKey || event.ctrlKey) return undefined;
    const to = Math.max(0, Math.min(this.buttons.length - 1, place + step));
    if (event.altKey || this.held !== null) {
      const held = this.held;
      this.held = this.value[place];
      this.move(to);
      this.held = held;
    }
    this.moving = true;
    this.buttons[to].focus();
    this.moving = false;
    event.preventDefault();
    event.stopPropagation();
    return undefined;
  }

  pick(place) {
    this.held = this.held === null ? this.value[place] : null;
    this.show(this.value);
    const word = quoted(this.spec.names[this.value[place]], 30);
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

  // The place under the pointer, or the nearest; one that it has not come half over is not reached yet, or words of
  // different lengths would go to and fro under a pointer that stands still.
  under(event) {
    let [best, least] = [0, Infinity];
    this.buttons.forEach((button, place) => {
      const { left, right, top, bottom } = button.getBoundingClientRect();
      const beyond = (at, low, high) => Math.max(low - at, 0, at - high);
      const far = Math.hypot(beyond(event.clientX, left, right), 4 * beyond(event.clientY, top, bottom));
      if (far < least) [best, least] = [place, far];
    });
    const from = this.value.indexOf(this.held);
    const { left, right } = this.buttons[best].getBoundingClientRect();
    const beyond = Math.sign(best - from) * (event.clientX - (left + right) / 2);
    return beyond < 0 && event.clientX > left && event.clientX < right ? best - Math.sign(best - from) : best;
  }

  // The word that is held goes to a place, and those between close up.
  move(to) {
    const from = this.value.indexOf(this.held);
    if (from === to) return;
    const rest = this.value.filter((word) => word !== this.held);
    rest.splice(to, 0, this.held);
    this.moved = this.held;
    this.set(rest);
    this.show(rest);
  }

  show(value) {
    this.value = value;
    value.forEach((word, place) => {
      const button = this.buttons[place];
      const text = label(this.spec.names[word], 30);
      if (button.textContent !== text) button.textContent = text;
      button.setAttribute("aria-label", `${text}, ${place + 1} of ${value.length}`);
      button.setAttribute("aria-pressed", String(word === this.held));
    });
  }

  input(value) {
    return { shape: [value.length], data: value };
  }

  words(value) {
    return value.map((word) => this.spec.names[word]);
  }

  said(value) {
    return this.words(value)
      .map((word) => label(word))
      .join(" ");
  }

  told(before, after) {
    return `${quoted(this.spec.names[this.moved], 30)} is number ${after.indexOf(this.moved) + 1} of ${after.length}`;
  }
}

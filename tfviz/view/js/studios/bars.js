// Probabilities as bars, each filling its track by its own size, and a line that is dragged over them to cut the rest off.

import { h } from "../base/elements.js";
import { percent } from "../base/numbers.js";

/**
 * @typedef {object} Bar
 * @property {string} name
 * @property {number} share 0 to 1: what the model says now
 * @property {number | null} [before] what it is before the unlikely are cut off
 * @property {number | null} [other] what it is with all heads on
 * @property {string} [title]
 * @property {string} [kind] a class
 * @property {(() => void) | null} [onclick]
 */

/**
 * @param {Bar[]} rows
 * @returns {HTMLElement[]}
 */
export function bars(rows) {
  return rows.map(({ name, share, before = null, other = null, title = "", kind = "", onclick = null }) => {
    const wide = (part) => `width: ${100 * part}%`;
    const track = h(
      "span",
      { class: "track" },
      before === null ? null : h("span", { class: "bar before", style: wide(before) }),
      h("span", { class: "bar", style: wide(share) }),
      other === null ? null : h("span", { class: "mark", style: `left: ${100 * other}%` }),
    );
    const classes = ["share", kind, share === 0 && "lost"].filter(Boolean).join(" ");
    const told = [name, percent(share), other !== null && `with all heads on ${percent(other)}`, title];
    return h(
      onclick ? "button" : "div",
      {
        class: classes,
        title,
        onclick,
        ...(onclick ? { type: "button", "aria-label": told.filter(Boolean).join(", ") } : {}),
      },
      h("span", { class: "name", dir: "auto" }, name),
      track,
      h("span", { class: "number" }, percent(share)),
    );
  });
}

export class CutLine {
  /** @param {{ name: string, cut: (kept: number) => void }} handlers cut: keep so many of the bars */
  constructor({ name, cut }) {
    this.cut = cut;
    this.count = 0;
    this.kept = 0;
    this.words = h("span", {});
    this.element = h(
      "div",
      { class: "cut", role: "slider", tabIndex: 0, "aria-label": name, "aria-valuemin": 1 },
      this.words,
    );
    this.element.onkeydown = (event) => this.press(event);
    this.element.onpointerdown = (event) => this.drag(event);
  }

  /**
   * @param {number} kept of the bars that stand there
   * @param {number} count
   * @param {string} words
   */
  show(kept, count, words) {
    Object.assign(this, { kept, count });
    this.words.textContent = words;
    this.element.setAttribute("aria-valuemax", String(count));
    this.element.setAttribute("aria-valuenow", String(kept));
    this.element.setAttribute("aria-valuetext", words);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
    const to = { Home: 1, End: this.count }[event.key] ?? (step && this.kept + step);
    if (to === undefined) return;
    this.cut(Math.max(1, Math.min(this.count, to)));
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const { element } = this;
    element.setPointerCapture(event.pointerId);
    event.preventDefault();
    element.focus();
    element.onpointermove = ({ clientY }) => {
      const rows = [...element.parentElement.querySelectorAll(".share")];
      const kept = rows.filter((row) => {
        const { top, height } = row.getBoundingClientRect();
        return top + height / 2 < clientY;
      }).length;
      if (Math.max(1, kept) !== this.kept) this.cut(Math.max(1, kept));
    };
    element.onpointerup = () => {
      element.onpointermove = null;
    };
    element.onpointercancel = element.onpointerup;
  }
}

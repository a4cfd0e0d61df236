// A component with a line over bars, which is dragged to cut off the bars below it.

import { h } from "../../base/elements.js";
import { consume, followDrag } from "../../base/events.js";
import { clamp } from "../../base/numbers.js";

/** A draggable line between the bars that are kept and the others. */
export class ThresholdLine {
  /** @param {{ name: string, cut: (cutoff: number) => void }} handlers cut: called with the number of bars to keep */
  constructor({ name, cut }) {
    this.cut = cut;
    this.count = 0;
    this.cutoff = 0;
    this.words = h("span", {});
    this.element = h(
      "div",
      { class: "threshold", role: "slider", tabIndex: 0, "aria-label": name, "aria-valuemin": 1 },
      this.words,
    );
    this.element.onkeydown = (/** @type {KeyboardEvent} */ event) => this.press(event);
    followDrag(this.element, (event) => this.drag(event));
  }

  /**
   * @param {number} cutoff of the bars that stand there
   * @param {number} count
   * @param {string} words
   */
  show(cutoff, count, words) {
    Object.assign(this, { cutoff, count });
    this.words.textContent = words;
    this.element.setAttribute("aria-valuemax", String(count));
    this.element.setAttribute("aria-valuenow", String(cutoff));
    this.element.setAttribute("aria-valuetext", words);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const { cutoff, count } = this;
    /** @type {Record<string, number>} */
    const cutoffs = {
      ArrowUp: cutoff - 1,
      ArrowLeft: cutoff - 1,
      ArrowDown: cutoff + 1,
      ArrowRight: cutoff + 1,
      Home: 1,
      End: count,
    };
    const to = cutoffs[event.key];
    if (to === undefined) return;
    this.cut(clamp(to, 1, count));
    consume(event);
  }

  /** Begin a drag; return what follows it. @param {PointerEvent} event */
  drag(event) {
    const { element } = this;
    event.preventDefault();
    element.focus();
    return (/** @type {PointerEvent} */ { clientY }) => {
      const rows = [.../** @type {HTMLElement} */ (element.parentElement).querySelectorAll(".bar-row")];
      const cutoff = rows.filter((row) => {
        const { top, height } = row.getBoundingClientRect();
        return top + height / 2 < clientY;
      }).length;
      if (Math.max(1, cutoff) !== this.cutoff) this.cut(Math.max(1, cutoff));
    };
  }
}

// A component that shows the words of a text as buttons, for pointer and keys.

import { focusedIn, h } from "../../base/elements.js";
import { consume, followPointer, indexAfterKey } from "../../base/events.js";
import { textDrawing } from "./text-drawing.js";
import { clamp } from "../../base/numbers.js";

/** @import { Drawing } from "../../types.js" */
/** @import { Segment } from "./word-segments.js" */
/**
 * @typedef {object} WordHandlers
 * @property {(i: number) => void} point at a word; -1: at none
 * @property {(i: number, event: { key?: string, detail?: number }) => void} act on a word that was pressed
 * @property {(i: number) => void} focus a word has the focus now
 */

const TOGGLE_KEYS = [" ", "Enter", "Delete", "Backspace"];

/** A row of words of which one is a tab stop. */
export class WordList {
  /** @type {HTMLElement[]} of the words */
  spans = [];
  /** @type {Segment[] | null} the words that the spans are of */
  segments = null;

  /** @param {string} help the help text of the list @param {WordHandlers} handlers */
  constructor(help, handlers) {
    this.handlers = handlers;
    this.element = h("p", { class: "sentence word-list", role: "group", "aria-label": help, dir: "auto" });
    followPointer(
      this.element,
      (event) => handlers.point(this.indexOf(event)),
      () => handlers.point(-1),
    );
    this.element.onclick = (event) => this.at(event, (i) => handlers.act(i, event));
    this.element.onkeydown = (event) => this.at(event, (i) => this.press(i, event));
    this.element.addEventListener("focusin", (event) => this.at(event, (i) => this.moveTabStop(i)));
  }

  /** Return the index of the word that an event is about, or -1. @param {{ target: any }} event */
  indexOf({ target }) {
    return Number(target?.dataset?.unit ?? -1);
  }

  /** Call `act` with the word that an event is about. @param {{ target: any }} event @param {(i: number) => void} act */
  at(event, act) {
    const i = this.indexOf(event);
    if (i >= 0) act(i);
  }

  /** The word that has the focus, or -1. */
  get focused() {
    return this.indexOf({ target: focusedIn(this.element) });
  }

  /** @param {number} i @param {KeyboardEvent} event */
  press(i, event) {
    const last = this.spans.length - 1;
    const next = indexAfterKey(event.key, i, last);
    if (next !== undefined) this.focus(clamp(next, 0, last));
    else if (TOGGLE_KEYS.includes(event.key)) this.handlers.act(i, event);
    else return;
    consume(event);
  }

  /** @param {number} i */
  focus(i) {
    this.spans[i]?.focus();
  }

  /** Make the word that has the focus the one tab stop. @param {number} i */
  moveTabStop(i) {
    for (const span of this.spans) span.tabIndex = -1;
    this.spans[i].tabIndex = 0;
    this.handlers.focus(i);
  }

  /** Focus the word that is the tab stop. */
  focusStop() {
    /** @type {HTMLElement | null} */ (this.element.querySelector("[tabindex='0']"))?.focus();
  }

  /**
   * Show words: the same elements as long as the text stays, so that focus and a second click find them.
   * @param {Segment[]} segments
   * @param {(span: HTMLElement, segment: Segment, i: number) => void} decorate
   */
  show(segments, decorate) {
    if (this.segments !== segments) {
      this.segments = segments;
      this.spans = segments.map((_, i) =>
        h("span", { class: "word", role: "button", "data-unit": i, tabIndex: i ? -1 : 0 }),
      );
      this.element.replaceChildren(...segments.flatMap(({ leadingSpace }, i) => [leadingSpace, this.spans[i]]));
    }
    this.spans.forEach((span, i) => decorate(span, segments[i], i));
  }

  /**
   * Put a field in place of a word, to type another: Enter offers it to `take`, Esc leaves the word as it is.
   * @param {number} i
   * @param {{ value: string, name: string, take: (word: string) => boolean }} options take: returns whether it is taken
   */
  openField(i, { value, name, take }) {
    const span = this.spans[i];
    const size = Math.max(4, value.length);
    const field = h("input", { class: "swap", value, size, "aria-label": name, dir: "auto" });
    let open = true;
    const end = (/** @type {boolean} */ taken) => {
      if (!open) return;
      if (taken && !take(field.value)) return;
      open = false;
      field.remove();
      span.hidden = false;
      span.focus();
    };
    field.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      if (event.key === "Enter") end(true);
      else if (event.key === "Escape") end(false);
    };
    field.onblur = () => end(false);
    span.hidden = true;
    span.before(field);
    field.focus();
    field.select();
  }

  /** Return a drawing of the words, where the browser has put them. @returns {Drawing} */
  get drawing() {
    return textDrawing(this.element, this.spans);
  }
}

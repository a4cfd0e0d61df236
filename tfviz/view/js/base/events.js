// Helpers for pointer and keyboard events: positions within an element, arrow keys, letters with Alt, and stopping an
// event from spreading.

import { clamp } from "./numbers.js";

/** @import { Point } from "../types.js" */

/** @type {Record<string, Point>} rows down and columns to the right */
export const ARROW_STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
/** To the two ends of a row. @type {Record<string, [number, number]>} */
export const EDGE_STEPS = { Home: [0, -Infinity], End: [0, Infinity] };

/** Stop an event: prevent its default action and its propagation. @param {Event} event */
export function consume(event) {
  event.preventDefault();
  event.stopPropagation();
}

/** Tell whether a key was pressed for a command of the browser or of JupyterLab. @param {KeyboardEvent} event */
export const hasModifier = ({ altKey, ctrlKey, metaKey }) => altKey || ctrlKey || metaKey;

/**
 * Return the position of a pointer in an element, in pixels from its upper left corner.
 * @param {Element} element
 * @param {MouseEvent} event
 * @returns {[x: number, y: number]}
 */
export function pointIn(element, { clientX, clientY }) {
  const { left, top } = element.getBoundingClientRect();
  return [clientX - left, clientY - top];
}

/**
 * Call `onPoint` while a mouse is over the element, or where a finger touches it. A mouse that goes away calls
 * `onLeave`; a lifted finger does not.
 * @param {HTMLElement} element
 * @param {(event: PointerEvent) => void} onPoint
 * @param {() => void} onLeave
 */
export function followPointer(element, onPoint, onLeave) {
  element.onpointermove = onPoint;
  element.addEventListener("pointerdown", (event) => event.pointerType === "touch" && onPoint(event));
  element.onpointerleave = ({ pointerType }) => {
    if (pointerType !== "touch") onLeave();
  };
}

/**
 * Follow drags that begin on an element, until the pointer is released. `begin` returns what is called at each move;
 * nothing, if this is no drag.
 * @param {HTMLElement} element
 * @param {(event: PointerEvent) => ((event: PointerEvent) => void) | undefined} begin
 * @param {() => void} [end]
 */
export function followDrag(element, begin, end = () => {}) {
  /** @type {((event: PointerEvent) => void) | undefined} */
  let move;
  element.onpointerdown = (event) => {
    move = begin(event);
    if (move) element.setPointerCapture(event.pointerId);
  };
  element.onpointermove = (event) => {
    if (element.hasPointerCapture(event.pointerId)) move?.(event);
  };
  element.onpointerup = () => {
    if (move) end();
    move = undefined;
  };
  element.onpointercancel = element.onpointerup;
}

/**
 * Return the index that a key leads to in a row that ends at `last`; undefined for other keys.
 * @param {string} key
 * @param {number} index
 * @param {number} last
 * @returns {number | undefined}
 */
export function indexAfterKey(key, index, last) {
  /** @type {Record<string, number>} */
  const indices = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: last };
  return indices[key];
}

/**
 * Return the cell of a table that an arrow key, Home or End leads to; null for other keys.
 * @param {string} key
 * @param {Point} cell
 * @param {number[]} size rows and columns
 * @param {number} [step] of an arrow key
 * @returns {Point | null}
 */
export function cellAfterKey(key, [row, col], [rows, columns], step = 1) {
  const [down, right] = ARROW_STEPS[key] ?? EDGE_STEPS[key] ?? [];
  if (down === undefined) return null;
  return [clamp(row + down * step, 0, rows - 1), clamp(col + right * step, 0, columns - 1)];
}

/**
 * Call `zoom` with a factor when a wheel is turned with Ctrl, or two fingers are spread; a plain wheel scrolls the page.
 * @param {HTMLElement} element
 * @param {(factor: number, event: WheelEvent) => void} zoom
 */
export function followWheel(element, zoom) {
  element.onwheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(2 ** (-event.deltaY / 200), event);
  };
}

/**
 * Make a keydown listener that calls the action of a letter (in lower case) pressed with Alt. Where Alt yields a
 * different character, as on a Mac (Option and S is "ß"), the physical key counts.
 * @param {Record<string, (event: KeyboardEvent) => unknown>} actions
 * @returns {(event: KeyboardEvent) => void}
 */
export function shortcuts(actions) {
  return (event) => {
    if (!event.altKey) return;
    const act = actions[event.key.toLowerCase()] ?? actions[event.code.replace("Key", "").toLowerCase()];
    if (!act) return;
    act(event);
    consume(event);
  };
}

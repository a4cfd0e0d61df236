// Animations of a word that moves into a text, and of rows that change places. They are left out if the reader prefers reduced motion.

import { h } from "../base/elements.js";

const DURATION = 200; // milliseconds

/** Tell whether the reader prefers reduced motion. */
export const prefersNoMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Animate a word from the element that was pressed to the end of a text.
 * @param {HTMLElement} body
 * @param {HTMLElement | null} from
 * @param {HTMLElement} editor
 * @param {string} text
 */
export function animateTravel(body, from, editor, text) {
  if (!from?.isConnected || prefersNoMotion()) return;
  const [home, start] = [body.getBoundingClientRect(), from.getBoundingClientRect()];
  queueMicrotask(() => {
    const last = /** @type {HTMLElement | undefined} */ ([...editor.querySelectorAll(".token")].at(-1));
    if (!last) return;
    const end = last.getBoundingClientRect();
    const mover = h("span", { class: "mover", "aria-hidden": "true" }, text);
    body.append(mover);
    const at = (/** @type {DOMRect} */ box) => `translate(${box.left - home.left}px, ${box.top - home.top}px)`;
    const moves = mover.animate([{ transform: at(start) }, { transform: at(end) }], {
      duration: DURATION,
      easing: "ease-in-out",
    });
    moves.onfinish = () => mover.remove();
    moves.oncancel = moves.onfinish;
    last.animate([{ opacity: 0 }, { opacity: 0, offset: 0.8 }, { opacity: 1 }], { duration: DURATION });
  });
}

/**
 * Change the order of the rows of a list, whose `data-id` says which they are, and move each from where it was.
 * @param {HTMLElement} list
 * @param {() => void} change
 */
export function animateReorder(list, change) {
  const rows = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[data-id]")]);
  const before = prefersNoMotion() ? new Map() : new Map(rows().map((row) => [row.dataset.id, row.offsetTop]));
  change();
  if (!before.size) return;
  for (const row of rows()) {
    const distance = (before.get(row.dataset.id) ?? row.offsetTop) - row.offsetTop;
    const moves = [{ transform: `translateY(${distance}px)` }, { transform: "none" }];
    if (distance) row.animate(moves, { duration: DURATION, easing: "ease-in-out" });
  }
}

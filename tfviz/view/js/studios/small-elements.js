// Functions that make small elements that studios share: notes, panes, strips of colours.

import { button, h } from "../base/elements.js";
import { cssColour } from "../base/theme.js";

const GRADIENT_STOPS = 9; // colours of a strip, between which a browser mixes

/** @param {string} text */
export const note = (text) => h("span", { class: "muted" }, text);

/** Make the button that shows, on a narrow screen, the bars beyond the first ones of a part. @param {HTMLElement} part */
export function moreButton(part) {
  const toggle = () => {
    const all = part.classList.toggle("all-bars");
    element.textContent = all ? "Fewer" : "More";
    element.setAttribute("aria-expanded", String(all));
  };
  const element = button("More", toggle, { class: "more-bars", "aria-expanded": "false" });
  return element;
}

/** Make a strip of the colours of a scale. @param {Uint32Array} lut the colours from the left to the right */
export function gradient(lut) {
  const last = GRADIENT_STOPS - 1;
  const colour = (/** @type {unknown} */ _, /** @type {number} */ i) =>
    cssColour(lut[Math.round((i / last) * (lut.length - 1))]);
  const stops = Array.from({ length: GRADIENT_STOPS }, colour).join(", ");
  return h("span", { class: "gradient", style: `background: linear-gradient(to right, ${stops})` });
}

/** Join the strings that are present, such as class names. @param {unknown[]} parts @param {string} [separator] */
export const joinPresent = (parts, separator = " ") => parts.filter(Boolean).join(separator);

/**
 * @param {string} kind
 * @param {string} title
 * @param {HTMLElement | null} more beside the title
 * @param {HTMLElement[]} parts
 */
export const pane = (kind, title, more, ...parts) =>
  h("section", { class: `pane ${kind}` }, h("h4", {}, title, more), ...parts);

// Texts of which every character can be seen.

import { sign } from "../base/pen.js";

/** Make a text visible: a sign for each character that cannot be seen; spaces stay. @param {string} text */
export const visibleText = (text) =>
  Array.from(text, (character) => (character === " " ? character : sign(character))).join("");

/**
 * Quote a visible text, cut with a sign where it is too long, at the end or, if `from` is "end", at the beginning.
 * @param {string} text
 * @param {number} [longest]
 * @param {"start" | "end"} [from]
 */
export function cited(text, longest = 40, from = "start") {
  let letters = [...text];
  if (letters.length > longest)
    letters = from === "end" ? ["…", ...letters.slice(1 - longest)] : [...letters.slice(0, longest - 1), "…"];
  return `“\u2068${visibleText(letters.join(""))}\u2069”`;
}

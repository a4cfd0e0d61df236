// Functions that make every character of a text visible (signs for spaces and control characters) and that shorten
// texts.

/**
 * Visible signs for characters that cannot be seen, in most fonts; few fonts have signs for the other control
 * characters.
 */
export const VISIBLE_SIGNS = new Map([
  [" ", "␣"],
  ["\n", "⏎"],
  ["\t", "⇥"],
  ["\r", "␍"],
  ["\0", "␀"],
]);

// Controls, marks of direction, halves of characters; but not the joiners that make one emoji of several.
const INVISIBLE = /[\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]/u;

/** Return a character, or a visible sign for one that cannot be seen. @param {string} character */
export function visibleCharacter(character) {
  const known = VISIBLE_SIGNS.get(character);
  if (known) return known;
  const point = Number(character.codePointAt(0));
  if (point < 32) return String.fromCodePoint(0x2400 + point);
  return INVISIBLE.test(character) || (point & 0xfffe) === 0xfffe ? `⟨${point.toString(16).toUpperCase()}⟩` : character;
}

/** Replace each invisible character of a text, except spaces, by a sign. @param {string} text */
export const visibleText = (text) =>
  Array.from(text, (character) => (character === " " ? character : visibleCharacter(character))).join("");

/**
 * Return the letters of a text; one that is too long is cut at its end or, if `from` is "end", at its beginning, and a
 * mark stands for the rest.
 * @param {string} text
 * @param {number} maxLetters
 * @param {"start" | "end"} [from]
 */
export function truncate(text, maxLetters, from = "start") {
  const letters = [...text];
  if (letters.length <= maxLetters) return letters;
  return from === "end" ? ["…", ...letters.slice(1 - maxLetters)] : [...letters.slice(0, maxLetters - 1), "…"];
}

/**
 * Write a word for an axis: signs stand for characters that cannot be seen, and for spaces, but for those within a name
 * of several words.
 * @param {string} word
 * @param {number} [maxLetters]
 */
export function label(word, maxLetters = 18) {
  const text = truncate(word, maxLetters).join("");
  return (word.trim() === word ? visibleText(text) : [...text].map(visibleCharacter).join("")) || "∅";
}

/**
 * Quote a word within a line. The line stays left to right even if the word is not.
 * @param {string} word
 * @param {number} [maxLetters]
 */
export const quoted = (word, maxLetters = 60) => `“\u2068${label(word, maxLetters)}\u2069”`;

/**
 * Cut a visible text, in which spaces stay.
 * @param {string} text
 * @param {number} [maxLetters]
 * @param {"start" | "end"} [from]
 */
export const excerpt = (text, maxLetters = 40, from = "start") =>
  visibleText(truncate(text, maxLetters, from).join(""));

/**
 * Quote a text within a line, cut as `excerpt` cuts it.
 * @param {string} text
 * @param {number} [maxLetters]
 * @param {"start" | "end"} [from]
 */
export const quotedExcerpt = (text, maxLetters, from) => `“\u2068${excerpt(text, maxLetters, from)}\u2069”`;

/** Capitalize a text. @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// The piece of a page's text that a search result shows.

const LENGTH = 150; // characters

/**
 * Cut a text around the first word that was found, and mark those that were found in it.
 *
 * @param {string} text
 * @param {string[]} terms that words of the text begin with
 * @returns {[string, boolean][]} pieces in order, and whether each was found
 */
export function snippet(text, terms) {
  const longest = [...terms].sort((a, b) => b.length - a.length); // "heads" is marked whole where "head" was asked for
  const pattern = longest.map((term) => term.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|");
  const words = new RegExp(`(?<![\\p{L}\\p{N}])(?:${pattern})`, "giu");
  const first = Math.max(0, text.search(words));
  const start = first < LENGTH / 2 ? 0 : text.lastIndexOf(" ", first - LENGTH / 3) + 1;
  const end = start + LENGTH < text.length ? Math.max(text.lastIndexOf(" ", start + LENGTH), first) : text.length;
  const part = (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
  /** @type {[string, boolean][]} */
  const pieces = [];
  let last = 0;
  for (const { 0: word, index } of part.matchAll(words)) {
    pieces.push([part.slice(last, index), false], [word, true]);
    last = index + word.length;
  }
  pieces.push([part.slice(last), false]);
  return pieces.filter(([piece]) => piece);
}

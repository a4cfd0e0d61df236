/**
 * Visible signs for characters that cannot be seen, in most fonts; few fonts have signs for the other control
 * characters.
 */
export const SIGNS = new Map([
  [" ", "␣"],
  ["\n", "⏎"],
  ["\t", "⇥"],
  ["\r", "␍"],
  ["\0", "␀"],
]);

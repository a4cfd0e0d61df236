/** Signs that most faces can draw, for characters that cannot be seen; those of the other control characters few can. */
export const SIGNS = new Map([
  [" ", "␣"],
  ["\n", "⏎"],
  ["\t", "⇥"],
  ["\r", "␍"],
  ["\0", "␀"],
]);

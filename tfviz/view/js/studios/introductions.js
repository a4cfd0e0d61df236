// What a studio is, and what to do first: the line below its title.

/** @import { StudioDocument } from "../documents.js" */

/** @type {Record<StudioDocument["kind"], [what: string, first: string]>} */
const TEXTS = {
  write: ["A language model", "Type, press “Write on”, or click a head to see what it looks at."],
  patch: ["A language model", "Click a cell to copy the clean run’s activation into the corrupt run."],
  translate: ["A translation model", "Press a translated word to see what the model looked at."],
  classify: ["A text classifier", "Press a word to strike it out, or click a head to see what it looks at."],
  "classify-image": ["A picture classifier", "Hide patches, or click a head to see where it looks."],
  fill: ["A masked language model", "Press a word to hide it, then press a guess."],
};

/**
 * Introduce a studio in a line.
 * @param {StudioDocument["kind"]} kind
 * @param {string} size layers and heads, in words
 * @param {string} reads what it reads: "reads letter by letter", "knows 800 tokens"
 */
export function introduction(kind, size, reads) {
  const [what, first] = TEXTS[kind];
  return `${what} of ${size} that ${reads}. ${first}`;
}

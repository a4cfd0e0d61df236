// What an instrument says of its use, from its document: the line above the controls, and the shortcuts of their kinds.

import { capital } from "../base/visible-text.js";

/** @import { InteractDocument } from "../documents.js" */

/** @type {Record<string, string>} the instruction for each kind of control */
const INSTRUCTIONS = {
  slider: "drag a slider",
  points: "drag a point",
  cells: "change a number",
  switches: "press a cell",
  text: "type a text",
  order: "move a word",
  angle: "turn the dial",
  menu: "choose from the list",
  switch: "tick the box",
};

/** The shortcuts to explain: [the kind of control, the key, what it does]. */
const SHORTCUTS = [
  ["slider", "left, right", "turn a slider; Home and End: all the way"],
  ["points", "arrows on a point", "move it; with Shift by ten steps"],
  ["cells", "arrows in the table", "go from number to number"],
  ["cells", "+ − on a number", "change it by a step; with Shift by ten"],
  ["cells", "digits, Enter", "type a number; Enter keeps it, Escape does not"],
  ["switches", "arrows in the table", "go from switch to switch"],
  ["switches", "Space, Enter", "turn it on or off; a mouse that is dragged turns all it meets"],
  ["order", "Alt with arrows", "move a word; or Space, arrows, Space"],
  ["angle", "arrows on a dial", "turn it by 5°; with Shift by 1°, Page up and down by 45°, Home to 0°"],
  ["", "arrows on a picture", "read its numbers one by one; Home, End: first, last"],
];

/** Return the shortcuts of the kinds of controls that there are: each key, and what it does. @param {InteractDocument} viewDocument */
export function shortcutsOf({ controls }) {
  /** @type {string[]} */
  const kinds = Object.values(controls).map(({ kind }) => kind);
  return SHORTCUTS.filter(([kind]) => kind === "" || kinds.includes(kind)).map(([, key, text]) => [key, text]);
}

/** Return the instruction above the controls: the author's own, what stands behind the title's question, or one made from the controls. @param {InteractDocument} viewDocument */
export function purposeText(viewDocument) {
  const { purpose, controls } = viewDocument;
  if (purpose) return purpose;
  const { subtitle } = titleParts(viewDocument);
  if (subtitle) return capital(subtitle);
  const instructions = [...new Set(Object.values(controls).map(({ kind }) => INSTRUCTIONS[kind]))];
  const [last] = instructions.slice(-1);
  const text = instructions.length > 1 ? `${instructions.slice(0, -1).join(", ")} or ${last}` : last;
  return `${capital(text)}: the results follow.`;
}

/** Return the title up to its colon or question mark, and what stands behind that. @param {InteractDocument} viewDocument */
export function titleParts({ title, purpose }) {
  const [all, main, mark, subtitle] = /^(.+?)(: |\? )(.+)$/su.exec(title) ?? [];
  return all && !purpose ? { main: main + mark.replace(":", "").trim(), subtitle } : { main: title, subtitle: "" };
}

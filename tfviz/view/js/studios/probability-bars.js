// Functions that show the probabilities of words or labels: as buttons with bars, as a table, and drawn on a pen.

import { Grid, ALLOWED } from "../base/grid.js";
import { h } from "../base/elements.js";
import { formatCount, percent } from "../base/numbers.js";
import { joinPresent } from "./small-elements.js";
import { isSpecial, tokenPhrase } from "../base/token-names.js";

/** @import { Drawing, GridPanel, Pen } from "../types.js" */
/** @import { Theme } from "../base/theme.js" */
/**
 * @typedef {object} ProbabilityRow
 * @property {string} name
 * @property {number} probability the current probability, 0 to 1
 * @property {number | null} [pale] a probability drawn pale behind the bar: before top-k or top-p, or of the clean run
 * @property {number | null} [baseline] the probability with all heads on
 * @property {string} [title]
 * @property {string} [kind] a class
 * @property {(() => void) | null} [onclick]
 */

const ROW_HEIGHT = 22; // pixels of a bar in a drawing
const BAR_LENGTH = 220; // pixels of a probability of 1
const BEFORE_OPACITY = 0.28; // of the bar with all heads on, as in `bars.css`
const [MIN_BARS, TINY] = [3, 0.001]; // bars that are always shown; what is written as less than 0.1%
const FEW_BARS = 6;
const FIRST_BARS = 5; // that a telephone shows before it is asked for more

/**
 * Make a button with a bar for each probability.
 * @param {ProbabilityRow[]} rows
 * @param {string} [baselineName] what the baseline is, in words
 * @returns {HTMLElement[]}
 */
export const bars = (rows, baselineName = "with all heads on") => {
  const baselines = rows.map(({ baseline }) => baseline ?? 0);
  const favourite = baselines.indexOf(Math.max(...baselines)); // before the change, which must be seen to fall
  return rows.map((row, i) => {
    const element = barRow(row, baselineName);
    element.classList.toggle("beyond", i >= FIRST_BARS && i !== favourite);
    return element;
  });
};

/** @param {ProbabilityRow} row @param {string} baselineName what the baseline is, in words @returns {HTMLElement} */
function barRow(
  { name, probability, pale = null, baseline = null, title = "", kind = "", onclick = null },
  baselineName,
) {
  const word = name.replace(/[“”\u2068\u2069]/g, "");
  const special = isSpecial(word);
  const phrase = special ? tokenPhrase(word) : name;
  const label = [phrase, percent(probability), baseline !== null && `${baselineName} ${percent(baseline)}`, title];
  return h(
    onclick ? "button" : "div",
    {
      class: joinPresent(["bar-row", kind, probability === 0 && "lost", special && "special"]),
      title,
      onclick,
      ...(onclick ? { type: "button", "aria-label": joinPresent(label, ", ") } : {}),
    },
    h("span", { class: "name", dir: "auto" }, phrase),
    track(probability, pale, baseline),
    h("span", { class: "numbers" }, h("span", { class: "number" }, percent(probability)), was(probability, baseline)),
  );
}

/** Say what a probability was, unless it reads the same. @param {number} probability @param {number | null} baseline */
const was = (probability, baseline) =>
  baseline === null || percent(baseline) === percent(probability)
    ? null
    : h("span", { class: "was" }, `was ${percent(baseline)}`);

/** @param {number} probability @param {number | null} pale @param {number | null} baseline */
function track(probability, pale, baseline) {
  const widthStyle = (/** @type {number} */ part) => `width: ${100 * part}%`;
  return h(
    "span",
    { class: "track" },
    pale === null ? null : h("span", { class: "bar pale", style: widthStyle(pale) }),
    h("span", { class: "bar", style: widthStyle(probability) }),
    baseline === null ? null : h("span", { class: "before", style: `width: max(2px, ${100 * baseline}%)` }),
  );
}

/**
 * Drop entries below 0.1%, except the first three; `othersRow` sums what is dropped.
 * @param {number[]} ids the likeliest first
 * @param {ArrayLike<number>} probabilities by id
 */
export const withoutTiny = (ids, probabilities) => ids.filter((id, i) => i < MIN_BARS || probabilities[id] >= TINY);

/** Mark a list that has so few bars that they are written large. @param {HTMLElement} list */
export const markFew = (list) => list.classList.toggle("few", list.querySelectorAll(".bar-row").length <= FEW_BARS);

/**
 * Return the last row, with the number of entries that are not shown and their total probability; none if all are shown.
 * @param {ArrayLike<number>} probabilities of all
 * @param {number[]} listed indices of those that are shown
 * @returns {ProbabilityRow[]}
 */
export function othersRow(probabilities, listed) {
  const rest = new Set(listed);
  let [count, sum] = [0, 0];
  for (let at = 0; at < probabilities.length; at++)
    if (probabilities[at] > 0 && !rest.has(at)) [count, sum] = [count + 1, sum + probabilities[at]];
  if (!count) return [];
  return [{ name: formatCount(count, "other"), probability: sum, kind: "others", title: "all others together" }];
}

/**
 * Return probabilities as a table of numbers.
 * @param {string} name
 * @param {string} axis what the rows are
 * @param {ProbabilityRow[]} rows
 * @param {string[]} [columns] the names of a probability and of the one it is compared with
 * @returns {GridPanel<Grid>}
 */
export function probabilitiesPanel(name, axis, rows, columns = ["heads off", "all on"]) {
  const hasBaseline = rows.some(({ baseline }) => (baseline ?? null) !== null);
  const values = Float32Array.from(
    rows.flatMap(({ probability, baseline }) => (hasBaseline ? [probability, baseline ?? NaN] : [probability])),
  );
  const words = rows.map((row) => row.name);
  const state = new Uint8Array(values.length).fill(ALLOWED);
  const grid = Grid.of(words, hasBaseline ? columns : ["probability"], values, state, { scale: "linear" });
  return { name, grid, axes: [axis, ""] };
}

/** @param {Theme} theme @param {ProbabilityRow[]} rows named as they are shown @returns {Drawing} */
export const probabilitiesDrawing = (theme, rows) => ({
  width: 420,
  height: probabilitiesHeight(rows),
  draw: (pen) => drawProbabilities(pen, theme, rows, 0),
});

/** @param {ProbabilityRow[]} rows @returns pixels that `drawProbabilities` takes */
export const probabilitiesHeight = (rows) => ROW_HEIGHT * rows.length;

/**
 * Draw probabilities as bars.
 * @param {Pen} pen
 * @param {Theme} theme
 * @param {ProbabilityRow[]} rows named as they are shown
 * @param {number} top
 */
export function drawProbabilities(pen, theme, rows, top) {
  rows.forEach(({ name, probability, baseline = null }, i) => {
    const y = top + ROW_HEIGHT * i + 12;
    const long = (/** @type {number} */ part) => BAR_LENGTH * part;
    pen.text(0, y, name, { fill: theme.ink, size: 12 });
    pen.text(360, y, percent(probability), { fill: theme.ink, size: 12 });
    pen.rect(130, y - 7, BAR_LENGTH, 14, { fill: theme.line, alpha: 0.45, radius: 3 });
    pen.rect(130, y - 7, Math.max(1, long(probability)), 14, { fill: theme.prediction, radius: 3 });
    if (baseline === null) return;
    pen.rect(130, y - 7, long(baseline), 14, { fill: theme.prediction, alpha: BEFORE_OPACITY });
    pen.rect(129 + long(baseline), y - 9, 2, 18, { fill: theme.ink });
  });
}

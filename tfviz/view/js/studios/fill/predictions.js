// Functions that show the likeliest words in place of a masked one: as buttons, as rows of a table, and drawn on a pen.

import { h } from "../../base/elements.js";
import { percent } from "../../base/numbers.js";
import { quoted, quotedExcerpt } from "../../base/visible-text.js";
import { topK } from "../logits.js";
import { joinPresent } from "../small-elements.js";
import { bars, drawProbabilities, othersRow, probabilitiesHeight, withoutTiny } from "../probability-bars.js";

/** @import { NumberList } from "../../base/grid.js" */
/** @import { Theme } from "../../base/theme.js" */
/** @import { Pen, Tokenizer } from "../../types.js" */
/** @import { ProbabilityRow } from "../probability-bars.js" */
/**
 * @typedef {{ probabilities: Float64Array, baseline?: Float64Array | null, tokenizer: Tokenizer }} Predictions baseline: with all
 *   heads on
 * @typedef {{ name: string, rows: ProbabilityRow[] }} PredictionTable
 */

export const MAX_PREDICTIONS = 7; // for each masked position
const HEADING_HEIGHT = 22; // of a table's name in a drawing
const TABLE_GAP = 12; // between two tables

/** @param {NumberList} probabilities */
export const likeliest = (probabilities) => withoutTiny(topK(probabilities, MAX_PREDICTIONS), probabilities);

/** @param {Predictions} predictions @param {number[] | null} [top] the words, if not the likeliest @returns {ProbabilityRow[]} */
export const predictionRows = ({ probabilities, baseline = null, tokenizer }, top) =>
  (top ?? likeliest(probabilities)).map((id) => ({
    name: tokenizer.tokens([id])[0],
    probability: probabilities[id],
    baseline: baseline && baseline[id],
  }));

/**
 * Return the likeliest words of one position, and the word that was typed, as bars to press.
 * @param {[name: string, remark: string]} heading
 * @param {Predictions} predictions
 * @param {{ typed: number | undefined, takes: (id: number) => (() => void) | null, top?: number[] | null }} options
 *   takes: returns the action that fills a prediction in; top: the words to show, if not the likeliest
 */
export function predictionBars(
  heading,
  { probabilities, baseline = null, tokenizer },
  { typed, takes, top: given = null },
) {
  const top = given ?? likeliest(probabilities);
  const ids = typed === undefined || top.includes(typed) ? top : [...top, typed];
  const rows = [
    ...ids.map((id) => {
      const comparison = baseline && `with all heads on ${percent(baseline[id])}`;
      return {
        name: quoted(tokenizer.tokens([id])[0], 24),
        probability: probabilities[id],
        baseline: baseline && baseline[id],
        title: joinPresent([id === typed && "as typed", takes(id) && "put it in", comparison], "; "),
        onclick: takes(id),
      };
    }),
    ...othersRow(probabilities, ids),
  ];
  const buttons = bars(rows);
  if (typed !== undefined) buttons[ids.indexOf(typed)].classList.add("as-was");
  return h("div", { class: "bar-list" }, sideTitle(heading), ...buttons);
}

/** Make the title of a list of predictions: what was read. @param {[name: string, remark: string]} heading */
export const sideTitle = ([name, remark]) => h("span", { class: "side-title" }, h("b", {}, name), remark);

/** @param {PredictionTable} table */
const heightOf = ({ rows }) => HEADING_HEIGHT + probabilitiesHeight(rows) + TABLE_GAP;

/** @param {PredictionTable[]} tables @returns pixels that `drawPredictions` takes */
export const predictionsHeight = (tables) => tables.reduce((sum, table) => sum + heightOf(table), 0);

/** Draw predictions as bars. @param {Pen} pen @param {Theme} theme @param {PredictionTable[]} tables @param {number} top */
export function drawPredictions(pen, theme, tables, top) {
  let y = top;
  for (const table of tables) {
    pen.text(0, y + 12, quotedExcerpt(table.name), { fill: theme.soft, size: 12 });
    const rows = table.rows.map(({ name, probability }) => ({ name: quoted(name, 16), probability }));
    drawProbabilities(pen, theme, rows, y + HEADING_HEIGHT);
    y += heightOf(table);
  }
}

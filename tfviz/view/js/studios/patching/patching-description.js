// Functions that describe in words what a patch changes.

import { percent, withSign } from "../../base/numbers.js";
import { capital } from "../../base/visible-text.js";
import { shareBack } from "./patching-runs.js";

/** @import { Kind } from "./patching-runs.js" */
/** @typedef {{ clean: number, corrupt: number }} Metrics the difference of both answers' logits in both runs */
/** @typedef {[text: string, bold?: boolean][]} Parts of a sentence */

/** @type {Record<Kind, string>} */
const ACTIVATIONS = { residual: "residual stream", heads: "output" };

/** Describe a cell. @param {Metrics} metrics @param {number} change */
export function changeText(metrics, change) {
  const share = shareBack(metrics, metrics.corrupt + change);
  return `${withSign(change)}${share === null ? "" : `, ${percent(share)} back`}`;
}

/** Say what the numbers of the tables are. @param {Metrics} metrics */
export function scaleText(metrics) {
  const difference = metrics.clean - metrics.corrupt;
  const all = shareBack(metrics, 0) === null ? "" : ` (all: ${withSign(difference)})`;
  return `Each cell: what a patch there adds to the logit difference${all}.`;
}

/**
 * Describe both runs, and what brings most of the answer back.
 * @param {Metrics} metrics
 * @param {string} metric its name
 * @param {{ name: string, change: number } | null} strongest null: it is not known yet
 * @returns {Parts}
 */
export function unpatchedText(metrics, metric, strongest) {
  const same = shareBack(metrics, 0) === null ? ": there is nothing to bring back" : "";
  const { clean, corrupt } = metrics;
  return [
    [`${capital(metric)}:`, true],
    [` ${withSign(clean)} after the clean text, ${withSign(corrupt)} after the corrupt one${same}.`],
    ...strongestText(strongest && !same ? strongest : null),
  ];
}

/** @param {{ name: string, change: number } | null} strongest @returns {Parts} */
const strongestText = (strongest) =>
  strongest ? [[" Most comes back from "], [strongest.name, true], [`: ${withSign(strongest.change)}.`]] : [];

/**
 * Describe a patched run.
 * @param {Metrics} metrics
 * @param {number} patched the metric of this run
 * @param {{ name: string, kind: Kind, metric: string }} words of the target and of the metric
 * @returns {Parts}
 */
export function patchedText(metrics, patched, { name, kind, metric }) {
  const { clean, corrupt } = metrics;
  const share = shareBack(metrics, patched);
  const back =
    share === null ? "There is nothing to bring back." : `${percent(share)} of the clean run's answer is back.`;
  return [
    [capital(name), true],
    [` with the clean run's ${ACTIVATIONS[kind]}: ${metric} goes from ${withSign(corrupt)} to ${withSign(patched)}`],
    [` (clean: ${withSign(clean)}). `],
    [back, true],
  ];
}

// Functions that choose the colour scale of a result and its limit, by the same rule as `result_scale` in
// `tfviz/view/result_spec.py`.

import { ABSENT, FORBIDDEN, Grid, ALLOWED } from "../base/grid.js";
import { numbered } from "../base/patch-grid.js";
import { roundUp } from "../base/axis-ticks.js";

/** @import { ResultSpec, ScaleKind } from "../documents.js" */
/** @import { Numbers, Tensor } from "../types.js" */

/**
 * Return the colour scale of a result, and where it ends.
 * @param {Tensor} tensor
 * @param {Pick<ResultSpec, "kind" | "scale" | "limit" | "min_limit">} spec
 * @returns {{ scale: ScaleKind, limit: number }}
 */
export function scaleOf({ shape, dtype, data }, { kind, scale, limit, min_limit }) {
  const margin = kind === "arrows" || kind === "dots" ? 1.1 : 1; // for names
  const finite = Array.from(data).filter(Number.isFinite);
  const chosen = scale || (finite.some((value) => value < 0) ? "diverging" : "linear");
  if (limit !== null) return { scale: chosen, limit };
  const binary = () => dtype !== "float32" && finite.every((value) => value === 0 || value === 1);
  const shares = scale ? scale !== "diverging" : chosen === "linear" && (binary() || rowsSumToOne(shape, data));
  const top = finite.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  return { scale: chosen, limit: shares ? 1 : roundUp(Math.max(margin * top, min_limit)) };
}

/**
 * Return the scale of each result by name; results that share one have the largest.
 * @param {ResultSpec[]} specs
 * @param {Record<string, Tensor>} outputs
 */
export function scalesOf(specs, outputs) {
  const available = specs.filter(({ result }) => outputs[result]);
  const singleScales = available.map((spec) => scaleOf(outputs[spec.result], spec));
  const group = (/** @type {ResultSpec} */ { shared, result }) => shared ?? result;
  return Object.fromEntries(
    available.map((spec) => {
      const scales = singleScales.filter((_, i) => group(available[i]) === group(spec));
      const { scale } = scales.find((one) => one.scale.startsWith("diverging")) ?? scales[0];
      return [spec.result, { scale, limit: Math.max(...scales.map(({ limit }) => limit)) }];
    }),
  );
}

/**
 * Tell whether each row adds up to 1.
 * @param {number[]} shape
 * @param {Numbers} data
 */
export function rowsSumToOne(shape, data) {
  const width = shape[shape.length - 1];
  if (!width || !data.length) return false;
  for (let start = 0; start < data.length; start += width) {
    let sum = 0;
    for (let i = start; i < start + width; i++) sum += data[i] === -Infinity ? 0 : data[i];
    if (!(Math.abs(sum - 1) < 1e-3)) return false;
  }
  return true;
}

/**
 * Make a grid of numbers. Minus infinity is a score that a mask forbids; NaN stays blank.
 * @param {string[]} rows
 * @param {string[]} columns
 * @param {Numbers | number[]} data
 * @param {{ scale?: string, limit?: number }} gridScale
 */
export function gridOf(rows, columns, data, gridScale) {
  return Grid.of(rows, columns, data, Uint8Array.from(data, stateOf), gridScale);
}

/** @param {number} value */
function stateOf(value) {
  if (value === -Infinity) return FORBIDDEN;
  return Number.isNaN(value) ? ABSENT : ALLOWED;
}

/**
 * Return a label for each index; its number where there are not as many labels as indices.
 * @param {string[]} words
 * @param {number} count
 */
export function wordsFor(words, count) {
  return words.length === count ? words : numbered(count);
}

/** Tell whether all numbers are 0 or 1; minus infinity, which is hatched, does not count. @param {Numbers | number[]} data */
export const isBinary = (data) =>
  Array.from(data).every((value) => !Number.isFinite(value) || value === 0 || value === 1);

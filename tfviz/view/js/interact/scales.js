// Which colours a result has and where its scale ends: the same rule as `result_scale` in `tfviz/view/spec.py`.

import { ABSENT, FORBIDDEN, Grid } from "../base/grid.js";

/** @import { ResultSpec, ScaleKind } from "../documents.d.ts" */
/** @import { Numbers, Tensor } from "../types.d.ts" */

const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8, 10, 20];

// The next round number that is not less; 1 for 0.
/** @param {number} value @param {number[]} [sizes] */
export function roundUp(value, sizes = ROUND) {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return Number((Number(sizes.find((size) => size * power >= value * (1 - 1e-6))) * power).toPrecision(6));
}

/** @param {Tensor} tensor @param {Pick<ResultSpec, "kind" | "scale" | "limit" | "min_limit">} spec @returns {{ scale: ScaleKind, limit: number }} */
export function scaleOf({ shape, dtype, data }, { kind, scale, limit, min_limit }) {
  const margin = kind === "arrows" || kind === "dots" ? 1.1 : 1; // for names
  let [top, low, binary] = [0, 0, dtype !== "float32"];
  for (const value of data) {
    if (!Number.isFinite(value)) continue;
    top = Math.max(top, Math.abs(value));
    low = Math.min(low, value);
    binary = binary && (value === 0 || value === 1);
  }
  const chosen = scale || (low < 0 ? "diverging" : "linear");
  if (limit !== null) return { scale: chosen, limit };
  const ends = scale === "linear" || scale === "sqrt" || (chosen === "linear" && (binary || rowsSumToOne(shape, data)));
  return { scale: chosen, limit: ends ? 1 : roundUp(Math.max(margin * top, min_limit)) };
}

// Whether each row adds up to 1.
/** @param {number[]} shape @param {Numbers} data */
function rowsSumToOne(shape, data) {
  const width = shape[shape.length - 1];
  if (!width || !data.length) return false;
  for (let start = 0; start < data.length; start += width) {
    let sum = 0;
    for (let i = start; i < start + width; i++) sum += data[i] === -Infinity ? 0 : data[i];
    if (!(Math.abs(sum - 1) < 1e-3)) return false;
  }
  return true;
}

// Minus infinity is what a mask leaves of a score; what is no number at all stays blank.
/** @param {string[]} rows @param {string[]} cols @param {Numbers | number[]} data @param {{ scale?: string, limit?: number }} look */
export function gridOf(rows, cols, data, look) {
  const state = Uint8Array.from(data, (value) => (value === -Infinity ? FORBIDDEN : Number.isNaN(value) ? ABSENT : 0));
  return Grid.of(rows, cols, data, state, look);
}

// A word for each of so many: numbers where there are no words, or not so many.
/** @param {string[]} words @param {number} count */
export function wordsFor(words, count) {
  return words.length === count ? words : Array.from({ length: count }, (_, i) => String(i));
}

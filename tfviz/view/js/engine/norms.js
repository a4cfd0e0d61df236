// Operations that measure how long vectors are, and how far apart.

/** @import { Operation } from "../types.d.ts" */

import { PAIRS } from "./elementwise.js";
import { nonzero, reduced } from "./reducing.js";
import { unsqueeze } from "./shaping.js";

const NORMS = {
  0: nonzero,
  Infinity: (data, start, end) => data.subarray(start, end).reduce((most, x) => Math.max(most, Math.abs(x)), 0),
  "-Infinity": (data, start, end) =>
    data.subarray(start, end).reduce((least, x) => Math.min(least, Math.abs(x)), Infinity),
};
const lengthOf = (order) => (data, start, end) => {
  let sum = 0;
  for (let i = start; i < end; i++) sum += order === 2 ? data[i] * data[i] : Math.abs(data[i]) ** order;
  return order === 2 ? Math.sqrt(sum) : sum ** (1 / order);
};
/** @type {Operation} */
function vectorNorm(machine, tensor, order = 2, axes = null, keep = false) {
  return reduced(machine, tensor, axes, keep, "float32", NORMS[order ?? 2] ?? lengthOf(order ?? 2));
}

/** @type {Operation} How far apart: along the last axis, of pairs of rows. */
function distances(machine, one, other, order = 2) {
  const [a, b] = [unsqueeze(machine, one, -2), unsqueeze(machine, other, -3)];
  return vectorNorm(machine, PAIRS["sub.Tensor"](machine, a, b), order, [-1]);
}

/** @type {Record<string, Operation>} */
export const MEASURING = { linalg_vector_norm: vectorNorm, cdist: distances };

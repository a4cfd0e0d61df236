// Operations that measure how long vectors are, and how far apart.

import { PAIRS } from "./elementwise.js";
import { nonzero, reduced, sum } from "./reducing.js";
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
function vectorNorm(machine, tensor, order = 2, axes = null, keep = false) {
  return reduced(machine, tensor, axes, keep, "float32", NORMS[order ?? 2] ?? lengthOf(order ?? 2));
}
function norm(machine, tensor, order = null, axes = null, keep = false) {
  if (order !== null && [].concat(axes ?? [...tensor.shape.keys()]).length !== 1) {
    throw new Error("only norms of vectors are known, along one axis");
  }
  return vectorNorm(machine, tensor, order, axes, keep);
}

// How far apart: along the last axis, of pairs of rows.
function distances(machine, one, other, order = 2) {
  const [a, b] = [unsqueeze(machine, one, -2), unsqueeze(machine, other, -3)];
  return vectorNorm(machine, PAIRS["sub.Tensor"](machine, a, b), order, [-1]);
}
function pairwiseDistance(machine, one, other, order = 2, epsilon = 1e-6, keep = false) {
  const apart = PAIRS["add.Scalar"](machine, PAIRS["sub.Tensor"](machine, one, other), epsilon);
  return vectorNorm(machine, apart, order, [-1], keep);
}
function cosine(machine, one, other, axis = 1, epsilon = 1e-8) {
  const multiplied = sum(machine, PAIRS["mul.Tensor"](machine, one, other), [axis]);
  const [a, b] = [one, other].map((part) => PAIRS.clamp_min(machine, vectorNorm(machine, part, 2, [axis]), epsilon));
  return PAIRS["div.Tensor"](machine, multiplied, PAIRS["mul.Tensor"](machine, a, b));
}

export const MEASURING = {
  linalg_vector_norm: vectorNorm,
  linalg_norm: norm,
  "norm.Scalar": vectorNorm,
  "norm.ScalarOpt_dim": vectorNorm,
  cdist: distances,
  pairwise_distance: pairwiseDistance,
  cosine_similarity: cosine,
};

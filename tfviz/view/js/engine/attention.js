// Attention, and the softmax that may be one: places where the page looks and acts.

/** @import { Operation } from "../types.d.ts" */

import { axisOf, cast, expanded, permuted, reshaped, formatShape, sizeOf } from "./tensors.js";
import { softmaxAlong } from "./scanning.js";

const LEAST_ALLOWED = -1.7014117e38; // half of the least float32: what is below stands for "not allowed"

/** @type {Operation} True where a query may look; null where nothing is forbidden. */
function allowedBy(machine, scores) {
  if (!scores.data.some((score) => score <= LEAST_ALLOWED)) return null;
  const out = machine.empty(scores.shape, "bool");
  for (let i = 0; i < out.data.length; i++) out.data[i] = scores.data[i] > LEAST_ALLOWED ? 1 : 0;
  return out;
}

/**
 * Zeros for the rows in which every score is -inf, where a softmax has NaN; null if there is no such row.
 * @type {Operation}
 */
function zeroMaskedRows(machine, weights, scores) {
  const keys = scores.shape[scores.shape.length - 1];
  const dead = [];
  for (let start = 0; start < scores.data.length; start += keys) {
    if (weights.data[start] === weights.data[start]) continue;
    if (scores.data.subarray(start, start + keys).every((score) => score === -Infinity)) dead.push(start);
  }
  if (dead.length === 0) return null;
  const out = machine.empty(weights.shape, weights.dtype);
  out.data.set(weights.data);
  for (const start of dead) out.data.fill(0, start, start + keys);
  return out;
}

/** @type {Operation} A softmax over the last of three axes or more is an attention that a model writes out. */
function softmax(machine, tensor, axis, dtype = null) {
  const rank = tensor.shape.length;
  if (rank < 3 || axisOf(rank, axis) !== rank - 1 || tensor.data.length === 0)
    return softmaxAlong(machine, tensor, axis, dtype);
  const scores = cast(machine, tensor, dtype);
  const weights = softmaxAlong(machine, scores, -1);
  const seen = zeroMaskedRows(machine, weights, scores) ?? weights;
  const back = machine.pattern(seen, allowedBy(machine, scores));
  return back === seen ? weights : back;
}

/** @type {Operation} Heads of keys or values, each as often as there are queries for it. */
function grouped(machine, tensor, heads) {
  const { shape } = tensor;
  const own = shape[shape.length - 3];
  if (own === heads) return tensor;
  if (heads % own !== 0) throw new Error(`${heads} heads of queries do not share ${own} of keys`);
  const lead = shape.slice(0, -2);
  const wide = expanded(machine, reshaped(tensor, [...lead, 1, ...shape.slice(-2)]), [
    ...lead,
    heads / own,
    ...shape.slice(-2),
  ]);
  return reshaped(wide, [...shape.slice(0, -3), heads, ...shape.slice(-2)]);
}

/** @type {Operation} Add a mask to scores: of truths, -inf where it is false; of floats as it is. */
function mask(machine, scores, given) {
  const { data } = expanded(machine, given, scores.shape);
  if (given.dtype === "bool")
    for (let i = 0; i < data.length; i++) scores.data[i] = data[i] ? scores.data[i] : -Infinity;
  else for (let i = 0; i < data.length; i++) scores.data[i] += data[i];
}

// Each query sees as many keys as stand before it, counted from the first.
function maskFuture(scores, queries, keys) {
  for (let row = 0; row * keys < scores.data.length; row++) {
    scores.data.fill(-Infinity, Math.min(keys, (row % queries) + 1) + row * keys, (row + 1) * keys);
  }
}

/** @type {Operation} */
function attend(machine, query, key, value, given = null, _dropout = 0, causal = false, scale = null, groups = false) {
  const [queries, width] = query.shape.slice(-2);
  const keys = key.shape[key.shape.length - 2];
  const heads = query.shape[query.shape.length - 3];
  if (width !== key.shape[key.shape.length - 1] || keys !== value.shape[value.shape.length - 2]) {
    throw new Error(
      `queries ${formatShape(query.shape)}, keys ${formatShape(key.shape)} and values ${formatShape(value.shape)} do not fit`,
    );
  }
  const [k, v] = groups ? [grouped(machine, key, heads), grouped(machine, value, heads)] : [key, value];
  const lead = query.shape.slice(0, -2);
  const factor = scale ?? 1 / Math.sqrt(width);
  const scaledQuery = machine.empty(query.shape, "float32");
  for (let i = 0; i < query.data.length; i++) scaledQuery.data[i] = query.data[i] * factor;
  const rank = k.shape.length;
  const transposed = permuted(machine, k, [...Array(rank - 2).keys(), rank - 1, rank - 2]);
  const batch = sizeOf(lead);
  const scores = machine.empty([...lead, queries, keys], "float32");
  const right = expanded(machine, transposed, [...lead, width, keys]);
  machine.products.batched(scaledQuery.data, right.data, batch, queries, width, keys, scores.data);
  if (given !== null) mask(machine, scores, given);
  if (causal) maskFuture(scores, queries, keys);
  const weights = softmaxAlong(machine, scores, -1);
  const allowed = allowedBy(machine, scores);
  const flows = machine.pattern(zeroMaskedRows(machine, weights, scores) ?? weights, allowed);
  const last = v.shape[v.shape.length - 1];
  const out = machine.empty([...lead, queries, last], "float32");
  const values = expanded(machine, v, [...lead, keys, last]);
  machine.products.batched(flows.data, values.data, batch, queries, keys, last, out.data);
  machine.done?.(...[scaledQuery, scores, weights, allowed].filter(Boolean));
  return out;
}

/** @type {Record<string, Operation>} */
export const ATTENTION = { "softmax.int": softmax, scaled_dot_product_attention: attend };

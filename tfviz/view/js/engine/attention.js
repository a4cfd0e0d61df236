// Scaled dot-product attention, and softmax over scores that a model writes out. Both report their weights to the page
// and apply its edits.

/** @import { Operation } from "../types.js" */

import { formatShape, normalizeAxis, sizeOf } from "./shape-utils.js";
import { cast, copy, expand, permute, reshape } from "./tensors.js";
import { softmaxAlong } from "./scanning.js";

const MIN_ALLOWED_SCORE = -1.7014117e38; // half of the least float32: a score below it stands for "not allowed"

/** @type {Operation} True where a query may attend; null where nothing is masked. */
function allowedBy(interpreter, scores) {
  if (!scores.data.some((/** @type {number} */ score) => score <= MIN_ALLOWED_SCORE)) return null;
  const out = interpreter.empty(scores.shape, "bool");
  for (let i = 0; i < out.data.length; i++) out.data[i] = scores.data[i] > MIN_ALLOWED_SCORE ? 1 : 0;
  return out;
}

/** @type {Operation} The weights with zeros for NaN in the rows in which every score is -inf. */
function zeroMaskedRows(interpreter, weights, scores) {
  const keys = scores.shape.at(-1);
  const masked = [];
  for (let start = 0; start < scores.data.length; start += keys) {
    if (weights.data[start] === weights.data[start]) continue; // no NaN
    const row = scores.data.subarray(start, start + keys);
    if (row.every((/** @type {number} */ score) => score === -Infinity)) masked.push(start);
  }
  if (masked.length === 0) return weights;
  const out = copy(interpreter, weights);
  for (const start of masked) out.data.fill(0, start, start + keys);
  return out;
}

/** @type {Operation} A softmax over the last of three axes or more is an attention that a model writes out. */
function softmax(interpreter, tensor, axis, dtype = null) {
  const rank = tensor.shape.length;
  if (rank < 3 || normalizeAxis(rank, axis) !== rank - 1 || tensor.data.length === 0)
    return softmaxAlong(interpreter, tensor, axis, dtype);
  const scores = cast(interpreter, tensor, dtype);
  const weights = softmaxAlong(interpreter, scores, -1);
  const visible = zeroMaskedRows(interpreter, weights, scores);
  const flowing = interpreter.applyHooks(visible, allowedBy(interpreter, scores));
  return flowing === visible ? weights : flowing; // unedited, NaN flows on as in torch
}

/** @type {Operation} Heads of keys or values, each repeated for the queries that share it. */
function repeatHeads(interpreter, tensor, heads) {
  const [lead, groups, rest] = [tensor.shape.slice(0, -3), tensor.shape.at(-3), tensor.shape.slice(-2)];
  if (groups === heads) return tensor;
  if (heads % groups) throw new Error(`${heads} heads of queries do not share ${groups} heads of keys`);
  const repeated = expand(interpreter, reshape(tensor, [...lead, groups, 1, ...rest]), [
    ...lead,
    groups,
    heads / groups,
    ...rest,
  ]);
  return reshape(repeated, [...lead, heads, ...rest]);
}

/** @type {Operation} left [..., rows, inner] @ right [..., inner, columns], with the leading axes of the left. */
function batchedMatmul(interpreter, left, right) {
  const lead = left.shape.slice(0, -2);
  const [rows, inner] = left.shape.slice(-2);
  const columns = right.shape.at(-1);
  const out = interpreter.empty([...lead, rows, columns]);
  const { data } = expand(interpreter, right, [...lead, inner, columns]);
  interpreter.matmulKernel.matmul(
    left.data,
    /** @type {any} */ (data),
    { batch: sizeOf(lead), rows, inner, columns },
    out.data,
  );
  return out;
}

/** @type {Operation} query @ key.mT * scale: [..., query, key] */
function scaledScores(interpreter, query, key, scale) {
  const scaled = interpreter.empty(query.shape);
  for (let i = 0; i < query.data.length; i++) scaled.data[i] = query.data[i] * scale;
  const rank = key.shape.length;
  const scores = batchedMatmul(interpreter, scaled, permute(interpreter, key, [...Array(rank - 2).keys(), -1, -2]));
  interpreter.recycle(scaled);
  return scores;
}

/** @type {Operation} Write a mask into scores: -inf where a boolean one is False; floats are added. */
function maskScores(interpreter, { shape, data: scores }, mask) {
  const { data } = expand(interpreter, mask, shape);
  if (mask.dtype === "bool") for (let i = 0; i < data.length; i++) scores[i] = data[i] ? scores[i] : -Infinity;
  else for (let i = 0; i < data.length; i++) scores[i] += data[i];
}

/** @type {Operation} A query sees as many keys as stand before it, counted from the first. */
function maskFuture(_interpreter, { shape, data: scores }) {
  const [queries, keys] = shape.slice(-2);
  for (let row = 0; row * keys < scores.length; row++)
    scores.fill(-Infinity, row * keys + Math.min(keys, (row % queries) + 1), (row + 1) * keys);
}

/** @type {Operation} */
function attend(
  interpreter,
  query,
  key,
  value,
  mask = null,
  _dropout = 0,
  causal = false,
  scale = null,
  grouped = false,
) {
  const [queries, keys, values] = [query, key, value].map(({ shape }) => shape);
  if (queries.at(-1) !== keys.at(-1) || keys.at(-2) !== values.at(-2)) {
    const shapes = [queries, keys, values].map(formatShape);
    throw new Error(`queries ${shapes[0]}, keys ${shapes[1]} and values ${shapes[2]} do not fit each other`);
  }
  const [k, v] = grouped
    ? [key, value].map((tensor) => repeatHeads(interpreter, tensor, queries.at(-3)))
    : [key, value];
  const scores = scaledScores(interpreter, query, k, scale ?? 1 / Math.sqrt(queries.at(-1)));
  if (mask !== null) maskScores(interpreter, scores, mask);
  if (causal) maskFuture(interpreter, scores);
  const weights = softmaxAlong(interpreter, scores, -1);
  const allowed = allowedBy(interpreter, scores);
  const flowing = interpreter.applyHooks(zeroMaskedRows(interpreter, weights, scores), allowed);
  const out = batchedMatmul(interpreter, flowing, v);
  interpreter.recycle(...[scores, weights, allowed].filter(Boolean));
  return out;
}

/** @type {Record<string, Operation>} */
export const ATTENTION = { "softmax.int": softmax, scaled_dot_product_attention: attend };

// Operations that move cells about and leave their numbers alone.

/** @import { Operation } from "../types.d.ts" */

import { axisOf, expanded, permuted, reshaped, formatShape, sizeOf } from "./tensors.js";

/** @type {Operation} One length may be -1: what is left. */
function view(machine, tensor, shape) {
  const size = sizeOf(tensor.shape);
  const known = shape.reduce((product, length) => (length < 0 ? product : product * length), 1);
  if (!Number.isInteger(size / known) && shape.includes(-1))
    throw new Error(`${size} numbers do not make ${formatShape(shape)}`);
  return reshaped(
    tensor,
    shape.map((length) => (length < 0 ? size / known : length)),
  );
}

/** @type {Operation} */
function flatten(machine, tensor, first = 0, last = -1) {
  const { shape } = tensor;
  if (shape.length === 0) return reshaped(tensor, [1]);
  const [from, to] = [axisOf(shape.length, first), axisOf(shape.length, last)];
  return reshaped(tensor, [...shape.slice(0, from), sizeOf(shape.slice(from, to + 1)), ...shape.slice(to + 1)]);
}

/** @type {Operation} */
function unflatten(machine, tensor, axis, lengths) {
  const place = axisOf(tensor.shape.length, axis);
  const known = lengths.reduce((product, length) => (length < 0 ? product : product * length), 1);
  const whole = lengths.map((length) => (length < 0 ? tensor.shape[place] / known : length));
  return reshaped(tensor, [...tensor.shape.slice(0, place), ...whole, ...tensor.shape.slice(place + 1)]);
}

/** @type {Operation} */
export function unsqueeze(machine, tensor, axis) {
  const place = axisOf(tensor.shape.length + 1, axis);
  return reshaped(tensor, [...tensor.shape.slice(0, place), 1, ...tensor.shape.slice(place)]);
}

/** @type {Operation} */
export function squeeze(machine, tensor, axes = null) {
  const gone = axes === null ? null : [].concat(axes).map((axis) => axisOf(tensor.shape.length, axis));
  const kept = tensor.shape.filter((length, axis) => length !== 1 || (gone && !gone.includes(axis)));
  return reshaped(tensor, kept);
}

/** @type {Operation} */
function permute(machine, tensor, order) {
  const axes = order.map((axis) => axisOf(tensor.shape.length, axis));
  if (axes.length !== tensor.shape.length || new Set(axes).size !== axes.length) {
    throw new Error(`the order ${formatShape(order)} does not name each of ${tensor.shape.length} axes once`);
  }
  return permuted(machine, tensor, axes);
}

/** @type {Operation} */
function transpose(machine, tensor, one, other) {
  const order = [...tensor.shape.keys()];
  if (order.length === 0) return tensor;
  const [a, b] = [axisOf(order.length, one), axisOf(order.length, other)];
  [order[a], order[b]] = [b, a];
  return permuted(machine, tensor, order);
}

/** @type {Operation} A -1 keeps the length that is there. */
function expand(machine, tensor, shape) {
  const lead = shape.length - tensor.shape.length;
  return expanded(
    machine,
    tensor,
    shape.map((length, axis) => (length < 0 ? tensor.shape[axis - lead] : length)),
  );
}

/** @type {Operation} */
function repeat(machine, tensor, counts) {
  const lead = counts.length - tensor.shape.length;
  if (lead < 0)
    throw new Error(`${formatShape(counts)} says for too few axes how often to repeat ${formatShape(tensor.shape)}`);
  const shape = counts.flatMap((count, axis) => [count, axis < lead ? 1 : tensor.shape[axis - lead]]);
  const alone = shape.map((length, axis) => (axis % 2 ? length : 1));
  return reshaped(
    expanded(machine, reshaped(tensor, alone), shape),
    counts.map((count, i) => count * shape[2 * i + 1]),
  );
}

/** @type {Operation} */
const keep = (machine, tensor) => tensor;

/** @type {Record<string, Operation>} */
export const SHAPING = {
  view,
  reshape: view,
  view_as: (machine, tensor, other) => reshaped(tensor, other.shape),
  "flatten.using_ints": flatten,
  "unflatten.int": unflatten,
  unsqueeze,
  "squeeze.dim": squeeze,
  "squeeze.dims": squeeze,
  permute,
  "transpose.int": transpose,
  t: (machine, tensor) => transpose(machine, tensor, 0, -1),
  mT: (machine, tensor) => transpose(machine, tensor, -2, -1),
  expand,
  expand_as: (machine, tensor, other) => expand(machine, tensor, other.shape),
  repeat,
  clone: keep,
  contiguous: keep,
  alias: keep,
  detach: keep,
  lift_fresh_copy: keep,
  dropout: keep,
};

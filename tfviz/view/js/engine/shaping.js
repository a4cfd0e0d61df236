// Operations that move cells about and leave their numbers alone.

import { axisOf, expanded, permuted, reshaped, formatShape, sizeOf } from "./tensors.js";

// One length may be -1: what is left.
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

export function flatten(machine, tensor, first = 0, last = -1) {
  const { shape } = tensor;
  if (shape.length === 0) return reshaped(tensor, [1]);
  const [from, to] = [axisOf(shape.length, first), axisOf(shape.length, last)];
  return reshaped(tensor, [...shape.slice(0, from), sizeOf(shape.slice(from, to + 1)), ...shape.slice(to + 1)]);
}

function unflatten(machine, tensor, axis, lengths) {
  const place = axisOf(tensor.shape.length, axis);
  const known = lengths.reduce((product, length) => (length < 0 ? product : product * length), 1);
  const whole = lengths.map((length) => (length < 0 ? tensor.shape[place] / known : length));
  return reshaped(tensor, [...tensor.shape.slice(0, place), ...whole, ...tensor.shape.slice(place + 1)]);
}

export function unsqueeze(machine, tensor, axis) {
  const place = axisOf(tensor.shape.length + 1, axis);
  return reshaped(tensor, [...tensor.shape.slice(0, place), 1, ...tensor.shape.slice(place)]);
}

export function squeeze(machine, tensor, axes = null) {
  const gone = axes === null ? null : [].concat(axes).map((axis) => axisOf(tensor.shape.length, axis));
  const kept = tensor.shape.filter((length, axis) => length !== 1 || (gone && !gone.includes(axis)));
  return reshaped(tensor, kept);
}

function permute(machine, tensor, order) {
  const axes = order.map((axis) => axisOf(tensor.shape.length, axis));
  if (axes.length !== tensor.shape.length || new Set(axes).size !== axes.length) {
    throw new Error(`the order ${formatShape(order)} does not name each of ${tensor.shape.length} axes once`);
  }
  return permuted(machine, tensor, axes);
}

function transpose(machine, tensor, one, other) {
  const order = [...tensor.shape.keys()];
  if (order.length === 0) return tensor;
  const [a, b] = [axisOf(order.length, one), axisOf(order.length, other)];
  [order[a], order[b]] = [b, a];
  return permuted(machine, tensor, order);
}

function moveAxes(machine, tensor, from, to) {
  const rank = tensor.shape.length;
  const sources = [].concat(from).map((axis) => axisOf(rank, axis));
  const targets = [].concat(to).map((axis) => axisOf(rank, axis));
  const rest = [...Array(rank).keys()].filter((axis) => !sources.includes(axis));
  const order = [...Array(rank).keys()].map((place) => {
    const moved = targets.indexOf(place);
    return moved >= 0 ? sources[moved] : rest.shift();
  });
  return permuted(machine, tensor, order);
}

// A -1 keeps the length that is there.
function expand(machine, tensor, shape) {
  const lead = shape.length - tensor.shape.length;
  return expanded(
    machine,
    tensor,
    shape.map((length, axis) => (length < 0 ? tensor.shape[axis - lead] : length)),
  );
}

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

function tile(machine, tensor, counts) {
  return repeat(machine, tensor, [...Array(Math.max(0, tensor.shape.length - counts.length)).fill(1), ...counts]);
}

// Each cell so many times in a row; with no axis, of the flat tensor.
function repeatEach(machine, tensor, count, axis = null) {
  if (axis === null) return repeatEach(machine, flatten(machine, tensor), count, 0);
  const place = axisOf(tensor.shape.length, axis);
  const shape = [...tensor.shape];
  shape.splice(place + 1, 0, count);
  const wide = expanded(machine, unsqueeze(machine, tensor, place + 1), shape);
  return flatten(machine, wide, place, place + 1);
}

const keep = (machine, tensor) => tensor;

export const SHAPING = {
  view,
  reshape: view,
  _unsafe_view: view,
  view_as: (machine, tensor, other) => reshaped(tensor, other.shape),
  reshape_as: (machine, tensor, other) => reshaped(tensor, other.shape),
  "flatten.using_ints": flatten,
  ravel: (machine, tensor) => flatten(machine, tensor),
  "unflatten.int": unflatten,
  unsqueeze,
  squeeze,
  "squeeze.dim": squeeze,
  "squeeze.dims": squeeze,
  permute,
  "transpose.int": transpose,
  swapaxes: transpose,
  swapdims: transpose,
  t: (machine, tensor) => transpose(machine, tensor, 0, -1),
  numpy_T: (machine, tensor) => permuted(machine, tensor, [...tensor.shape.keys()].reverse()),
  mT: (machine, tensor) => transpose(machine, tensor, -2, -1),
  adjoint: (machine, tensor) => transpose(machine, tensor, -2, -1),
  "movedim.int": moveAxes,
  "movedim.intlist": moveAxes,
  expand,
  broadcast_to: expand,
  expand_as: (machine, tensor, other) => expand(machine, tensor, other.shape),
  repeat,
  tile,
  "repeat_interleave.self_int": repeatEach,
  clone: keep,
  contiguous: keep,
  alias: keep,
  detach: keep,
  lift_fresh_copy: keep,
  dropout: keep,
};

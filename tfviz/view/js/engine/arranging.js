// Operations that lay the cells of a tensor out anew.

/** @import { Operation } from "../types.d.ts" */

import { axisOf, filled, gathered, moveCells, formatShape, sizeOf, stridesOf } from "./tensors.js";

/** @type {Operation} What stands where `stays(column - row)`, zeros elsewhere. */
function triangle(machine, tensor, stays) {
  const [rows, columns] = matrix(tensor);
  const out = machine.empty(tensor.shape, tensor.dtype);
  for (let i = 0; i < out.data.length; i++) {
    const column = i % columns;
    const row = ((i - column) / columns) % rows;
    out.data[i] = stays(column - row) ? tensor.data[i] : 0;
  }
  return out;
}

function matrix(tensor) {
  if (tensor.shape.length < 2) throw new Error(`${formatShape(tensor.shape)} has no rows and columns`);
  return tensor.shape.slice(-2);
}

/** @type {Operation} Lengths to add before and after, from the last axis on; less than 0 takes away. */
function pad(machine, tensor, lengths, value = 0) {
  const shape = [...tensor.shape];
  const inner = [...tensor.shape];
  const from = stridesOf(tensor.shape);
  let read = 0;
  const starts = shape.map(() => 0);
  for (let i = 0; i < lengths.length / 2; i++) {
    const axis = shape.length - 1 - i;
    const [before, after] = [lengths[2 * i], lengths[2 * i + 1]];
    shape[axis] += before + after;
    inner[axis] += Math.min(before, 0) + Math.min(after, 0);
    read += Math.max(-before, 0) * from[axis];
    starts[axis] = Math.max(before, 0);
  }
  if (axesNegative(shape) || axesNegative(inner))
    throw new Error(`${formatShape(tensor.shape)} is too small for ${formatShape(lengths)}`);
  const out = filled(machine, shape, value ?? 0, tensor.dtype);
  const strides = stridesOf(shape);
  const start = starts.reduce((sum, length, axis) => sum + length * strides[axis], 0);
  moveCells(inner, { data: tensor.data, strides: from, start: read }, { data: out.data, strides, start });
  return out;
}
const axesNegative = (shape) => shape.some((length) => length < 0);

/** @type {Operation} The cells at these places of an axis. */
export function taken(machine, tensor, axis, places) {
  const shape = [...tensor.shape];
  shape[axis] = places.length;
  const out = machine.empty(shape, tensor.dtype);
  const inner = sizeOf(shape.slice(axis + 1));
  const outer = sizeOf(shape.slice(0, axis));
  let to = 0;
  for (let block = 0; block < outer; block++) {
    for (const place of places) {
      const from = (block * tensor.shape[axis] + place) * inner;
      for (let i = 0; i < inner; i++) out.data[to++] = tensor.data[from + i];
    }
  }
  return out;
}

/** @type {Operation} */
function flip(machine, tensor, axes) {
  const strides = stridesOf(tensor.shape);
  let start = 0;
  for (const axis of axes.map((one) => axisOf(tensor.shape.length, one))) {
    if (tensor.shape.length === 0) continue;
    start += Math.max(0, tensor.shape[axis] - 1) * strides[axis];
    strides[axis] *= -1;
  }
  return gathered(machine, tensor, tensor.shape, strides, start);
}

/** @type {Operation} */
function diagonal(machine, tensor, offset = 0, one = 0, other = 1) {
  const rank = tensor.shape.length;
  const [row, column] = [axisOf(rank, one), axisOf(rank, other)];
  if (row === column) throw new Error(`a diagonal needs two axes, and ${one} and ${other} are the same`);
  const strides = stridesOf(tensor.shape);
  const [down, right] = [Math.max(-offset, 0), Math.max(offset, 0)];
  const length = Math.max(0, Math.min(tensor.shape[row] - down, tensor.shape[column] - right));
  const rest = [...Array(rank).keys()].filter((axis) => axis !== row && axis !== column);
  const shape = [...rest.map((axis) => tensor.shape[axis]), length];
  const steps = [...rest.map((axis) => strides[axis]), strides[row] + strides[column]];
  return gathered(machine, tensor, shape, steps, down * strides[row] + right * strides[column]);
}

/** @type {Operation} Each window of an axis, as a last axis. */
function unfold(machine, tensor, axis, size, step) {
  const place = axisOf(tensor.shape.length, axis);
  const strides = stridesOf(tensor.shape);
  if (size > tensor.shape[place])
    throw new Error(`${formatShape(tensor.shape)} has no ${size} places along axis ${axis}`);
  const shape = [...tensor.shape, size];
  shape[place] = Math.floor((tensor.shape[place] - size) / step) + 1;
  const steps = [...strides, strides[place]];
  steps[place] *= step;
  return gathered(machine, tensor, shape, steps);
}

/** @type {Record<string, Operation>} */
export const ARRANGING = {
  tril: (machine, tensor, offset = 0) => triangle(machine, tensor, (right) => right <= offset),
  triu: (machine, tensor, offset = 0) => triangle(machine, tensor, (right) => right >= offset),
  constant_pad_nd: pad,
  flip,
  diagonal,
  unfold,
};

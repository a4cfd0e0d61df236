// Operations that lay the cells of a tensor out anew.

import {
  axisOf,
  broadcastShape,
  expanded,
  filled,
  gathered,
  moveCells,
  permuted,
  reshaped,
  formatShape,
  sizeOf,
  stridesOf,
} from "./tensors.js";

// What stands where `stays(column - row)`, zeros elsewhere.
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

// Lengths to add before and after, from the last axis on; less than 0 takes away.
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

function padAny(machine, tensor, lengths, mode = "constant", value = null) {
  if (mode === "constant") return pad(machine, tensor, lengths, value ?? 0);
  return lengths.reduce((padded, _, i) => {
    if (i % 2) return padded;
    const axis = padded.shape.length - 1 - i / 2;
    return taken(machine, padded, axis, placesPadded(padded.shape[axis], lengths[i], lengths[i + 1], mode));
  }, tensor);
}

// Which cell stands at each place of a longer axis.
function placesPadded(length, before, after, mode) {
  const rules = {
    reflect: (i) => (i < 0 ? -i : i < length ? i : 2 * length - 2 - i),
    replicate: (i) => Math.min(Math.max(i, 0), length - 1),
    circular: (i) => (i + length) % length,
  };
  return Array.from({ length: length + before + after }, (_, i) => rules[mode](i - before));
}

// The cells at these places of an axis.
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

function roll(machine, tensor, shifts, axes = []) {
  if (axes.length === 0) {
    const flat = roll(machine, reshaped(tensor, [sizeOf(tensor.shape)]), shifts, [0]);
    return reshaped(flat, tensor.shape);
  }
  return axes.reduce((rolled, one, i) => {
    const axis = axisOf(tensor.shape.length, one);
    const length = rolled.shape[axis];
    const places = Array.from({ length }, (_, at) => (((at - shifts[i]) % length) + length) % length);
    return taken(machine, rolled, axis, places);
  }, tensor);
}

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

function diagonalMatrix(machine, tensor, offset = 0, one = -2, other = -1) {
  const { shape } = tensor;
  const side = shape[shape.length - 1] + Math.abs(offset);
  const out = filled(machine, [...shape.slice(0, -1), side, side], 0, tensor.dtype);
  const strides = [...stridesOf(out.shape).slice(0, -2), side + 1];
  const start = Math.max(offset, 0) + Math.max(-offset, 0) * side;
  moveCells(shape, { data: tensor.data, strides: stridesOf(shape) }, { data: out.data, strides, start });
  const rank = out.shape.length;
  const [row, column] = [axisOf(rank, one), axisOf(rank, other)];
  const order = [...Array(rank - 2).keys()];
  for (const [place, axis] of [
    [row, rank - 2],
    [column, rank - 1],
  ].sort(([a], [b]) => a - b))
    order.splice(place, 0, axis);
  return permuted(machine, out, order);
}

// Each window of an axis, as a last axis.
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

function meshgrid(machine, tensors, indexing = "ij") {
  const shape = tensors.map((tensor) => sizeOf(tensor.shape));
  const grids = tensors.map((tensor, axis) => {
    const alone = shape.map((length, other) => (other === axis ? length : 1));
    return expanded(machine, reshaped(tensor, alone), shape);
  });
  if (indexing === "ij" || shape.length < 2) return grids;
  const order = [1, 0, ...shape.keys()].filter((axis, i) => i < 2 || axis > 1);
  return grids.map((grid) => permuted(machine, grid, order));
}

export const ARRANGING = {
  tril: (machine, tensor, offset = 0) => triangle(machine, tensor, (right) => right <= offset),
  triu: (machine, tensor, offset = 0) => triangle(machine, tensor, (right) => right >= offset),
  constant_pad_nd: pad,
  pad: padAny,
  flip,
  roll,
  diagonal,
  diag_embed: diagonalMatrix,
  diag: (machine, tensor, offset = 0) =>
    (tensor.shape.length === 1 ? diagonalMatrix : diagonal)(machine, tensor, offset),
  unfold,
  as_strided: (machine, tensor, shape, strides, start = 0) => gathered(machine, tensor, shape, strides, start ?? 0),
  meshgrid,
  "meshgrid.indexing": meshgrid,
  broadcast_tensors: (machine, tensors) => {
    const shape = broadcastShape(...tensors.map((tensor) => tensor.shape));
    return tensors.map((tensor) => expanded(machine, tensor, shape));
  },
};

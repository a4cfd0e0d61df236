// Operations that cut tensors into pieces and put pieces together.

/** @import { Operation } from "../types.d.ts" */

import { axisOf, expanded, gathered, moveCells, promoted, formatShape, sizeOf, stridesOf } from "./tensors.js";
import { squeeze, unsqueeze } from "./shaping.js";

// A start and an end as Python reads them.
function clampedPlace(length, value, otherwise) {
  if (value === null || value === undefined) return otherwise;
  return Math.min(Math.max(value < 0 ? value + length : value, 0), length);
}

// Where a slice lies in the memory of a tensor: a window to read or to write.
function windowOf(tensor, axis, start, end, step = 1) {
  const place = axisOf(tensor.shape.length, axis);
  const length = tensor.shape[place];
  const from = clampedPlace(length, start, 0);
  const shape = [...tensor.shape];
  shape[place] = Math.max(0, Math.ceil((clampedPlace(length, end, length) - from) / step));
  const strides = stridesOf(tensor.shape);
  const first = from * strides[place];
  strides[place] *= step;
  return { shape, strides, start: first };
}

/** @type {Operation} */
function slice(machine, tensor, axis = 0, start = null, end = null, step = 1) {
  const part = windowOf(tensor, axis, start, end, step);
  if (sizeOf(part.shape) === sizeOf(tensor.shape) && step === 1) return tensor;
  return gathered(machine, tensor, part.shape, part.strides, part.start);
}

function placeWithin(tensor, axis, index) {
  const length = tensor.shape[axisOf(tensor.shape.length, axis)];
  if (!(index >= -length && index < length)) throw new Error(`there is no place ${index} among ${length}`);
  return index < 0 ? index + length : index;
}

/** @type {Operation} */
function selected(machine, tensor, axis, index) {
  const at = placeWithin(tensor, axis, index);
  return squeeze(machine, slice(machine, tensor, axis, at, at + 1), axis);
}

/** @type {Operation} A copy of the tensor with `source` written into a window. */
function written(machine, tensor, source, part) {
  const out = machine.empty(tensor.shape, tensor.dtype);
  out.data.set(tensor.data);
  const whole = expanded(machine, source, part.shape);
  moveCells(part.shape, { data: whole.data, strides: stridesOf(part.shape) }, { ...part, data: out.data });
  return out;
}

/** @type {Operation} */
function sliceScatter(machine, tensor, source, axis = 0, start = null, end = null, step = 1) {
  return written(machine, tensor, source, windowOf(tensor, axis, start, end, step));
}

/** @type {Operation} */
function splitWithSizes(machine, tensor, lengths, axis = 0) {
  const all = tensor.shape[axisOf(tensor.shape.length, axis)];
  if (lengths.reduce((sum, length) => sum + length, 0) !== all) {
    throw new Error(`the lengths ${formatShape(lengths)} do not make up ${all}`);
  }
  let start = 0;
  return lengths.map((length) => slice(machine, tensor, axis, start, (start += length)));
}

/** @type {Operation} */
function split(machine, tensor, length, axis = 0) {
  const all = tensor.shape[axisOf(tensor.shape.length, axis)];
  const count = Math.max(1, Math.ceil(all / length));
  const lengths = Array.from({ length: count }, (_, i) => Math.min(length, all - i * length));
  return splitWithSizes(machine, tensor, lengths, axis);
}

/** @type {Operation} */
function chunk(machine, tensor, count, axis = 0) {
  const all = tensor.shape[axisOf(tensor.shape.length, axis)];
  if (all === 0) return Array(count).fill(tensor);
  return split(machine, tensor, Math.ceil(all / count), axis);
}

/** @type {Operation} */
function unbind(machine, tensor, axis = 0) {
  const all = tensor.shape[axisOf(tensor.shape.length, axis)];
  return Array.from({ length: all }, (_, i) => selected(machine, tensor, axis, i));
}

/** @type {Operation} */
function cat(machine, tensors, axis = 0) {
  const dtype = promoted(machine, ...tensors);
  const joinable = tensors.filter((tensor) => tensor.shape.length !== 1 || tensor.shape[0] !== 0); // torch skips these
  const parts = joinable.length ? joinable : tensors;
  const shape = [...parts[0].shape];
  const place = axisOf(shape.length, axis);
  for (const part of parts) {
    if (part.shape.length !== shape.length || part.shape.some((length, i) => i !== place && length !== shape[i])) {
      throw new Error(`${parts.map((one) => formatShape(one.shape)).join(" and ")} do not join along axis ${axis}`);
    }
  }
  shape[place] = parts.reduce((sum, part) => sum + part.shape[place], 0);
  const out = machine.empty(shape, dtype);
  const strides = stridesOf(shape);
  let start = 0;
  for (const part of parts) {
    moveCells(part.shape, { data: part.data, strides: stridesOf(part.shape) }, { data: out.data, strides, start });
    start += part.shape[place] * strides[place];
  }
  return out;
}

/** @type {Operation} */
function stack(machine, tensors, axis = 0) {
  const shape = tensors[0].shape;
  const rank = shape.length + 1;
  const place = axisOf(rank, axis);
  return cat(
    machine,
    tensors.map((tensor) => unsqueeze(machine, tensor, place)),
    place,
  );
}

/** @type {Record<string, Operation>} */
export const PIECES = {
  "slice.Tensor": slice,
  "select.int": selected,
  slice_scatter: sliceScatter,
  "split.Tensor": split,
  split_with_sizes: splitWithSizes,
  chunk,
  "unbind.int": unbind,
  cat,
  stack,
};

// Operations that cut tensors into pieces and that join pieces.

/** @import { Operation, Tensor } from "../types.js" */

import { formatShape, normalizeAxis, normalizeIndex, sizeOf, stridesOf } from "./shape-utils.js";
import { asStrided, copy, copyStrided, expand, resultType } from "./tensors.js";
import { squeeze, unsqueeze } from "./reshaping.js";

/** @type {(tensor: Tensor, axis: number) => number} */
const lengthOf = ({ shape }, axis) => shape[normalizeAxis(shape.length, axis)];

/** @type {(length: number, value: number | null, missing: number) => number} An end as Python reads it. */
function clampIndex(length, value, missing) {
  const index = value ?? missing;
  return Math.min(Math.max(index < 0 ? index + length : index, 0), length);
}

/**
 * Return where a slice lies in the memory of its tensor.
 * @param {Tensor} tensor
 * @param {number} axis
 * @param {number | null} start
 * @param {number | null} end
 * @param {number} step
 */
function windowOf(tensor, axis, start, end, step) {
  const shape = [...tensor.shape];
  const strides = stridesOf(shape);
  const sliced = normalizeAxis(shape.length, axis);
  const length = shape[sliced];
  const first = clampIndex(length, start, 0);
  const offset = first * strides[sliced];
  shape[sliced] = Math.max(0, Math.ceil((clampIndex(length, end, length) - first) / step));
  strides[sliced] *= step;
  return { shape, strides, start: offset };
}

/** @type {Operation} */
function slice(interpreter, tensor, axis = 0, start = null, end = null, step = 1) {
  const window = windowOf(tensor, axis, start, end, step);
  if (sizeOf(window.shape) === sizeOf(tensor.shape) && step === 1) return tensor;
  return asStrided(interpreter, tensor, window.shape, window.strides, window.start);
}

/** @type {Operation} */
function select(interpreter, tensor, axis, index) {
  const start = normalizeIndex(index, lengthOf(tensor, axis));
  return squeeze(interpreter, slice(interpreter, tensor, axis, start, start + 1), axis);
}

/** @type {Operation} */
function split(interpreter, tensor, size, axis = 0) {
  const length = lengthOf(tensor, axis);
  const count = Math.max(1, Math.ceil(length / size));
  return Array.from({ length: count }, (_, i) => slice(interpreter, tensor, axis, i * size, (i + 1) * size));
}

/** @type {Operation} */
const unbind = (interpreter, tensor, axis = 0) =>
  Array.from({ length: lengthOf(tensor, axis) }, (_, i) => select(interpreter, tensor, axis, i));

/** @type {Operation} */
function cat(interpreter, tensors, axis = 0) {
  /** @type {Tensor[]} */
  const joinable = tensors.filter((/** @type {Tensor} */ { shape }) => shape.length !== 1 || shape[0] !== 0);
  /** @type {Tensor[]} */
  const parts = joinable.length ? joinable : tensors;
  const shape = [...parts[0].shape];
  const joined = normalizeAxis(shape.length, axis);
  for (const part of parts)
    if (part.shape.length !== shape.length || part.shape.some((length, i) => i !== joined && length !== shape[i])) {
      const shapes = parts.map((each) => formatShape(each.shape));
      throw new Error(`${shapes.join(" and ")} cannot be joined along axis ${axis}`);
    }
  shape[joined] = parts.reduce((sum, part) => sum + part.shape[joined], 0);
  const out = interpreter.empty(shape, resultType(interpreter, ...tensors));
  const strides = stridesOf(shape);
  let start = 0;
  for (const { shape: lengths, data } of parts) {
    copyStrided(lengths, { data, strides: stridesOf(lengths) }, { data: out.data, strides, start });
    start += lengths[joined] * strides[joined];
  }
  return out;
}

/** @type {Record<string, Operation>} */
export const SLICING = {
  "slice.Tensor": slice,
  "select.int": select,
  slice_scatter(interpreter, tensor, source, axis = 0, start = null, end = null, step = 1) {
    const window = windowOf(tensor, axis, start, end, step);
    const out = copy(interpreter, tensor);
    const { data } = expand(interpreter, source, window.shape);
    copyStrided(window.shape, { data, strides: stridesOf(window.shape) }, { ...window, data: out.data });
    return out;
  },
  "split.Tensor": split,
  split_with_sizes(interpreter, tensor, lengths, axis = 0) {
    let start = 0;
    const parts = lengths.map((/** @type {number} */ part) => slice(interpreter, tensor, axis, start, (start += part)));
    const length = lengthOf(tensor, axis);
    if (start !== length) throw new Error(`the lengths ${formatShape(lengths)} do not add up to ${length}`);
    return parts;
  },
  chunk(interpreter, tensor, count, axis = 0) {
    const length = lengthOf(tensor, axis);
    return length === 0 ? Array(count).fill(tensor) : split(interpreter, tensor, Math.ceil(length / count), axis);
  },
  "unbind.int": unbind,
  cat,
  stack(interpreter, tensors, axis = 0) {
    const newAxis = normalizeAxis(tensors[0].shape.length + 1, axis);
    const parts = tensors.map((/** @type {Tensor} */ tensor) => unsqueeze(interpreter, tensor, newAxis));
    return cat(interpreter, parts, newAxis);
  },
};

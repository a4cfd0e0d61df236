// Operations that move, repeat or drop the elements of a tensor: triangles, padding, flips, diagonals, windows.

/** @import { Operation } from "../types.js" */

import { formatShape, normalizeAxis, stridesOf } from "./shape-utils.js";
import { asStrided, copyStrided, full } from "./tensors.js";

/** @type {(keeps: (diagonal: number, offset: number) => boolean) => Operation} Zeros where it keeps no number. */
const triangle =
  (keeps) =>
  (interpreter, tensor, offset = 0) => {
    if (tensor.shape.length < 2) throw new Error(`${formatShape(tensor.shape)} has no rows and columns`);
    const [rows, columns] = tensor.shape.slice(-2);
    const out = interpreter.empty(tensor.shape, tensor.dtype);
    for (let i = 0; i < out.data.length; i++) {
      const column = i % columns;
      const row = ((i - column) / columns) % rows;
      out.data[i] = keeps(column - row, offset) ? tensor.data[i] : 0;
    }
    return out;
  };

/** @type {Record<string, Operation>} */
export const REARRANGING = {
  tril: triangle((diagonal, offset) => diagonal <= offset),
  triu: triangle((diagonal, offset) => diagonal >= offset),
  /** Pad axes. `lengths` are added before and after, from the last axis on; negative ones cut off. */
  constant_pad_nd(interpreter, tensor, lengths, value = 0) {
    const shape = [...tensor.shape];
    const copied = [...tensor.shape];
    const strides = stridesOf(tensor.shape);
    const margins = shape.map(() => 0);
    let sourceStart = 0;
    for (let i = 0; i < lengths.length / 2; i++) {
      const axis = shape.length - 1 - i;
      const [before, after] = [lengths[2 * i], lengths[2 * i + 1]];
      shape[axis] += before + after;
      copied[axis] += Math.min(before, 0) + Math.min(after, 0);
      sourceStart += Math.max(-before, 0) * strides[axis];
      margins[axis] = Math.max(before, 0);
    }
    if ([...shape, ...copied].some((length) => length < 0))
      throw new Error(`${formatShape(tensor.shape)} is too small for a padding of ${formatShape(lengths)}`);
    const out = full(interpreter, shape, value ?? 0, tensor.dtype);
    const targetStrides = stridesOf(shape);
    const start = margins.reduce((sum, margin, axis) => sum + margin * targetStrides[axis], 0);
    const source = { data: tensor.data, strides, start: sourceStart };
    copyStrided(copied, source, { data: out.data, strides: targetStrides, start });
    return out;
  },
  flip(interpreter, tensor, axes) {
    const { shape } = tensor;
    if (shape.length === 0) return tensor;
    const strides = stridesOf(shape);
    let start = 0;
    for (const axis of axes) {
      const flipped = normalizeAxis(shape.length, axis);
      start += Math.max(0, shape[flipped] - 1) * strides[flipped];
      strides[flipped] *= -1;
    }
    return asStrided(interpreter, tensor, shape, strides, start);
  },
  diagonal(interpreter, tensor, offset = 0, axis1 = 0, axis2 = 1) {
    const { shape } = tensor;
    const [row, column] = [normalizeAxis(shape.length, axis1), normalizeAxis(shape.length, axis2)];
    if (row === column) throw new Error(`a diagonal needs two axes, but ${axis1} and ${axis2} are the same`);
    const strides = stridesOf(shape);
    const [down, right] = [Math.max(-offset, 0), Math.max(offset, 0)];
    const length = Math.max(0, Math.min(shape[row] - down, shape[column] - right));
    const rest = [...shape.keys()].filter((axis) => axis !== row && axis !== column);
    return asStrided(
      interpreter,
      tensor,
      [...rest.map((axis) => shape[axis]), length],
      [...rest.map((axis) => strides[axis]), strides[row] + strides[column]],
      down * strides[row] + right * strides[column],
    );
  },
  /** Return the windows of an axis, each along a new last axis. */
  unfold(interpreter, tensor, axis, size, step) {
    const unfolded = normalizeAxis(tensor.shape.length, axis);
    const length = tensor.shape[unfolded];
    if (size > length)
      throw new Error(`a window of ${size} is larger than ${formatShape(tensor.shape)} along axis ${axis}`);
    const shape = [...tensor.shape, size];
    shape[unfolded] = Math.floor((length - size) / step) + 1;
    const strides = stridesOf(tensor.shape);
    strides.push(strides[unfolded]);
    strides[unfolded] *= step;
    return asStrided(interpreter, tensor, shape, strides);
  },
};

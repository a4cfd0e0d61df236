// Functions that create, view and copy tensors. Tensors are row-major and are never changed once an operation has
// returned them; reshaped ones share their memory.

/** @import { Dtype, Numbers, Tensor } from "../types.js" */
/** @import { Interpreter } from "./interpreter.js" */
/** @typedef {{ data: Numbers, strides: number[], start?: number }} Window */

import { asArray, broadcastStrides, formatShape, inferShape, normalizeAxis, sizeOf, stridesOf } from "./shape-utils.js";

export const ARRAY_TYPES = { float32: Float32Array, int64: Int32Array, bool: Uint8Array };
/** @type {Dtype[]} each can hold the values of those before it */
const PROMOTION_ORDER = ["bool", "int64", "float32"];

/** @param {any} value @returns {value is Tensor} */
export const isTensor = (value) => value !== null && typeof value === "object" && "data" in value;

/** Return a tensor of another shape that shares its memory. @type {(tensor: Tensor, shape: number[]) => Tensor} */
export function reshape(tensor, shape) {
  const size = sizeOf(tensor.shape);
  const inferred = inferShape(shape, size);
  if (sizeOf(inferred) !== size || !inferred.every(Number.isInteger))
    throw new Error(`${formatShape(tensor.shape)} cannot be reshaped to ${formatShape(shape)}`);
  return { shape: inferred, dtype: tensor.dtype, data: tensor.data };
}

/**
 * Merge neighbouring axes that every operand reads without a gap, so that rows are as long as possible.
 * @type {(shape: number[], strides: number[][]) => { lengths: number[], steps: number[][] }}
 */
function coalesce(shape, strides) {
  /** @type {number[]} */
  const lengths = [];
  /** @type {number[][]} */
  const steps = strides.map(() => []);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] === 1) continue;
    if (lengths.length && steps.every((step, k) => strides[k][axis] === step[0] * lengths[0])) {
      lengths[0] *= shape[axis];
    } else {
      lengths.unshift(shape[axis]);
      steps.forEach((step, k) => step.unshift(strides[k][axis]));
    }
  }
  return lengths.length ? { lengths, steps } : { lengths: [1], steps: strides.map(() => [0]) };
}

/**
 * Visit each row along the last axis, with each operand's offset and step, the number of cells before, and the row's
 * length.
 * @param {number[]} shape
 * @param {number[][]} strides
 * @param {(offsets: number[], steps: number[], count: number, length: number) => void} visit
 */
export function forEachRow(shape, strides, visit) {
  if (shape.includes(0)) return;
  const { lengths, steps } = coalesce(shape, strides);
  const last = lengths.length - 1;
  const inner = steps.map((step) => step[last]);
  const offsets = steps.map(() => 0);
  const index = Array(last).fill(0);
  for (let count = 0; ; count += lengths[last]) {
    visit(offsets, inner, count, lengths[last]);
    let axis = last - 1;
    for (; axis >= 0; axis--) {
      for (let k = 0; k < offsets.length; k++) offsets[k] += steps[k][axis];
      if (++index[axis] < lengths[axis]) break;
      for (let k = 0; k < offsets.length; k++) offsets[k] -= steps[k][axis] * lengths[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

/** Copy cells between two arrays by strides. @type {(shape: number[], source: Window, target: Window) => void} */
export function copyStrided(shape, source, target) {
  const { data: from, start: sourceStart = 0 } = source;
  const { data: to, start: targetStart = 0 } = target;
  forEachRow(shape, [source.strides, target.strides], ([i, j], [di, dj], _, length) => {
    let a = sourceStart + i;
    let b = targetStart + j;
    if (di === 1 && dj === 1 && length > 16) to.set(from.subarray(a, a + length), b);
    else for (let k = 0; k < length; k++, a += di, b += dj) to[b] = from[a];
  });
}

/**
 * Return a copy of the cells that strides select.
 * @type {(interpreter: Interpreter, tensor: Tensor, shape: number[], strides: number[], start?: number) => Tensor}
 */
export function asStrided(interpreter, tensor, shape, strides, start = 0) {
  const out = interpreter.empty(shape, tensor.dtype);
  copyStrided(shape, { data: tensor.data, strides, start }, { data: out.data, strides: stridesOf(shape) });
  return out;
}

/** @type {(interpreter: Interpreter, tensor: Tensor, shape: number[]) => Tensor} A length of -1 stays as it is. */
export function expand(interpreter, tensor, shape) {
  const lead = shape.length - tensor.shape.length;
  const target = shape.map((length, axis) => (length < 0 ? tensor.shape[axis - lead] : length));
  const strides = broadcastStrides(tensor.shape, target);
  if (sizeOf(target) === sizeOf(tensor.shape) && lead >= 0) return reshape(tensor, target);
  return asStrided(interpreter, tensor, target, strides);
}

/** Reorder the axes of a tensor. @type {(interpreter: Interpreter, tensor: Tensor, order: number[]) => Tensor} */
export function permute(interpreter, tensor, order) {
  const rank = tensor.shape.length;
  const axes = order.map((axis) => normalizeAxis(rank, axis));
  if (axes.length !== rank || new Set(axes).size !== rank)
    throw new Error(`${formatShape(order)} is not a permutation of ${rank} axes`);
  const shape = axes.map((axis) => tensor.shape[axis]);
  const long = axes.filter((axis) => tensor.shape[axis] !== 1);
  if (long.every((axis, i) => i === 0 || long[i - 1] < axis)) return reshape(tensor, shape); // no number moves
  const strides = stridesOf(tensor.shape);
  return asStrided(
    interpreter,
    tensor,
    shape,
    axes.map((axis) => strides[axis]),
  );
}

/**
 * Call `work` with one axis moved to the back, and move it back in each result.
 * @type {(interpreter: Interpreter, tensor: Tensor, axis: number, work: (moved: Tensor) => Tensor | Tensor[]) => Tensor[]}
 */
export function alongAxis(interpreter, tensor, axis, work) {
  const rank = tensor.shape.length;
  const last = normalizeAxis(rank, axis);
  if (rank === 0) return asArray(work(reshape(tensor, [1]))).map((result) => reshape(result, []));
  const order = [...Array(rank).keys()].filter((i) => i !== last).concat(last);
  const inverse = order.map((_, i) => order.indexOf(i));
  return asArray(work(permute(interpreter, tensor, order))).map((result) => permute(interpreter, result, inverse));
}

/** @type {(dtype: string) => Dtype} The engine's dtype for one of torch's. */
export function toDtype(dtype) {
  if (dtype in ARRAY_TYPES) return /** @type {Dtype} */ (dtype);
  if (/^b?float|^double|^half/.test(dtype)) return "float32";
  if (/^u?int|^long|^short/.test(dtype)) return "int64";
  throw new Error(`tensors of ${dtype} are not supported`);
}

/**
 * Return the dtype of torch's type promotion. For a 2, the program's step says whether it was written 2.0 in Python.
 * @type {(interpreter: Interpreter, ...values: (Tensor | number | boolean | null)[]) => Dtype}
 */
export function resultType(interpreter, ...values) {
  const levels = values.map((value) => {
    if (value === null || typeof value === "boolean") return 0;
    if (isTensor(value)) return PROMOTION_ORDER.indexOf(value.dtype);
    return Number.isInteger(value) && interpreter.node?.dtype?.[0] !== "float32" ? 1 : 2;
  });
  return PROMOTION_ORDER[Math.max(...levels)];
}

/** Convert a tensor to a dtype. @type {(interpreter: Interpreter, tensor: Tensor, dtype?: string | null) => Tensor} */
export function cast(interpreter, tensor, dtype) {
  const target = dtype ? toDtype(dtype) : tensor.dtype;
  if (target === tensor.dtype) return tensor;
  const out = interpreter.empty(tensor.shape, target);
  if (target === "bool") for (let i = 0; i < out.data.length; i++) out.data[i] = tensor.data[i] === 0 ? 0 : 1;
  else out.data.set(tensor.data);
  return out;
}

/**
 * Return a tensor filled with a value.
 * @type {(interpreter: Interpreter, shape: number[], value: number | boolean, dtype: Dtype) => Tensor}
 */
export function full(interpreter, shape, value, dtype) {
  const out = interpreter.empty(shape, dtype);
  out.data.fill(Number(dtype === "bool" ? Boolean(value) : value));
  return out;
}

/** Return a copy of a tensor. @type {(interpreter: Interpreter, tensor: Tensor) => Tensor} */
export function copy(interpreter, tensor) {
  const out = interpreter.empty(tensor.shape, tensor.dtype);
  out.data.set(tensor.data);
  return out;
}

/** @type {(value: Tensor | number | boolean, dtype: Dtype) => Tensor} A number as a tensor of no axes. */
export const asTensor = (value, dtype) =>
  isTensor(value) ? value : { shape: [], dtype, data: ARRAY_TYPES[dtype].of(Number(value)) };

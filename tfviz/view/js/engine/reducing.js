// Operations that reduce axes to one number each, such as sums, means and maxima.

/** @import { Dtype, Numbers, Operation, Tensor } from "../types.js" */
/** @import { Axes } from "./shape-utils.js" */
/** @import { Interpreter } from "./interpreter.js" */
/** @typedef {(data: Numbers, start: number, end: number) => number} Reduction of a row */
/** @typedef {{ data: Numbers, rows: number, length: number, shape: number[] }} Rows and the result's shape */

import { BINARY } from "./binary.js";
import { unsqueeze } from "./reshaping.js";
import { normalizeAxes, sizeOf } from "./shape-utils.js";
import { cast, permute, toDtype } from "./tensors.js";

/** @type {(interpreter: Interpreter, tensor: Tensor, axes: Axes, keepdim: boolean) => Rows} */
function rowsOf(interpreter, tensor, axes, keepdim) {
  const { shape } = tensor;
  const normalized = normalizeAxes(shape.length, axes);
  const reduced = shape.length ? normalized : []; // an axis 0 of a scalar is valid, but is not there
  const rest = [...shape.keys()].filter((axis) => !reduced.includes(axis));
  const { data } = permute(interpreter, tensor, [...rest, ...reduced]);
  const [restShape, length] = [rest.map((axis) => shape[axis]), sizeOf(reduced.map((axis) => shape[axis]))];
  const withOnes = shape.map((size, axis) => (reduced.includes(axis) ? 1 : size));
  return { data, rows: sizeOf(restShape), length, shape: keepdim ? withOnes : restShape };
}

/**
 * @param {Interpreter} interpreter
 * @param {Tensor} tensor
 * @param {Axes} axes
 * @param {boolean} keepdim
 * @param {Dtype} dtype
 * @param {Reduction} reduction
 */
function reduce(interpreter, tensor, axes, keepdim, dtype, reduction) {
  const { data, rows, length, shape } = rowsOf(interpreter, tensor, axes, keepdim);
  const out = interpreter.empty(shape, dtype);
  for (let row = 0; row < rows; row++) out.data[row] = reduction(data, row * length, (row + 1) * length);
  return out;
}

/** Sum a range of numbers. @type {Reduction} */
export function total(data, start, end) {
  let sum = 0;
  for (let i = start; i < end; i++) sum += data[i];
  return sum;
}

/** @type {(initial: number, step: (result: number, x: number) => number) => Reduction} */
const fold = (initial, step) => (data, start, end) => {
  let result = initial;
  for (let i = start; i < end; i++) result = step(result, data[i]);
  return result;
};
const countNonzero = fold(0, (count, x) => (x === 0 ? count : count + 1));

/** The first index of the largest number (sign 1) or smallest (-1); NaN is both. @type {(sign: number) => Reduction} */
const extremeIndex = (sign) => (data, start, end) => {
  if (start === end) throw new Error("an empty row has no largest or smallest number; give at least one");
  let best = start;
  for (let i = start; i < end; i++) {
    if (data[i] !== data[i]) return i;
    if (sign * data[i] > sign * data[best]) best = i;
  }
  return best;
};
const largestIndex = extremeIndex(1);
const smallestIndex = extremeIndex(-1);

/** Avoids overflow in intermediate results. @type {Reduction} */
export function logSumExp(data, start, end) {
  if (start === end) return -Infinity;
  const largest = data[largestIndex(data, start, end)];
  if (Math.abs(largest) === Infinity) return largest;
  let sum = 0;
  for (let i = start; i < end; i++) sum += Math.exp(data[i] - largest);
  return largest + Math.log(sum);
}

/** Whole numbers and booleans are int64. @type {(reduction: Reduction, integerReduction: Reduction) => Operation} */
const accumulated =
  (reduction, integerReduction) =>
  (interpreter, tensor, axes = null, keepdim = false, dtype = null) => {
    const result = toDtype(dtype ?? (tensor.dtype === "float32" ? "float32" : "int64"));
    const rule = result === "int64" ? integerReduction : reduction;
    return reduce(interpreter, cast(interpreter, tensor, result), axes, keepdim, result, rule);
  };
const sum = accumulated(total, total);
const prod = accumulated(
  fold(1, (result, x) => result * x),
  fold(1, Math.imul),
);

/** @type {Operation} */
function mean(interpreter, tensor, axes = null, keepdim = false, dtype = null) {
  if (tensor.dtype !== "float32" && !dtype) throw new Error(`a tensor of ${tensor.dtype} has no mean of its dtype`);
  const result = toDtype(dtype ?? "float32");
  /** @type {Reduction} */
  const average = (data, start, end) => total(data, start, end) / (end - start);
  return reduce(interpreter, cast(interpreter, tensor, result), axes, keepdim, result, average);
}

/** @type {Operation} */
function variance(interpreter, tensor, axes = null, correction = 1, keepdim = false) {
  return reduce(interpreter, tensor, axes, keepdim, "float32", (data, start, end) => {
    const average = total(data, start, end) / (end - start);
    let squares = 0;
    for (let i = start; i < end; i++) squares += (data[i] - average) * (data[i] - average);
    return squares / Math.max(0, end - start - Number(correction ?? 1));
  });
}

/** The value of each row, and its index there. @type {(indexOf: Reduction) => Operation} */
const extremes =
  (indexOf) =>
  (interpreter, tensor, axes = null, keepdim = false) => {
    const { data, rows, length, shape } = rowsOf(interpreter, tensor, axes, keepdim);
    const values = interpreter.empty(shape, tensor.dtype);
    const indices = interpreter.empty(shape, "int64");
    for (let row = 0, start = 0; row < rows; row++, start += length) {
      const index = indexOf(data, start, start + length);
      values.data[row] = data[index];
      indices.data[row] = index - start;
    }
    return [values, indices];
  };
const [largest, smallest] = [extremes(largestIndex), extremes(smallestIndex)];
/** @type {(operation: Operation, i: number) => Operation} */
const resultOf =
  (operation, i) =>
  (interpreter, ...args) =>
    operation(interpreter, ...args)[i];

/** By how many numbers are not 0. @type {(holds: (count: number, length: number) => boolean) => Operation} */
const reduceByCount =
  (holds) =>
  (interpreter, tensor, axes = null, keepdim = false) =>
    reduce(interpreter, tensor, axes, keepdim, "bool", (data, start, end) =>
      Number(holds(countNonzero(data, start, end), end - start)),
    );
const any = reduceByCount((count) => count > 0);
const all = reduceByCount((count, length) => count === length);

/** @type {Record<number, Reduction>} */
const NORM_FUNCTIONS = {
  0: countNonzero,
  [Infinity]: fold(0, (largest, x) => Math.max(largest, Math.abs(x))),
  [-Infinity]: fold(Infinity, (smallest, x) => Math.min(smallest, Math.abs(x))),
};

/** @type {Operation} */
function vectorNorm(interpreter, tensor, order, axes = null, keepdim = false) {
  const p = order ?? 2;
  /** @type {Reduction} */
  const norm = (data, start, end) => {
    let sum = 0;
    for (let i = start; i < end; i++) sum += p === 2 ? data[i] * data[i] : Math.abs(data[i]) ** p;
    return p === 2 ? Math.sqrt(sum) : sum ** (1 / p);
  };
  return reduce(interpreter, tensor, axes, keepdim, "float32", NORM_FUNCTIONS[p] ?? norm);
}

/** The distance of each row on the left to each on the right. @type {Operation} */
function cdist(interpreter, left, right, order = 2) {
  const differences = BINARY["sub.Tensor"](
    interpreter,
    unsqueeze(interpreter, left, -2),
    unsqueeze(interpreter, right, -3),
  );
  return vectorNorm(interpreter, differences, order, [-1]);
}

/** @type {(operation: Operation) => Operation} */
const overAll =
  (operation) =>
  (interpreter, tensor, dtype = null) =>
    operation(interpreter, tensor, null, false, dtype);

/** @type {Record<string, Operation>} */
export const REDUCING = {
  sum: overAll(sum),
  "sum.dim_IntList": sum,
  mean: overAll(mean),
  "mean.dim": mean,
  prod: overAll(prod),
  "prod.dim_int": prod,
  "var.correction": variance,
  "var_mean.correction": (interpreter, tensor, axes = null, correction = 1, keepdim = false) => [
    variance(interpreter, tensor, axes, correction, keepdim),
    mean(interpreter, tensor, axes, keepdim),
  ],
  max: resultOf(largest, 0),
  min: resultOf(smallest, 0),
  amax: resultOf(largest, 0),
  amin: resultOf(smallest, 0),
  "max.dim": largest,
  "min.dim": smallest,
  argmax: resultOf(largest, 1),
  argmin: resultOf(smallest, 1),
  any,
  "any.dim": any,
  "any.dims": any,
  all,
  "all.dim": all,
  median(interpreter, tensor) {
    const out = interpreter.empty([], tensor.dtype);
    const sorted = tensor.data.slice().sort(); // NaN last
    out.data[0] = Number.isNaN(sorted.at(-1)) ? NaN : sorted[(sorted.length - 1) >> 1];
    return out;
  },
  linalg_vector_norm: vectorNorm,
  cdist,
};

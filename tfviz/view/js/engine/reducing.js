// Operations that make one number of many.

/** @import { Operation } from "../types.d.ts" */

import { axesOf, cast, dtypeOf, permuted, sizeOf } from "./tensors.js";

/** @type {Operation} The tensor as rows, one for each number that is left: { data, rows, length, shape }. */
function folded(machine, tensor, axes, keep) {
  const { shape } = tensor;
  const gone = shape.length === 0 ? (axesOf(0, axes), []) : axesOf(shape.length, axes);
  const left = [...shape.keys()].filter((axis) => !gone.includes(axis));
  const { data } = permuted(machine, tensor, [...left, ...gone]);
  const length = sizeOf(gone.map((axis) => shape[axis]));
  const result = keep ? shape.map((size, axis) => (gone.includes(axis) ? 1 : size)) : left.map((axis) => shape[axis]);
  return { data, rows: sizeOf(left.map((axis) => shape[axis])), length, shape: result };
}

/** @type {Operation} `of(data, start, end)` gives the number of a row. */
export function reduced(machine, tensor, axes, keep, dtype, of) {
  const { data, rows, length, shape } = folded(machine, tensor, axes, keep);
  const out = machine.empty(shape, dtype);
  for (let row = 0; row < rows; row++) out.data[row] = of(data, row * length, (row + 1) * length);
  return out;
}

function total(data, start, end) {
  let sum = 0;
  for (let i = start; i < end; i++) sum += data[i];
  return sum;
}

function product(data, start, end) {
  let all = 1;
  for (let i = start; i < end; i++) all *= data[i];
  return all;
}

function wholeProduct(data, start, end) {
  let all = 1;
  for (let i = start; i < end; i++) all = Math.imul(all, data[i]);
  return all;
}

// Where the largest stands, the first of several; what is not a number counts as larger than all.
function largestAt(data, start, end) {
  if (start === end) throw new Error("nothing is the largest or the smallest of no numbers");
  let at = start;
  for (let i = start; i < end; i++) {
    if (data[i] !== data[i]) return i;
    if (data[i] > data[at]) at = i;
  }
  return at;
}

function smallestAt(data, start, end) {
  if (start === end) throw new Error("nothing is the largest or the smallest of no numbers");
  let at = start;
  for (let i = start; i < end; i++) {
    if (data[i] !== data[i]) return i;
    if (data[i] < data[at]) at = i;
  }
  return at;
}

const wholes = (tensor) => (tensor.dtype === "float32" ? "float32" : "int64");
const real32 = (dtype) => dtypeOf(dtype ?? "float32");

/** @type {Operation} */
export function sum(machine, tensor, axes = null, keep = false, dtype = null) {
  const given = cast(machine, tensor, dtype);
  return reduced(machine, given, axes, keep, dtype ? dtypeOf(dtype) : wholes(tensor), total);
}

/** @type {Operation} */
function mean(machine, tensor, axes = null, keep = false, dtype = null) {
  if (tensor.dtype !== "float32" && !dtype) throw new Error(`the mean of ${tensor.dtype} is no ${tensor.dtype}`);
  const given = cast(machine, tensor, dtype);
  return reduced(
    machine,
    given,
    axes,
    keep,
    real32(dtype),
    (data, start, end) => total(data, start, end) / (end - start),
  );
}

/** @type {Operation} */
function prod(machine, tensor, axes = null, keep = false, dtype = null) {
  const kind = dtype ? dtypeOf(dtype) : wholes(tensor);
  return reduced(machine, cast(machine, tensor, kind), axes, keep, kind, kind === "int64" ? wholeProduct : product);
}

const spreadOf = (correction) => (data, start, end) => {
  const middle = total(data, start, end) / (end - start);
  let sum = 0;
  for (let i = start; i < end; i++) sum += (data[i] - middle) * (data[i] - middle);
  return sum / Math.max(0, end - start - correction);
};
/** @type {Operation} */
function variance(machine, tensor, axes = null, correction = 1, keep = false) {
  return reduced(machine, tensor, axes, keep, "float32", spreadOf(Number(correction ?? 1)));
}
/** @type {(...of: any[]) => Operation} */
const withMean =
  (spread) =>
  (machine, tensor, axes = null, correction = 1, keep = false) => [
    spread(machine, tensor, axes, correction, keep),
    mean(machine, tensor, axes, keep),
  ];

/** @type {(...of: any[]) => Operation} */
const extreme =
  (at) =>
  (machine, tensor, axes = null, keep = false) =>
    reduced(machine, tensor, axes, keep, tensor.dtype, (data, start, end) => data[at(data, start, end)]);

/** @type {(...of: any[]) => Operation} */
const place =
  (at) =>
  (machine, tensor, axis = null, keep = false) =>
    reduced(machine, tensor, axis, keep, "int64", (data, start, end) => at(data, start, end) - start);

/** @type {(...of: any[]) => Operation} */
const extremeAlong =
  (at) =>
  (machine, tensor, axis, keep = false) => {
    const { data, rows, length, shape } = folded(machine, tensor, axis, keep);
    const values = machine.empty(shape, tensor.dtype);
    const places = machine.empty(shape, "int64");
    for (let row = 0; row < rows; row++) {
      const found = at(data, row * length, (row + 1) * length);
      values.data[row] = data[found];
      places.data[row] = found - row * length;
    }
    return [values, places];
  };

/** @type {Operation} */
function any(machine, tensor, axes = null, keep = false) {
  return reduced(machine, tensor, axes, keep, "bool", (data, start, end) => {
    for (let i = start; i < end; i++) if (data[i] !== 0) return 1;
    return 0;
  });
}

/** @type {Operation} */
function all(machine, tensor, axes = null, keep = false) {
  return reduced(machine, tensor, axes, keep, "bool", (data, start, end) => {
    for (let i = start; i < end; i++) if (data[i] === 0) return 0;
    return 1;
  });
}

// log of a sum of exponentials, with nothing too large on the way.
export function logSumExp(data, start, end) {
  if (start === end) return -Infinity;
  const most = data[largestAt(data, start, end)];
  if (Math.abs(most) === Infinity) return most;
  let sum = 0;
  for (let i = start; i < end; i++) sum += Math.exp(data[i] - most);
  return most + Math.log(sum);
}

/** @type {Operation} */
function median(machine, tensor) {
  const sorted = tensor.data.slice().sort();
  const out = machine.empty([], tensor.dtype);
  out.data[0] =
    sorted.length && sorted[sorted.length - 1] !== sorted[sorted.length - 1] ? NaN : sorted[(sorted.length - 1) >> 1];
  return out;
}

export function nonzero(data, start, end) {
  let count = 0;
  for (let i = start; i < end; i++) if (data[i] !== 0) count++;
  return count;
}

/** @type {Record<string, Operation>} */
export const REDUCING = {
  sum: (machine, tensor, dtype = null) => sum(machine, tensor, null, false, dtype),
  "sum.dim_IntList": sum,
  mean: (machine, tensor, dtype = null) => mean(machine, tensor, null, false, dtype),
  "mean.dim": mean,
  prod: (machine, tensor, dtype = null) => prod(machine, tensor, null, false, dtype),
  "prod.dim_int": prod,
  "var.correction": variance,
  "var_mean.correction": withMean(variance),
  max: extreme(largestAt),
  min: extreme(smallestAt),
  amax: extreme(largestAt),
  amin: extreme(smallestAt),
  "max.dim": extremeAlong(largestAt),
  "min.dim": extremeAlong(smallestAt),
  argmax: place(largestAt),
  argmin: place(smallestAt),
  any,
  "any.dim": any,
  "any.dims": any,
  all,
  "all.dim": all,
  median,
};

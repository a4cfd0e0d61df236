// Operations along one axis that keep its length: cumulative sums, softmax, sorting.

/** @import { Dtype, Numbers, Operation } from "../types.js" */
/** @typedef {(data: Numbers, start: number, end: number, out: Numbers) => void} RowScan writes a row */

import { alongAxis, cast, toDtype } from "./tensors.js";
import { logSumExp } from "./reducing.js";

/** @type {(scan: RowScan, ...args: Parameters<Operation>) => any} */
function scanned(scan, interpreter, tensor, axis, dtype) {
  const [result] = alongAxis(interpreter, cast(interpreter, tensor, dtype), axis, ({ shape, data }) => {
    const out = interpreter.empty(shape, /** @type {Dtype} */ (dtype));
    const length = shape[shape.length - 1];
    for (let start = 0; start < out.data.length; start += length) scan(data, start, start + length, out.data);
    return out;
  });
  return result;
}

/** @type {(first: number, step: (total: number, x: number) => number) => Operation} */
const cumulative = (first, step) => {
  /** @type {RowScan} */
  const scan = (data, start, end, out) => {
    for (let i = start, total = first; i < end; i++) out[i] = total = step(total, data[i]);
  };
  return (interpreter, tensor, axis, dtype = null) => {
    const accumulator = tensor.dtype === "float32" ? "float32" : "int64";
    return scanned(scan, interpreter, tensor, axis, dtype ? toDtype(dtype) : accumulator);
  };
};

/** @type {(total: number, x: number) => number} log(exp(total) + exp(x)) */
function logAddExp(total, x) {
  const [larger, smaller] = total > x ? [total, x] : [x, total];
  return smaller === -Infinity ? larger : larger + Math.log1p(Math.exp(smaller - larger));
}

/** @type {RowScan} All NaN where every score is -inf, as in torch. */
function softmaxRow(data, start, end, out) {
  let largest = -Infinity;
  for (let i = start; i < end; i++) if (data[i] > largest) largest = data[i];
  let sum = 0;
  for (let i = start; i < end; i++) sum += out[i] = data[i] === -Infinity ? 0 : Math.exp(data[i] - largest);
  for (let i = start; i < end; i++) out[i] /= sum;
}

/** @type {RowScan} */
function logSoftmaxRow(data, start, end, out) {
  const logSum = logSumExp(data, start, end);
  for (let i = start; i < end; i++) out[i] = data[i] - logSum;
}

/** @type {Operation} */
export const softmaxAlong = (interpreter, tensor, axis, dtype = null) =>
  scanned(softmaxRow, interpreter, tensor, axis, toDtype(dtype ?? "float32"));

/** @type {(x: number, y: number) => number} NaN is larger than all numbers. */
function ascending(x, y) {
  if (x < y) return -1;
  return x > y ? 1 : Number(x !== x) - Number(y !== y);
}

/** @type {Operation} The first `count` of each row in order, and their indices; equal ones keep their order. */
function sort(interpreter, tensor, axis = -1, descending = false, count = null) {
  const sign = descending ? -1 : 1;
  return alongAxis(interpreter, tensor, axis, ({ shape, data }) => {
    const length = shape[shape.length - 1];
    const sorted = count ?? length;
    if (sorted > length) throw new Error(`there are no ${sorted} numbers in a row of ${length}`);
    const values = interpreter.empty([...shape.slice(0, -1), sorted], tensor.dtype);
    const indices = interpreter.empty(values.shape, "int64");
    for (let to = 0, start = 0; to < values.data.length; to += sorted, start += length) {
      const order = Array.from({ length }, (_, i) => i);
      order.sort((i, j) => sign * ascending(data[start + i], data[start + j]));
      for (let i = 0; i < sorted; i++) {
        indices.data[to + i] = order[i];
        values.data[to + i] = data[start + order[i]];
      }
    }
    return [values, indices];
  });
}

/**
 * Make an operation that returns the best value so far and its index, the last one among equals.
 * @type {(beats: (x: number, best: number) => boolean) => Operation}
 */
const running = (beats) => (interpreter, tensor, axis) =>
  alongAxis(interpreter, tensor, axis, ({ shape, data }) => {
    const values = interpreter.empty(shape, tensor.dtype);
    const indices = interpreter.empty(shape, "int64");
    const length = shape[shape.length - 1];
    for (let i = 0, best = 0; i < data.length; i++) {
      if (i % length === 0 || data[i] !== data[i] || beats(data[i], data[best])) best = i;
      values.data[i] = data[best];
      indices.data[i] = best % length;
    }
    return [values, indices];
  });

/** @type {Record<string, Operation>} */
export const SCANNING = {
  cumsum: cumulative(0, (total, x) => total + x),
  cumprod: cumulative(1, (total, x) => total * x),
  logcumsumexp: cumulative(-Infinity, logAddExp),
  cummax: running((x, best) => x >= best),
  cummin: running((x, best) => x <= best),
  "log_softmax.int": (interpreter, tensor, axis) => scanned(logSoftmaxRow, interpreter, tensor, axis, "float32"),
  sort,
  "sort.stable": (interpreter, tensor, stable, axis, descending) => sort(interpreter, tensor, axis, descending),
  topk: (interpreter, tensor, count, axis = -1, largest = true) => sort(interpreter, tensor, axis, largest, count),
};

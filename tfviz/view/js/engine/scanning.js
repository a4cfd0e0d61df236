// Operations that go along one axis and leave it: running sums, softmax, order.

/** @import { Operation } from "../types.d.ts" */

import { along, cast, dtypeOf } from "./tensors.js";
import { logSumExp } from "./reducing.js";

/** @type {Operation} `of(data, start, end, out)` writes a row. */
function scanned(machine, tensor, axis, dtype, of) {
  const [made] = along(machine, tensor, axis, (transposed) => {
    const out = machine.empty(transposed.shape, dtype);
    const length = transposed.shape[transposed.shape.length - 1];
    for (let start = 0; start < out.data.length; start += length) of(transposed.data, start, start + length, out.data);
    return out;
  });
  return made;
}

/** @type {(...of: any[]) => Operation} */
const soFar =
  (first, step) =>
  (machine, tensor, axis, dtype = null) => {
    const kind = dtype ? dtypeOf(dtype) : tensor.dtype === "float32" ? "float32" : "int64";
    return scanned(machine, cast(machine, tensor, kind), axis, kind, (data, start, end, out) => {
      for (let i = start, so = first; i < end; i++) out[i] = so = step(so, data[i]);
    });
  };

// Weights of a row: all NaN where every score is -inf, as in torch.
function softmaxRow(data, start, end, out) {
  let most = -Infinity;
  for (let i = start; i < end; i++) if (data[i] > most) most = data[i];
  let sum = 0;
  for (let i = start; i < end; i++) sum += out[i] = data[i] === -Infinity ? 0 : Math.exp(data[i] - most);
  for (let i = start; i < end; i++) out[i] /= sum;
}

/** @type {Operation} */
export function softmaxAlong(machine, tensor, axis, dtype = null) {
  return scanned(machine, cast(machine, tensor, dtype), axis, "float32", softmaxRow);
}

/** @type {Operation} */
function logSoftmax(machine, tensor, axis, dtype = null) {
  return scanned(machine, cast(machine, tensor, dtype || null), axis, "float32", (data, start, end, out) => {
    const all = logSumExp(data, start, end);
    for (let i = start; i < end; i++) out[i] = data[i] - all;
  });
}

// How places of a row follow each other: what is not a number is larger than all, and equals keep their order.
function ordered(data, start, end, descending) {
  const places = Array.from({ length: end - start }, (_, i) => i);
  const rank = (x, y) => (x === y ? 0 : x !== x ? (y !== y ? 0 : 1) : y !== y ? -1 : x - y || (x < y ? -1 : 1));
  return places.sort((i, j) => (descending ? -1 : 1) * rank(data[start + i], data[start + j]));
}

/** @type {Operation} The first `count` of each row in order, and where they stood. */
function sorted(machine, tensor, axis, descending, count = null) {
  return along(machine, tensor, axis, (transposed) => {
    const length = transposed.shape[transposed.shape.length - 1];
    const most = count ?? length;
    if (most > length) throw new Error(`there are no ${most} among ${length}`);
    const shape = [...transposed.shape.slice(0, -1), most];
    const values = machine.empty(shape, tensor.dtype);
    const places = machine.empty(shape, "int64");
    for (let to = 0, start = 0; to < values.data.length; to += most, start += length) {
      const order = ordered(transposed.data, start, start + length, descending);
      for (let i = 0; i < most; i++) {
        places.data[to + i] = order[i];
        values.data[to + i] = transposed.data[start + order[i]];
      }
    }
    return [values, places];
  });
}

/** @type {(...of: any[]) => Operation} The largest so far, and where it stood: the last of several. */
const record = (beats) => (machine, tensor, axis) =>
  along(machine, tensor, axis, (transposed) => {
    const values = machine.empty(transposed.shape, tensor.dtype);
    const places = machine.empty(transposed.shape, "int64");
    const length = transposed.shape[transposed.shape.length - 1];
    for (let i = 0, best = 0; i < values.data.length; i++) {
      const x = transposed.data[i];
      if (i % length === 0 || x !== x || beats(x, transposed.data[best])) best = i;
      values.data[i] = transposed.data[best];
      places.data[i] = best % length;
    }
    return [values, places];
  });

// log(exp(a) + exp(b)), summed up along an axis.
function logStep(so, x) {
  const [most, least] = so > x ? [so, x] : [x, so];
  return least === -Infinity ? most : most + Math.log1p(Math.exp(least - most));
}

/** @type {Operation} */
const sort = (machine, tensor, axis = -1, descending = false) => sorted(machine, tensor, axis, descending);

/** @type {Record<string, Operation>} */
export const SCANNING = {
  cumsum: soFar(0, (so, x) => so + x),
  cumprod: soFar(1, (so, x) => so * x),
  logcumsumexp: soFar(-Infinity, logStep),
  cummax: record((x, best) => x >= best),
  cummin: record((x, best) => x <= best),
  "log_softmax.int": logSoftmax,
  sort,
  "sort.stable": (machine, tensor, stable, axis, descending) => sort(machine, tensor, axis, descending),
  topk: (machine, tensor, count, axis = -1, largest = true) => sorted(machine, tensor, axis, largest, count),
};

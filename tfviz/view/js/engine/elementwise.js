// Operations on pairs of cells.

/** @import { Operation } from "../types.d.ts" */

import { asTensor, broadcastShape, cast, promoted, stridesTo, walk } from "./tensors.js";

// Kernels of pairs, for a stretch of cells. The four that matter have loops of their own, which browsers make fast.
const pairwise = (of) => (a, i, di, b, j, dj, out, at, length) => {
  for (let k = 0; k < length; k++, i += di, j += dj) out[at + k] = of(a[i], b[j]);
};
const addRow = (a, i, di, b, j, dj, out, at, length) => {
  for (let k = 0; k < length; k++, i += di, j += dj) out[at + k] = a[i] + b[j];
};
const subtractRow = (a, i, di, b, j, dj, out, at, length) => {
  for (let k = 0; k < length; k++, i += di, j += dj) out[at + k] = a[i] - b[j];
};
const multiplyRow = (a, i, di, b, j, dj, out, at, length) => {
  for (let k = 0; k < length; k++, i += di, j += dj) out[at + k] = a[i] * b[j];
};
const divideRow = (a, i, di, b, j, dj, out, at, length) => {
  for (let k = 0; k < length; k++, i += di, j += dj) out[at + k] = a[i] / b[j];
};
const multiplyWhole = pairwise(Math.imul); // whole numbers wrap, at 32 bits where torch's wrap at 64

/**
 * Two operands, tensors or numbers, cell by cell; the result as wide as the wider one unless `dtype` says otherwise.
 * @type {Operation}
 */
function broadcastPair(machine, one, other, row, dtype = null) {
  const kind = promoted(machine, one, other);
  const a = asTensor(one, kind);
  const b = asTensor(other, kind);
  const shape = broadcastShape(a.shape, b.shape);
  const out = machine.empty(shape, dtype ?? kind);
  walk(shape, [stridesTo(a.shape, shape), stridesTo(b.shape, shape)], ([i, j], [di, dj], at, length) => {
    row(a.data, i, di, b.data, j, dj, out.data, at, length);
  });
  if (out.dtype === "bool") for (let i = 0; i < out.data.length; i++) out.data[i] = out.data[i] === 0 ? 0 : 1;
  return out;
}

/** @type {(...of: any[]) => Operation} */
const pair = (of) => (machine, one, other) => broadcastPair(machine, one, other, pairwise(of));
/** @type {(...of: any[]) => Operation} */
const compare = (of) => (machine, one, other) => broadcastPair(machine, one, other, pairwise(of), "bool");
/** @type {Operation} */
const floats = (machine, ...values) => (promoted(machine, ...values) === "float32" ? null : "float32");
/** @type {(...of: any[]) => Operation} */
const pairOfFloats = (of) => (machine, one, other) =>
  broadcastPair(machine, one, other, pairwise(of), floats(machine, one, other));

/** @type {Operation} */
const add = (machine, one, other, alpha = 1) =>
  broadcastPair(machine, one, other, alpha === 1 ? addRow : pairwise((x, y) => x + alpha * y));
/** @type {Operation} */
const subtract = (machine, one, other, alpha = 1) =>
  broadcastPair(machine, one, other, alpha === 1 ? subtractRow : pairwise((x, y) => x - alpha * y));
/** @type {Operation} */
const multiply = (machine, one, other) =>
  broadcastPair(machine, one, other, promoted(machine, one, other) === "int64" ? multiplyWhole : multiplyRow);

const floorModulo = (x, y) => {
  const rest = x % y;
  return rest !== 0 && rest < 0 !== y < 0 ? rest + y : rest;
};
// As Python's //, which is not the floor of the rounded quotient: 1.0 // 0.1 is 9.
const floorDivide = (x, y) => {
  if (y === 0) return x / y;
  const quotient = (x - floorModulo(x, y)) / y;
  return quotient === 0 ? 0 : Math.round(quotient);
};

/** @type {Operation} */
function divide(machine, one, other, rounding = null) {
  if (rounding === null) return broadcastPair(machine, one, other, divideRow, floats(machine, one, other));
  return broadcastPair(machine, one, other, pairwise(rounding === "floor" ? floorDivide : (x, y) => Math.trunc(x / y)));
}

/** @type {Operation} */
const power = (machine, base, exponent) =>
  exponent === 2
    ? multiply(machine, base, base)
    : broadcastPair(
        machine,
        base,
        exponent,
        pairwise((x, y) => (x === 1 ? 1 : x ** y)),
      );

/** @type {Operation} */
function clamp(machine, tensor, low = null, high = null) {
  const above = low === null ? tensor : pair(Math.max)(machine, tensor, low);
  return high === null ? above : pair(Math.min)(machine, above, high);
}

/** @type {Operation} */
function where(machine, condition, one, other) {
  const kind = promoted(machine, one, other);
  const parts = [condition, asTensor(one, kind), asTensor(other, kind)];
  const shape = broadcastShape(...parts.map((part) => part.shape));
  const out = machine.empty(shape, kind);
  const [chosen, a, b] = parts.map((part) => part.data);
  const strides = parts.map((part) => stridesTo(part.shape, shape));
  walk(shape, strides, ([c, i, j], [dc, di, dj], at, length) => {
    for (let k = 0; k < length; k++, c += dc, i += di, j += dj) out.data[at + k] = chosen[c] ? a[i] : b[j];
  });
  return out;
}

/** @type {Operation} In torch the tensor keeps its kind, whatever is written into it. */
const fillMasked = (machine, tensor, mask, value) =>
  where(machine, mask, cast(machine, asTensor(value, tensor.dtype), tensor.dtype), tensor);

/** @type {(...of: any[]) => Operation} */
const both = (of) => (machine, one, other) => broadcastPair(machine, one, other, pairwise(of), "bool");

const xlogy = pairOfFloats((x, y) => (x === 0 && y === y ? 0 : x * Math.log(y)));

// Each with a tensor or a number in second place.
const EITHER = {
  add,
  sub: subtract,
  mul: multiply,
  div: divide,
  remainder: pair(floorModulo),
  fmod: pair((x, y) => x % y),
  eq: compare((x, y) => x === y),
  ne: compare((x, y) => x !== y),
  lt: compare((x, y) => x < y),
  le: compare((x, y) => x <= y),
  gt: compare((x, y) => x > y),
  ge: compare((x, y) => x >= y),
  bitwise_and: pair((x, y) => x & y),
  bitwise_or: pair((x, y) => x | y),
  bitwise_xor: pair((x, y) => x ^ y),
  __and__: pair((x, y) => x & y),
  __or__: pair((x, y) => x | y),
  __rshift__: pair((x, y) => x >> y),
  __lshift__: pair((x, y) => x << y),
};

/** @type {Record<string, Operation>} */
export const PAIRS = {
  ...Object.fromEntries(
    Object.entries(EITHER).flatMap(([name, of]) => [
      [`${name}.Tensor`, of],
      [`${name}.Scalar`, of],
    ]),
  ),
  "bitwise_right_shift.Tensor": EITHER.__rshift__,
  "bitwise_right_shift.Tensor_Scalar": EITHER.__rshift__,
  "bitwise_left_shift.Tensor": EITHER.__lshift__,
  "bitwise_left_shift.Tensor_Scalar": EITHER.__lshift__,
  "xlogy.Tensor": xlogy,
  "xlogy.Scalar_Other": xlogy,
  "rsub.Scalar": (machine, one, other, alpha = 1) => subtract(machine, other, one, alpha),
  "div.Tensor_mode": divide,
  "div.Scalar_mode": divide,
  "pow.Tensor_Scalar": power,
  "pow.Tensor_Tensor": power,
  "pow.Scalar": power,
  maximum: pair(Math.max),
  minimum: pair(Math.min),
  atan2: pairOfFloats(Math.atan2),
  hypot: pairOfFloats(Math.hypot),
  logical_and: both((x, y) => (x !== 0 && y !== 0 ? 1 : 0)),
  logical_or: both((x, y) => (x !== 0 || y !== 0 ? 1 : 0)),
  logical_xor: both((x, y) => ((x !== 0) !== (y !== 0) ? 1 : 0)),
  clamp,
  "clamp.Tensor": clamp,
  "where.self": where,
  "where.ScalarOther": where,
  "where.ScalarSelf": where,
  "where.Scalar": where,
  "masked_fill.Scalar": fillMasked,
  "masked_fill.Tensor": fillMasked,
};

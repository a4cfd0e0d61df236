// Elementwise operations on two tensors or numbers, with broadcasting.

/** @import { Dtype, Numbers, Operation } from "../types.js" */
/** @typedef {(x: number, y: number) => number | boolean} Binary */
/** @typedef {[data: Numbers, offset: number, step: number]} Operand */
/** @typedef {(...args: [...Operand, ...Operand, out: Numbers, start: number, length: number]) => void} BinaryLoop */

import { broadcastShape, broadcastStrides } from "./shape-utils.js";
import { asTensor, cast, forEachRow, resultType } from "./tensors.js";

/** @type {(of: Binary) => BinaryLoop} */
const loopOf = (of) => (a, i, di, b, j, dj, out, start, length) => {
  for (let k = 0; k < length; k++, i += di, j += dj) out[start + k] = /** @type {number} */ (of(a[i], b[j]));
};
/**
 * The four most common operations have loops of their own, which browsers optimize.
 * @type {Record<string, BinaryLoop>}
 */
const FAST_LOOPS = {
  add(a, i, di, b, j, dj, out, start, length) {
    for (let k = 0; k < length; k++, i += di, j += dj) out[start + k] = a[i] + b[j];
  },
  subtract(a, i, di, b, j, dj, out, start, length) {
    for (let k = 0; k < length; k++, i += di, j += dj) out[start + k] = a[i] - b[j];
  },
  multiply(a, i, di, b, j, dj, out, start, length) {
    for (let k = 0; k < length; k++, i += di, j += dj) out[start + k] = a[i] * b[j];
  },
  divide(a, i, di, b, j, dj, out, start, length) {
    for (let k = 0; k < length; k++, i += di, j += dj) out[start + k] = a[i] / b[j];
  },
  multiplyIntegers: loopOf(Math.imul), // wraps at 32 bits where torch wraps at 64
};

/**
 * Apply an operation to two tensors or numbers, cell by cell. `dtype` is that of the result if it is not the wider one.
 * @type {Operation}
 */
function broadcastPair(interpreter, left, right, loop, dtype = null) {
  const common = resultType(interpreter, left, right);
  const [a, b] = [asTensor(left, common), asTensor(right, common)];
  const shape = broadcastShape(a.shape, b.shape);
  const out = interpreter.empty(shape, /** @type {Dtype} */ (dtype ?? common));
  const strides = [broadcastStrides(a.shape, shape), broadcastStrides(b.shape, shape)];
  forEachRow(shape, strides, ([i, j], [di, dj], start, length) => {
    loop(a.data, i, di, b.data, j, dj, out.data, start, length);
  });
  if (out.dtype === "bool") for (let i = 0; i < out.data.length; i++) out.data[i] = out.data[i] === 0 ? 0 : 1;
  return out;
}

/** @type {(of: Binary, dtype?: Dtype) => Operation} */
const binary = (of, dtype) => {
  const loop = loopOf(of);
  return (interpreter, left, right) => broadcastPair(interpreter, left, right, loop, dtype);
};
/** @type {(of: Binary) => Operation} */
const compare = (of) => binary(of, "bool");

/** @type {Operation} */
const add = (interpreter, left, right, alpha = 1) =>
  broadcastPair(interpreter, left, right, alpha === 1 ? FAST_LOOPS.add : loopOf((x, y) => x + alpha * y));
/** @type {Operation} */
const subtract = (interpreter, left, right, alpha = 1) =>
  broadcastPair(interpreter, left, right, alpha === 1 ? FAST_LOOPS.subtract : loopOf((x, y) => x - alpha * y));
/** @type {Operation} */
const multiply = (interpreter, left, right) =>
  broadcastPair(
    interpreter,
    left,
    right,
    resultType(interpreter, left, right) === "int64" ? FAST_LOOPS.multiplyIntegers : FAST_LOOPS.multiply,
  );

/** @type {(x: number, y: number) => number} */
const floorModulo = (x, y) => {
  const rest = x % y;
  return rest !== 0 && rest < 0 !== y < 0 ? rest + y : rest;
};
/** @type {Binary} As Python's //, which is not the floor of the rounded quotient: 1.0 // 0.1 is 9. */
const floorDivide = (x, y) => {
  if (y === 0) return x / y;
  const quotient = (x - floorModulo(x, y)) / y;
  return quotient === 0 ? 0 : Math.round(quotient);
};

/** @type {Operation} */
function divide(interpreter, left, right, rounding = null) {
  if (rounding === null) return broadcastPair(interpreter, left, right, FAST_LOOPS.divide, "float32");
  return binary(rounding === "floor" ? floorDivide : (x, y) => Math.trunc(x / y))(interpreter, left, right);
}

const pow = binary((x, y) => (x === 1 ? 1 : x ** y));
/** @type {Operation} */
const power = (interpreter, base, exponent) =>
  exponent === 2 ? multiply(interpreter, base, base) : pow(interpreter, base, exponent);

const maximum = binary(Math.max);
const minimum = binary(Math.min);
/** @type {Operation} */
function clamp(interpreter, tensor, low = null, high = null) {
  const above = low === null ? tensor : maximum(interpreter, tensor, low);
  return high === null ? above : minimum(interpreter, above, high);
}

/** @type {Operation} */
function where(interpreter, condition, left, right) {
  const dtype = resultType(interpreter, left, right);
  const tensors = [condition, asTensor(left, dtype), asTensor(right, dtype)];
  const shape = broadcastShape(...tensors.map((tensor) => tensor.shape));
  const out = interpreter.empty(shape, dtype);
  const [mask, a, b] = tensors.map((tensor) => tensor.data);
  const strides = tensors.map((tensor) => broadcastStrides(tensor.shape, shape));
  forEachRow(shape, strides, ([m, i, j], [dm, di, dj], start, length) => {
    for (let k = 0; k < length; k++, m += dm, i += di, j += dj) out.data[start + k] = mask[m] ? a[i] : b[j];
  });
  return out;
}

/** @type {Operation} In torch the tensor keeps its dtype, whatever is written into it. */
const maskedFill = (interpreter, tensor, mask, value) =>
  where(interpreter, mask, cast(interpreter, asTensor(value, tensor.dtype), tensor.dtype), tensor);

const xlogy = binary((x, y) => (x === 0 && y === y ? 0 : x * Math.log(y)), "float32");
const and = binary((x, y) => x & y);
const or = binary((x, y) => x | y);
const shiftLeft = binary((x, y) => x << y);
const shiftRight = binary((x, y) => x >> y);

/** @type {Record<string, Operation>} with a tensor or a number as the second argument */
const OVERLOADED_OPERATIONS = {
  add,
  sub: subtract,
  mul: multiply,
  div: divide,
  remainder: binary(floorModulo),
  fmod: binary((x, y) => x % y),
  eq: compare((x, y) => x === y),
  ne: compare((x, y) => x !== y),
  lt: compare((x, y) => x < y),
  le: compare((x, y) => x <= y),
  gt: compare((x, y) => x > y),
  ge: compare((x, y) => x >= y),
  bitwise_and: and,
  bitwise_or: or,
  bitwise_xor: binary((x, y) => x ^ y),
  __and__: and,
  __or__: or,
  __rshift__: shiftRight,
  __lshift__: shiftLeft,
};
const overloads = Object.entries(OVERLOADED_OPERATIONS).flatMap(([name, operation]) => [
  [`${name}.Tensor`, operation],
  [`${name}.Scalar`, operation],
]);

/** @type {Record<string, Operation>} */
export const BINARY = {
  ...Object.fromEntries(overloads),
  "bitwise_right_shift.Tensor": shiftRight,
  "bitwise_right_shift.Tensor_Scalar": shiftRight,
  "bitwise_left_shift.Tensor": shiftLeft,
  "bitwise_left_shift.Tensor_Scalar": shiftLeft,
  "xlogy.Tensor": xlogy,
  "xlogy.Scalar_Other": xlogy,
  "rsub.Scalar": (interpreter, left, right, alpha = 1) => subtract(interpreter, right, left, alpha),
  "div.Tensor_mode": divide,
  "div.Scalar_mode": divide,
  "pow.Tensor_Scalar": power,
  "pow.Tensor_Tensor": power,
  "pow.Scalar": power,
  maximum,
  minimum,
  atan2: binary(Math.atan2, "float32"),
  hypot: binary(Math.hypot, "float32"),
  logical_and: compare((x, y) => x !== 0 && y !== 0),
  logical_or: compare((x, y) => x !== 0 || y !== 0),
  logical_xor: compare((x, y) => (x !== 0) !== (y !== 0)),
  clamp,
  "clamp.Tensor": clamp,
  "where.self": where,
  "where.ScalarOther": where,
  "where.ScalarSelf": where,
  "where.Scalar": where,
  "masked_fill.Scalar": maskedFill,
  "masked_fill.Tensor": maskedFill,
};

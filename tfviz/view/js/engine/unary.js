// Elementwise operations on one tensor.

/** @import { Dtype, Operation, Tensor } from "../types.js" */
/** @import { Interpreter } from "./interpreter.js" */
/** @typedef {(x: number) => number} Unary */

import { cast } from "./tensors.js";

/** @type {(interpreter: Interpreter, tensor: Tensor, dtype: Dtype, of: (x: number) => number | boolean) => Tensor} */
function mapped(interpreter, tensor, dtype, of) {
  const out = interpreter.empty(tensor.shape, dtype);
  const { data } = tensor;
  const to = out.data;
  for (let i = 0; i < data.length; i++) to[i] = /** @type {number} */ (of(data[i]));
  return out;
}
/** @type {(of: Unary) => Operation} */
const toFloats = (of) => (interpreter, tensor) => mapped(interpreter, tensor, "float32", of);
/** @type {(of: Unary) => Operation} */
const sameDtype = (of) => (interpreter, tensor) => mapped(interpreter, tensor, tensor.dtype, of);
/** @type {(of: (x: number) => boolean) => Operation} */
const toBools = (of) => (interpreter, tensor) => mapped(interpreter, tensor, "bool", of);
/** @type {(of: Unary) => Operation} Whole numbers stay as they are. */
const onFloats = (of) => (interpreter, tensor) =>
  tensor.dtype === "float32" ? mapped(interpreter, tensor, "float32", of) : tensor;

/** @type {Unary} */
const halfToEven = (x) => (x - Math.floor(x) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
/** @type {Unary} */
export const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// The error function, from the nearest of a table and two derivatives: exact to 1e-9.
const ERF_RANGE = 6;
const ERF_STEPS = 64;
const ERF_VALUES = Float64Array.from({ length: ERF_RANGE * ERF_STEPS + 1 }, (_, i) => {
  const x = i / ERF_STEPS;
  let sum = 0;
  for (let n = 0, term = x; n < 200; n++, term *= (2 * x * x) / (2 * n + 1)) sum += term; // all terms are positive
  return ((2 * Math.exp(-x * x)) / Math.sqrt(Math.PI)) * sum;
});
const ERF_SLOPE = ERF_VALUES.map((_, i) => (2 * Math.exp(-((i / ERF_STEPS) ** 2))) / Math.sqrt(Math.PI));

/** @type {Unary} */
function erf(x) {
  const size = Math.abs(x);
  if (!(size < ERF_RANGE)) return Number.isNaN(x) ? NaN : Math.sign(x);
  const nearest = (size * ERF_STEPS + 0.5) | 0;
  const from = nearest / ERF_STEPS;
  const h = size - from;
  const value = ERF_VALUES[nearest] + ERF_SLOPE[nearest] * h * (1 - h * (from - (h * (2 * from * from - 1)) / 3));
  return x < 0 ? -value : value;
}

// The distribution function of the normal distribution, in the same way: exact to 1e-8.
const NORMAL_RANGE = 6;
const NORMAL_STEPS = 128;
const NORMAL_X = Float64Array.from(
  { length: 2 * NORMAL_RANGE * NORMAL_STEPS + 1 },
  (_, i) => i / NORMAL_STEPS - NORMAL_RANGE,
);
const NORMAL_CDF = NORMAL_X.map((x) => (1 + erf(x * Math.SQRT1_2)) / 2);
const NORMAL_DENSITY = NORMAL_X.map((x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI));

/** @type {Unary} */
function normalCdf(x) {
  if (!(Math.abs(x) < NORMAL_RANGE)) return Number.isNaN(x) ? NaN : Number(x > 0);
  const nearest = ((x + NORMAL_RANGE) * NORMAL_STEPS + 0.5) | 0;
  const h = x - NORMAL_X[nearest];
  return NORMAL_CDF[nearest] + h * NORMAL_DENSITY[nearest] * (1 - (h / 2) * NORMAL_X[nearest]);
}

/** @type {Operation} */
function round(interpreter, tensor, decimals = 0) {
  const scale = 10 ** decimals;
  return onFloats(decimals === 0 ? halfToEven : (x) => halfToEven(x * scale) / scale)(interpreter, tensor);
}

const TRANSCENDENTAL = /** @type {const} */ ([
  ...["exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"],
  ...["sinh", "cosh", "tanh", "asinh", "acosh", "atanh"],
]);

/** @type {Record<string, Operation>} */
export const UNARY = {
  ...Object.fromEntries(TRANSCENDENTAL.map((name) => [name, toFloats(Math[name])])),
  gelu(interpreter, tensor, approximate = "none") {
    const out = interpreter.empty(tensor.shape);
    const { data } = tensor;
    const to = out.data;
    if (approximate === "tanh") {
      const root = Math.sqrt(2 / Math.PI);
      for (let i = 0; i < data.length; i++) {
        const x = data[i];
        to[i] = 0.5 * x * (1 + Math.tanh(root * (x + 0.044715 * x * x * x)));
      }
    } else for (let i = 0; i < data.length; i++) to[i] = data[i] * normalCdf(data[i]);
    return out;
  },
  relu(interpreter, tensor) {
    const out = interpreter.empty(tensor.shape, tensor.dtype);
    const { data } = tensor;
    for (let i = 0; i < data.length; i++) out.data[i] = data[i] < 0 ? 0 : data[i];
    return out;
  },
  silu: toFloats((x) => x * sigmoid(x)),
  sigmoid: toFloats(sigmoid),
  hardtanh: (interpreter, tensor, low = -1, high = 1) =>
    mapped(interpreter, tensor, tensor.dtype, (x) => Math.min(Math.max(x, low), high)),
  leaky_relu: (interpreter, tensor, slope = 0.01) =>
    mapped(interpreter, tensor, "float32", (x) => (x < 0 ? slope * x : x)),
  elu: (interpreter, tensor, alpha = 1, scale = 1, inner = 1) =>
    mapped(interpreter, tensor, "float32", (x) => scale * (x > 0 ? x : alpha * Math.expm1(x * inner))),
  exp2: toFloats((x) => 2 ** x),
  rsqrt: toFloats((x) => 1 / Math.sqrt(x)),
  reciprocal: toFloats((x) => 1 / x),
  square: sameDtype((x) => x * x),
  erf: toFloats(erf),
  abs: sameDtype(Math.abs),
  neg: sameDtype((x) => -x),
  sign: sameDtype(Math.sign),
  floor: onFloats(Math.floor),
  ceil: onFloats(Math.ceil),
  trunc: onFloats(Math.trunc),
  round,
  "round.decimals": round,
  isnan: toBools(Number.isNaN),
  isinf: toBools((x) => x === Infinity || x === -Infinity),
  logical_not: toBools((x) => x === 0),
  bitwise_not: (interpreter, tensor) =>
    mapped(interpreter, tensor, tensor.dtype, tensor.dtype === "bool" ? (x) => 1 - x : (x) => ~x),
  _to_copy: cast,
  "to.dtype": cast,
  type_as: (interpreter, tensor, other) => cast(interpreter, tensor, other.dtype),
};

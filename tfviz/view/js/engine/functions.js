// Operations on each cell by itself.

/** @import { Operation } from "../types.d.ts" */

import { cast } from "./tensors.js";

/**
 * Each cell by itself. The result is of floats (`real`), of the same kind (`like`), or of truths (`truth`).
 * @type {Operation}
 */
function mapped(machine, tensor, dtype, of) {
  const out = machine.empty(tensor.shape, dtype);
  const { data } = tensor;
  const to = out.data;
  for (let i = 0; i < data.length; i++) to[i] = of(data[i]);
  return out;
}
/** @type {(...of: any[]) => Operation} */
const real = (of) => (machine, tensor) => mapped(machine, tensor, "float32", of);
/** @type {(...of: any[]) => Operation} */
const like = (of) => (machine, tensor) => mapped(machine, tensor, tensor.dtype, of);
/** @type {(...of: any[]) => Operation} */
const truth = (of) => (machine, tensor) => mapped(machine, tensor, "bool", of);
/** @type {(...of: any[]) => Operation} */
const steady = (of) => (machine, tensor) =>
  tensor.dtype === "float32" ? mapped(machine, tensor, "float32", of) : tensor;

const even = (x) => (x - Math.floor(x) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x)); // halves go to even numbers
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const bounded = (x, low, high) => Math.min(Math.max(x, low), high);

// The error function. Between points 1/64 apart its own series is exact to 1e-9: the derivatives are known.
const ERF_REACH = 6;
const ERF_STEPS = 64;
const ERF_AT = Float64Array.from({ length: ERF_REACH * ERF_STEPS + 1 }, (_, i) => {
  const x = i / ERF_STEPS;
  let sum = 0;
  for (let n = 0, term = x; n < 200; n++, term *= (2 * x * x) / (2 * n + 1)) sum += term; // all terms positive
  return ((2 * Math.exp(-x * x)) / Math.sqrt(Math.PI)) * sum;
});
const ERF_SLOPE = ERF_AT.map((_, i) => (2 * Math.exp(-((i / ERF_STEPS) ** 2))) / Math.sqrt(Math.PI));

function erf(x) {
  const far = Math.abs(x);
  if (!(far < ERF_REACH)) return Number.isNaN(x) ? NaN : Math.sign(x);
  const nearest = (far * ERF_STEPS + 0.5) | 0;
  const from = nearest / ERF_STEPS;
  const h = far - from;
  const found = ERF_AT[nearest] + ERF_SLOPE[nearest] * h * (1 - h * (from - (h * (2 * from * from - 1)) / 3));
  return x < 0 ? -found : found;
}

/** @type {Operation} */
function gelu(machine, tensor, approximate = "none") {
  const out = machine.empty(tensor.shape, "float32");
  const { data } = tensor;
  const to = out.data;
  if (approximate === "tanh") {
    const root = Math.sqrt(2 / Math.PI);
    for (let i = 0; i < data.length; i++) {
      const x = data[i];
      to[i] = 0.5 * x * (1 + Math.tanh(root * (x + 0.044715 * x * x * x)));
    }
  } else for (let i = 0; i < data.length; i++) to[i] = data[i] * shareBelow(data[i]);
  return out;
}

// How much of a normal distribution lies below x: from the nearest of a table, by two derivatives; to 1e-8.
const BELOW_STEPS = 128;
const BELOW_REACH = 6;
const BELOW_FROM = Float64Array.from(
  { length: 2 * BELOW_REACH * BELOW_STEPS + 1 },
  (_, i) => i / BELOW_STEPS - BELOW_REACH,
);
const BELOW_AT = BELOW_FROM.map((x) => (1 + erf(x * Math.SQRT1_2)) / 2);
const BELOW_SLOPE = BELOW_FROM.map((x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI));
function shareBelow(x) {
  if (!(Math.abs(x) < BELOW_REACH)) return x > 0 ? 1 : x < 0 ? 0 : NaN;
  const nearest = ((x + BELOW_REACH) * BELOW_STEPS + 0.5) | 0;
  const h = x - BELOW_FROM[nearest];
  return BELOW_AT[nearest] + h * BELOW_SLOPE[nearest] * (1 - (h / 2) * BELOW_FROM[nearest]);
}

/** @type {Operation} */
function relu(machine, tensor) {
  const out = machine.empty(tensor.shape, tensor.dtype);
  const { data } = tensor;
  for (let i = 0; i < data.length; i++) out.data[i] = data[i] < 0 ? 0 : data[i];
  return out;
}

/** @type {Operation} */
function elu(machine, tensor, alpha = 1, scale = 1, inner = 1) {
  return real((x) => scale * (x > 0 ? x : alpha * Math.expm1(x * inner)))(machine, tensor);
}

/** @type {Operation} */
function rounded(machine, tensor, decimals = 0) {
  const scale = 10 ** decimals;
  return steady(decimals === 0 ? even : (x) => even(x * scale) / scale)(machine, tensor);
}

/** @type {Operation} */
const bitNot = (machine, tensor) =>
  mapped(machine, tensor, tensor.dtype, tensor.dtype === "bool" ? (x) => 1 - x : (x) => ~x);
/** @type {Record<string, Operation>} */
export const FUNCTIONS = {
  gelu,
  relu,
  silu: real((x) => x * sigmoid(x)),
  sigmoid: real(sigmoid),
  tanh: real(Math.tanh),
  hardtanh: (machine, tensor, low = -1, high = 1) => like((x) => bounded(x, low, high))(machine, tensor),
  leaky_relu: (machine, tensor, slope = 0.01) => real((x) => (x < 0 ? slope * x : x))(machine, tensor),
  elu,
  exp: real(Math.exp),
  exp2: real((x) => 2 ** x),
  expm1: real(Math.expm1),
  log: real(Math.log),
  log2: real(Math.log2),
  log10: real(Math.log10),
  log1p: real(Math.log1p),
  sqrt: real(Math.sqrt),
  rsqrt: real((x) => 1 / Math.sqrt(x)),
  reciprocal: real((x) => 1 / x),
  square: like((x) => x * x),
  sin: real(Math.sin),
  cos: real(Math.cos),
  tan: real(Math.tan),
  asin: real(Math.asin),
  acos: real(Math.acos),
  atan: real(Math.atan),
  sinh: real(Math.sinh),
  cosh: real(Math.cosh),
  asinh: real(Math.asinh),
  acosh: real(Math.acosh),
  atanh: real(Math.atanh),
  erf: real(erf),
  abs: like(Math.abs),
  neg: like((x) => -x),
  sign: like(Math.sign),
  floor: steady(Math.floor),
  ceil: steady(Math.ceil),
  trunc: steady(Math.trunc),
  round: rounded,
  "round.decimals": rounded,
  isnan: truth(Number.isNaN),
  isinf: truth((x) => x === Infinity || x === -Infinity),
  logical_not: truth((x) => x === 0),
  bitwise_not: bitNot,
  _to_copy: cast,
  "to.dtype": cast,
  type_as: (machine, tensor, other) => cast(machine, tensor, other.dtype),
};

// Matrix multiplication of tensors, with and without a bias.

/** @import { Operation } from "../types.js" */

import { broadcastShape, formatShape, sizeOf } from "./shape-utils.js";
import { cast, expand, permute, reshape } from "./tensors.js";
import { BINARY } from "./binary.js";

/** @type {Operation} Whole numbers are multiplied as floats: exact up to 2^24. */
function matmul(interpreter, left, right) {
  const [vectorLeft, vectorRight] = [left, right].map(({ shape }) => shape.length === 1);
  if (!left.shape.length || !right.shape.length) throw new Error("a tensor of no axes has no rows and columns");
  const [a, b] = [
    vectorLeft ? reshape(left, [1, ...left.shape]) : left,
    vectorRight ? reshape(right, [...right.shape, 1]) : right,
  ].map((tensor) => cast(interpreter, tensor, "float32"));
  const [rows, inner] = a.shape.slice(-2);
  const [height, columns] = b.shape.slice(-2);
  if (inner !== height)
    throw new Error(`${formatShape(left.shape)} and ${formatShape(right.shape)} have no common length to sum over`);
  const lead = broadcastShape(a.shape.slice(0, -2), b.shape.slice(0, -2));
  const batch = sizeOf(lead);
  const out = interpreter.empty([...lead, rows, columns]);
  const shared = b.shape.length === 2; // one matrix for all batches on the left
  const sizes = shared ? { rows: batch * rows, inner, columns } : { batch, rows, inner, columns };
  /** @type {any[]} */
  const factors = shared
    ? [a, b]
    : [a, b].map((tensor) => expand(interpreter, tensor, [...lead, ...tensor.shape.slice(-2)]));
  interpreter.matmulKernel.matmul(factors[0].data, factors[1].data, sizes, out.data);
  const shape = [...lead, ...(vectorLeft ? [] : [rows]), ...(vectorRight ? [] : [columns])];
  const integers = left.dtype !== "float32" && right.dtype !== "float32";
  return cast(interpreter, reshape(out, shape), integers ? "int64" : "float32");
}

/** @type {(rank: number) => Operation} Matrix products of tensors of this number of axes. */
const matmulOf = (rank) => (interpreter, left, right) => {
  const shapes = [formatShape(left.shape), formatShape(right.shape)];
  if (left.shape.length !== rank || right.shape.length !== rank)
    throw new Error(`both tensors must have ${rank} axes, not ${shapes.join(" and ")}`);
  if (rank === 3 && left.shape[0] !== right.shape[0])
    throw new Error(`${shapes.join(" and ")} are not equally many matrices`);
  return matmul(interpreter, left, right);
};

/** @type {Operation} */
const scaled = (interpreter, tensor, factor) =>
  factor === 1 ? tensor : BINARY["mul.Scalar"](interpreter, tensor, factor);

/** @type {Operation} */
function addmm(interpreter, bias, left, right, beta = 1, alpha = 1) {
  const [rows, inner] = left.shape;
  const [height, columns] = right.shape;
  if (beta === 1 && alpha === 1 && bias.shape.length === 1 && bias.shape[0] === columns && height === inner) {
    const out = interpreter.empty([rows, columns]);
    interpreter.matmulKernel.matmul(left.data, right.data, { rows, inner, columns }, out.data, bias.data);
    return out;
  }
  const product = scaled(interpreter, matmul(interpreter, left, right), alpha);
  return beta === 0 ? product : BINARY["add.Tensor"](interpreter, product, scaled(interpreter, bias, beta));
}

/** Multiply by a weight [out, in] and add a bias. @type {Operation} */
export function linear(interpreter, tensor, weight, bias = null) {
  const [lead, inner] = [tensor.shape.slice(0, -1), tensor.shape.at(-1)];
  if (inner !== weight.shape.at(-1))
    throw new Error(`the weight ${formatShape(weight.shape)} takes ${weight.shape.at(-1)} numbers, not ${inner}`);
  const outer = weight.shape.slice(0, -1);
  const out = interpreter.empty([...lead, ...outer]);
  const [rows, columns] = [sizeOf(lead), sizeOf(outer)];
  const stored = outer.length ? interpreter.storedWeight(weight) : null;
  if (stored) interpreter.matmulKernel.linear(tensor.data, rows, stored, out.data, bias?.data);
  else {
    const { data } = /** @type {any} */ (outer.length ? permute(interpreter, weight, [1, 0]) : weight);
    interpreter.matmulKernel.matmul(tensor.data, data, { rows, inner, columns }, out.data, bias?.data);
  }
  return out;
}

/** @type {Record<string, Operation>} */
export const MATMUL = { matmul, mm: matmulOf(2), bmm: matmulOf(3), addmm, linear };

// Operations that multiply matrices.

/** @import { Operation } from "../types.d.ts" */

import { broadcastShape, cast, expanded, permuted, reshaped, formatShape, sizeOf } from "./tensors.js";
import { PAIRS } from "./elementwise.js";

/** @type {Operation} Whole numbers are multiplied as floats: exact up to 2^24. */
function floatsOf(machine, tensors) {
  const whole = tensors.every((tensor) => tensor.dtype !== "float32");
  return { parts: tensors.map((tensor) => cast(machine, tensor, "float32")), dtype: whole ? "int64" : "float32" };
}

/** @type {Operation} */
export function matmul(machine, one, other) {
  if (!one.shape.length || !other.shape.length) throw new Error("a tensor of no axes has no rows and columns");
  const left = one.shape.length === 1 ? reshaped(one, [1, ...one.shape]) : one;
  const right = other.shape.length === 1 ? reshaped(other, [...other.shape, 1]) : other;
  const [rows, inner] = left.shape.slice(-2);
  const [height, columns] = right.shape.slice(-2);
  if (inner !== height)
    throw new Error(`${formatShape(one.shape)} and ${formatShape(other.shape)} have no common length to sum over`);
  const { parts, dtype } = floatsOf(machine, [left, right]);
  const lead = broadcastShape(left.shape.slice(0, -2), right.shape.slice(0, -2));
  const count = sizeOf(lead);
  const out = machine.empty([...lead, rows, columns], "float32");
  const single = right.shape.length === 2; // one matrix for all that is on the left
  const [a, b] = single ? parts : parts.map((part) => expanded(machine, part, [...lead, ...part.shape.slice(-2)]));
  const [batch, tall] = single ? [1, count * rows] : [count, rows];
  machine.products.batched(a.data, b.data, batch, tall, inner, columns, out.data);
  const shape = [...lead, ...(one.shape.length > 1 ? [rows] : []), ...(other.shape.length > 1 ? [columns] : [])];
  return cast(machine, reshaped(out, shape), dtype);
}

/** @type {(...of: any[]) => Operation} Products of tensors of just so many axes. */
const productOf = (left, right) => (machine, one, other) => {
  if (one.shape.length !== left || other.shape.length !== right) {
    throw new Error(
      `it takes ${left} and ${right} axes, not ${formatShape(one.shape)} and ${formatShape(other.shape)}`,
    );
  }
  if (left === 3 && one.shape[0] !== other.shape[0]) {
    throw new Error(`${formatShape(one.shape)} and ${formatShape(other.shape)} are not as many matrices`);
  }
  return matmul(machine, one, other);
};

/** @type {Operation} */
const times = (machine, tensor, factor) => (factor === 1 ? tensor : PAIRS["mul.Scalar"](machine, tensor, factor));

/** @type {Operation} */
function addmm(machine, start, one, other, beta = 1, alpha = 1) {
  const [rows, inner] = one.shape;
  const columns = other.shape[1];
  if (beta === 1 && alpha === 1 && start.shape.length === 1 && start.shape[0] === columns && other.shape[0] === inner) {
    const out = machine.empty([rows, columns], "float32");
    machine.products.multiply(one.data, other.data, rows, inner, columns, out.data, start.data);
    return out;
  }
  return addProduct(machine, start, one, other, beta, alpha);
}

/** @type {Operation} */
function addProduct(machine, start, one, other, beta = 1, alpha = 1) {
  const multiplied = times(machine, matmul(machine, one, other), alpha);
  return beta === 0 ? multiplied : PAIRS["add.Tensor"](machine, multiplied, times(machine, start, beta));
}

/** @type {Operation} */
export function linear(machine, tensor, weight, bias = null) {
  const inner = tensor.shape[tensor.shape.length - 1];
  const outer = weight.shape.length === 1 ? 1 : weight.shape[0];
  if (inner !== weight.shape[weight.shape.length - 1]) {
    throw new Error(
      `the weight ${formatShape(weight.shape)} takes ${weight.shape[weight.shape.length - 1]} numbers, not ${inner}`,
    );
  }
  const shape = [...tensor.shape.slice(0, -1), ...(weight.shape.length === 1 ? [] : [outer])];
  const out = machine.empty(shape, "float32");
  const rows = sizeOf(tensor.shape.slice(0, -1));
  const kept = weight.shape.length === 2 ? machine.kept(weight) : null;
  if (kept !== null) machine.products.times(tensor.data, rows, kept, bias?.data ?? null, out.data);
  else {
    const transposed = weight.shape.length === 1 ? weight : permuted(machine, weight, [1, 0]);
    machine.products.multiply(tensor.data, transposed.data, rows, inner, outer, out.data, bias?.data ?? null);
  }
  return out;
}

/** @type {Record<string, Operation>} */
export const MULTIPLYING = { matmul, mm: productOf(2, 2), bmm: productOf(3, 3), addmm, linear };

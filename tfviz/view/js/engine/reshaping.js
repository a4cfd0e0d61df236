// Operations that change the shape of a tensor, or the order of its axes, and keep its elements.

/** @import { Operation, Tensor } from "../types.js" */
/** @import { Interpreter } from "./interpreter.js" */

import { asArray, formatShape, inferShape, normalizeAxis, sizeOf } from "./shape-utils.js";
import { expand, permute, reshape } from "./tensors.js";

/** @type {Operation} */
const view = (_interpreter, tensor, shape) => reshape(tensor, shape);

/** Insert an axis of size 1. @type {Operation} */
export function unsqueeze(_interpreter, tensor, axis) {
  const shape = [...tensor.shape];
  shape.splice(normalizeAxis(shape.length + 1, axis), 0, 1);
  return reshape(tensor, shape);
}

/** Remove axes of size 1. @type {(interpreter: Interpreter, tensor: Tensor, axes: number | number[]) => Tensor} */
export function squeeze(_interpreter, tensor, axes) {
  const squeezed = asArray(axes).map((axis) => normalizeAxis(tensor.shape.length, axis));
  const shape = tensor.shape.filter((length, axis) => length !== 1 || !squeezed.includes(axis));
  return reshape(tensor, shape);
}

/** @type {Operation} */
function transpose(interpreter, tensor, axis1, axis2) {
  const order = [...tensor.shape.keys()];
  if (order.length === 0) return tensor;
  const [first, second] = [normalizeAxis(order.length, axis1), normalizeAxis(order.length, axis2)];
  [order[first], order[second]] = [second, first];
  return permute(interpreter, tensor, order);
}

/** @type {Operation} */
const identity = (_interpreter, tensor) => tensor;

/** @type {Record<string, Operation>} */
export const RESHAPING = {
  view,
  reshape: view,
  view_as: (_interpreter, tensor, other) => reshape(tensor, other.shape),
  "flatten.using_ints"(_interpreter, tensor, first = 0, last = -1) {
    const { shape } = tensor;
    if (shape.length === 0) return reshape(tensor, [1]);
    const [start, end] = [normalizeAxis(shape.length, first), normalizeAxis(shape.length, last) + 1];
    return reshape(tensor, [...shape.slice(0, start), sizeOf(shape.slice(start, end)), ...shape.slice(end)]);
  },
  "unflatten.int"(_interpreter, tensor, axis, lengths) {
    const { shape } = tensor;
    const start = normalizeAxis(shape.length, axis);
    const inferred = inferShape(lengths, shape[start]);
    return reshape(tensor, [...shape.slice(0, start), ...inferred, ...shape.slice(start + 1)]);
  },
  unsqueeze,
  "squeeze.dim": squeeze,
  "squeeze.dims": squeeze,
  permute,
  "transpose.int": transpose,
  t: (interpreter, tensor) => transpose(interpreter, tensor, 0, -1),
  mT: (interpreter, tensor) => transpose(interpreter, tensor, -2, -1),
  expand,
  expand_as: (interpreter, tensor, other) => expand(interpreter, tensor, other.shape),
  repeat(interpreter, tensor, counts) {
    const lead = counts.length - tensor.shape.length;
    if (lead < 0) throw new Error(`${formatShape(counts)} has too few counts to repeat ${formatShape(tensor.shape)}`);
    const lengths = [...Array(lead).fill(1), ...tensor.shape];
    const apart = lengths.flatMap((length) => [1, length]);
    const repeated = lengths.flatMap((length, axis) => [counts[axis], length]);
    return reshape(
      expand(interpreter, reshape(tensor, apart), repeated),
      lengths.map((length, axis) => counts[axis] * length),
    );
  },
  clone: identity,
  contiguous: identity,
  alias: identity,
  detach: identity,
  lift_fresh_copy: identity,
  dropout: identity,
};

// Operations that make tensors of sizes and one number.

/** @import { Operation } from "../types.d.ts" */

import { cast, expanded, filled, dtypeOf, promoted } from "./tensors.js";

/** @type {Operation} */
const ofKind = (machine, dtype, ...values) => (dtype ? dtypeOf(dtype) : promoted(machine, ...values));
/** @type {Operation} */
const full = (machine, shape, value, dtype = null) => filled(machine, shape, value, ofKind(machine, dtype, value));
/** @type {(...of: any[]) => Operation} */
const constant =
  (value) =>
  (machine, shape, dtype = null) =>
    filled(machine, shape, value, dtypeOf(dtype ?? "float32"));
/** @type {(...of: any[]) => Operation} */
const constantLike =
  (value) =>
  (machine, tensor, dtype = null) =>
    filled(machine, tensor.shape, value, dtypeOf(dtype ?? tensor.dtype));
/** @type {Operation} */
function range(machine, start, end, step, dtype) {
  const count = Math.max(0, Math.ceil((end - start) / step));
  const out = machine.empty([count], ofKind(machine, dtype, start, end, step));
  for (let i = 0; i < count; i++) out.data[i] = start + i * step;
  return out;
}

/** @type {Record<string, Operation>} */
export const MAKING = {
  full,
  full_like: (machine, tensor, value, dtype = null) =>
    filled(machine, tensor.shape, value, dtypeOf(dtype ?? tensor.dtype)),
  copy: (machine, tensor, source) => expanded(machine, cast(machine, source, tensor.dtype), tensor.shape),
  zeros: constant(0),
  ones: constant(1),
  "empty.memory_format": constant(0),
  zeros_like: constantLike(0),
  ones_like: constantLike(1),
  empty_like: constantLike(0),
  scalar_tensor: (machine, value, dtype = null) => full(machine, [], value, dtype ?? "float32"),
  arange: (machine, end, dtype = null) => range(machine, 0, end, 1, dtype),
  "arange.start": (machine, start, end, dtype = null) => range(machine, start, end, 1, dtype),
  "arange.start_step": (machine, start, end, step = 1, dtype = null) => range(machine, start, end, step, dtype),
};

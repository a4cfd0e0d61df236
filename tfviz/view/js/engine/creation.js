// Operations that create tensors of given sizes.

/** @import { Operation } from "../types.js" */

import { cast, expand, full, resultType, toDtype } from "./tensors.js";

/** @type {(value: number) => Operation} */
const filled =
  (value) =>
  (machine, shape, dtype = null) =>
    full(machine, shape, value, toDtype(dtype ?? "float32"));
/** @type {Operation} */
const fullLike = (machine, tensor, value, dtype = null) =>
  full(machine, tensor.shape, value, toDtype(dtype ?? tensor.dtype));
/** @type {(value: number) => Operation} */
const filledLike = (value) => (machine, tensor, dtype) => fullLike(machine, tensor, value, dtype);

/** @type {Operation} */
function arange(machine, start, end, step, dtype) {
  const count = Math.max(0, Math.ceil((end - start) / step));
  const out = machine.empty([count], dtype ? toDtype(dtype) : resultType(machine, start, end, step));
  for (let i = 0; i < count; i++) out.data[i] = start + i * step;
  return out;
}

/** @type {Record<string, Operation>} */
export const CREATION = {
  full: (machine, shape, value, dtype = null) =>
    full(machine, shape, value, dtype ? toDtype(dtype) : resultType(machine, value)),
  full_like: fullLike,
  copy: (machine, tensor, source) => expand(machine, cast(machine, source, tensor.dtype), tensor.shape),
  zeros: filled(0),
  ones: filled(1),
  "empty.memory_format": filled(0),
  zeros_like: filledLike(0),
  ones_like: filledLike(1),
  empty_like: filledLike(0),
  scalar_tensor: (machine, value, dtype = null) => full(machine, [], value, toDtype(dtype ?? "float32")),
  arange: (machine, end, dtype = null) => arange(machine, 0, end, 1, dtype),
  "arange.start": (machine, start, end, dtype = null) => arange(machine, start, end, 1, dtype),
  "arange.start_step": (machine, start, end, step = 1, dtype = null) => arange(machine, start, end, step, dtype),
};

// Operations that create tensors of given sizes.

/** @import { Operation } from "../types.js" */

import { cast, expand, full, resultType, toDtype } from "./tensors.js";

/** @type {(value: number) => Operation} */
const filled =
  (value) =>
  (interpreter, shape, dtype = null) =>
    full(interpreter, shape, value, toDtype(dtype ?? "float32"));
/** @type {Operation} */
const fullLike = (interpreter, tensor, value, dtype = null) =>
  full(interpreter, tensor.shape, value, toDtype(dtype ?? tensor.dtype));
/** @type {(value: number) => Operation} */
const filledLike = (value) => (interpreter, tensor, dtype) => fullLike(interpreter, tensor, value, dtype);

/** @type {Operation} */
function arange(interpreter, start, end, step, dtype) {
  const count = Math.max(0, Math.ceil((end - start) / step));
  const out = interpreter.empty([count], dtype ? toDtype(dtype) : resultType(interpreter, start, end, step));
  for (let i = 0; i < count; i++) out.data[i] = start + i * step;
  return out;
}

/** @type {Record<string, Operation>} */
export const CREATION = {
  full: (interpreter, shape, value, dtype = null) =>
    full(interpreter, shape, value, dtype ? toDtype(dtype) : resultType(interpreter, value)),
  full_like: fullLike,
  copy: (interpreter, tensor, source) => expand(interpreter, cast(interpreter, source, tensor.dtype), tensor.shape),
  zeros: filled(0),
  ones: filled(1),
  "empty.memory_format": filled(0),
  zeros_like: filledLike(0),
  ones_like: filledLike(1),
  empty_like: filledLike(0),
  scalar_tensor: (interpreter, value, dtype = null) => full(interpreter, [], value, toDtype(dtype ?? "float32")),
  arange: (interpreter, end, dtype = null) => arange(interpreter, 0, end, 1, dtype),
  "arange.start": (interpreter, start, end, dtype = null) => arange(interpreter, start, end, 1, dtype),
  "arange.start_step": (interpreter, start, end, step = 1, dtype = null) =>
    arange(interpreter, start, end, step, dtype),
};

// Tensors of the engine, { shape, dtype, data }, row-major, never changed once made; and the walks over them.

/** @import { Operation } from "../types.d.ts" */

const TENSOR_ARRAYS = { float32: Float32Array, int64: Int32Array, bool: Uint8Array };
const TENSOR_KINDS = ["bool", "int64", "float32"]; // each can hold what those before it hold

export const isTensor = (value) => value !== null && typeof value === "object" && "data" in value;

export const formatShape = (shape) => `[${shape.join(", ")}]`;

export const sizeOf = (shape) => shape.reduce((size, length) => size * length, 1);

// The same numbers in another shape: they share their memory.
export function reshaped(tensor, shape) {
  if (sizeOf(shape) !== sizeOf(tensor.shape)) {
    throw new Error(
      `${formatShape(tensor.shape)} has ${sizeOf(tensor.shape)} numbers, ${formatShape(shape)} another count`,
    );
  }
  return { shape, dtype: tensor.dtype, data: tensor.data };
}

// A number from the front for an axis that may be counted from the back. A tensor of no axes has an axis 0 in torch.
export function axisOf(rank, axis) {
  const most = Math.max(rank, 1);
  if (!(axis >= -most && axis < most)) throw new Error(`there is no axis ${axis} among ${rank}`);
  return axis < 0 ? axis + most : axis;
}

// All axes for null or none.
export function axesOf(rank, axes) {
  const asked = axes === null || axes === undefined || axes.length === 0 ? null : [].concat(axes);
  const found = asked ? asked.map((axis) => axisOf(rank, axis)) : [...Array(rank).keys()];
  if (new Set(found).size !== found.length) throw new Error(`an axis is named twice: ${found.join(", ")}`);
  return found.sort((one, other) => one - other);
}

export function stridesOf(shape) {
  const strides = Array(shape.length);
  for (let axis = shape.length - 1, step = 1; axis >= 0; step *= shape[axis--]) strides[axis] = step;
  return strides;
}

// The shape that all of these stretch to.
export function broadcastShape(...shapes) {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    const lengths = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1);
    const length = lengths.find((one) => one !== 1) ?? 1;
    if (lengths.some((one) => one !== 1 && one !== length)) {
      throw new Error(`${shapes.map(formatShape).join(" and ")} do not fit each other`);
    }
    return length;
  });
}

// The strides with which a tensor of one shape is read as if it had another: 0 along axes that it is repeated over.
export function stridesTo(shape, target) {
  const lead = target.length - shape.length;
  const strides = stridesOf(shape);
  return target.map((length, axis) => {
    const own = axis < lead ? 1 : shape[axis - lead];
    if (lead < 0 || (own !== 1 && own !== length))
      throw new Error(`${formatShape(shape)} cannot stretch to ${formatShape(target)}`);
    return own === 1 ? 0 : strides[axis - lead];
  });
}

// The same walk with as few axes as can be: neighbours that every operand reads in one stretch become one.
function fewerAxes(shape, strides) {
  const sizes = [1];
  const steps = strides.map(() => [0]);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] === 1) continue;
    const first = steps.every((own, k) => strides[k][axis] === own[0] * sizes[0]);
    if (sizes[0] === 1 || first) {
      if (sizes[0] === 1) steps.forEach((own, k) => (own[0] = strides[k][axis]));
      sizes[0] *= shape[axis];
    } else {
      sizes.unshift(shape[axis]);
      steps.forEach((own, k) => own.unshift(strides[k][axis]));
    }
  }
  return { sizes, steps };
}

// Call `row(places, steps, done, length)` for each stretch along the last axis: where each operand stands, how far it
// steps, how many cells came before.
export function walk(shape, strides, row) {
  if (shape.includes(0)) return;
  const { sizes, steps } = fewerAxes(shape, strides);
  const last = sizes.length - 1;
  const inner = steps.map((own) => own[last]);
  const places = steps.map(() => 0);
  const at = Array(last).fill(0);
  for (let done = 0; ; done += sizes[last]) {
    row(places, inner, done, sizes[last]);
    let axis = last - 1;
    for (; axis >= 0; axis--) {
      for (let k = 0; k < places.length; k++) places[k] += steps[k][axis];
      if (++at[axis] < sizes[axis]) break;
      for (let k = 0; k < places.length; k++) places[k] -= steps[k][axis] * sizes[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// Copy cells of `source` to cells of `target`: each a { data, strides, start }.
export function moveCells(shape, source, target) {
  const { data: from, start: first = 0 } = source;
  const { data: to, start: begin = 0 } = target;
  walk(shape, [source.strides, target.strides], ([i, j], [di, dj], _, length) => {
    if (di === 1 && dj === 1 && length > 16) {
      to.set(from.subarray(first + i, first + i + length), begin + j);
    } else {
      for (let k = 0, a = first + i, b = begin + j; k < length; k++, a += di, b += dj) to[b] = from[a];
    }
  });
}

/** @type {Operation} The tensor that is read out of another with these strides. */
export function gathered(machine, tensor, shape, strides, start = 0) {
  const out = machine.empty(shape, tensor.dtype);
  moveCells(shape, { data: tensor.data, strides, start }, { data: out.data, strides: stridesOf(shape) });
  return out;
}

/** @type {Operation} */
export function expanded(machine, tensor, shape) {
  if (sizeOf(shape) === sizeOf(tensor.shape) && shape.length >= tensor.shape.length) {
    stridesTo(tensor.shape, shape);
    return reshaped(tensor, shape);
  }
  return gathered(machine, tensor, shape, stridesTo(tensor.shape, shape));
}

/** @type {Operation} */
export function permuted(machine, tensor, order) {
  const shape = order.map((axis) => tensor.shape[axis]);
  const long = order.filter((axis) => tensor.shape[axis] !== 1);
  if (long.every((axis, i) => i === 0 || long[i - 1] < axis)) return reshaped(tensor, shape); // nothing moves
  const strides = stridesOf(tensor.shape);
  const transposed = order.map((axis) => strides[axis]);
  return gathered(machine, tensor, shape, transposed);
}

/** @type {Operation} One axis brought to the back, `work` done on what comes of it, and the axis brought home again. */
export function along(machine, tensor, axis, work) {
  const rank = tensor.shape.length;
  const place = axisOf(rank, axis);
  if (rank === 0) return [].concat(work(reshaped(tensor, [1]))).map((done) => reshaped(done, []));
  const order = [...Array(rank).keys()].filter((other) => other !== place).concat(place);
  const back = order.map((_, axis) => order.indexOf(axis));
  return [].concat(work(permuted(machine, tensor, order))).map((done) => permuted(machine, done, back));
}

export function dtypeOf(dtype) {
  if (dtype in TENSOR_ARRAYS) return dtype;
  if (/^b?float|^double|^half/.test(dtype)) return "float32";
  if (/^u?int|^long|^short/.test(dtype)) return "int64";
  throw new Error(`there are no tensors of ${dtype} here`);
}

/**
 * The kind that torch gives the result: the widest. The step's own kind tells of a 2 whether Python had written 2.0.
 * @type {Operation}
 */
export function promoted(machine, ...values) {
  const dtypeOfValue = (value) => {
    if (isTensor(value)) return value.dtype;
    if (typeof value === "boolean") return "bool";
    return Number.isInteger(value) && machine.node?.dtype?.[0] !== "float32" ? "int64" : "float32";
  };
  const kinds = values.filter((value) => value !== null).map(dtypeOfValue);
  return TENSOR_KINDS[Math.max(...kinds.map((kind) => TENSOR_KINDS.indexOf(kind)))];
}

/** @type {Operation} */
export function cast(machine, tensor, dtype) {
  const kind = dtype ? dtypeOf(dtype) : tensor.dtype;
  if (kind === tensor.dtype) return tensor;
  const out = machine.empty(tensor.shape, kind);
  if (kind === "bool") for (let i = 0; i < out.data.length; i++) out.data[i] = tensor.data[i] === 0 ? 0 : 1;
  else out.data.set(tensor.data);
  return out;
}

/** @type {Operation} */
export function filled(machine, shape, value, dtype) {
  const out = machine.empty(shape, dtype);
  out.data.fill(dtype === "bool" ? (value ? 1 : 0) : value);
  return out;
}

// A tensor for a number: of no axes.
export function asTensor(value, dtype) {
  return isTensor(value) ? value : { shape: [], dtype, data: TENSOR_ARRAYS[dtype].of(Number(value)) };
}

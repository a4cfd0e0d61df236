// Normalization over rows, groups of channels and batches.

/** @import { Operation, Tensor } from "../types.js" */

import { formatShape, sizeOf } from "./shape-utils.js";
import { reshape } from "./tensors.js";
import { total } from "./reducing.js";
import { BINARY } from "./binary.js";
import { UNARY } from "./unary.js";

const FLOAT32_EPSILON = 2 ** -23;

/** @type {Operation} Scale each row of `length` numbers to variance 1 and mean 0, then by weight and bias. */
function normalize(interpreter, tensor, length, epsilon, weight, bias, centered = true) {
  const out = interpreter.empty(tensor.shape);
  const { data } = tensor;
  const to = out.data;
  const scales = weight?.data ?? new Float32Array(length).fill(1);
  const shifts = bias?.data ?? new Float32Array(length);
  for (let start = 0; start < data.length; start += length) {
    const end = start + length;
    const mean = centered ? total(data, start, end) / length : 0;
    let squares = 0;
    for (let i = start; i < end; i++) squares += (data[i] - mean) * (data[i] - mean);
    const factor = 1 / Math.sqrt(squares / length + epsilon);
    for (let i = 0; i < length; i++) to[start + i] = (data[start + i] - mean) * factor * scales[i] + shifts[i];
  }
  return out;
}

/** @type {(tensor: Tensor, lengths: number[]) => number} */
function tailSize({ shape }, lengths) {
  if (formatShape(shape.slice(shape.length - lengths.length)) !== formatShape(lengths))
    throw new Error(`${formatShape(shape)} does not end in ${formatShape(lengths)}`);
  return sizeOf(lengths);
}

/** @type {Operation} Scale and shift channels, the second axis. */
function affine(interpreter, tensor, weight, bias) {
  const shape = [-1, ...Array(tensor.shape.length - 2).fill(1)];
  const scaled = weight ? BINARY["mul.Tensor"](interpreter, tensor, reshape(weight, shape)) : tensor;
  return bias ? BINARY["add.Tensor"](interpreter, scaled, reshape(bias, shape)) : scaled;
}

/** @type {Operation} */
function groupNorm(interpreter, tensor, groups, weight = null, bias = null, epsilon = 1e-5) {
  const [batch, channels] = tensor.shape;
  if (channels % groups) throw new Error(`${channels} channels do not make ${groups} groups`);
  const normalized = normalize(interpreter, tensor, tensor.data.length / (batch * groups) || 0, epsilon, null, null);
  return affine(interpreter, normalized, weight, bias);
}

/** @type {Operation} */
function batchNorm(interpreter, tensor, weight, bias, means, variances, epsilon) {
  const factors = UNARY.rsqrt(interpreter, BINARY["add.Scalar"](interpreter, variances, epsilon));
  const shifts = UNARY.neg(interpreter, BINARY["mul.Tensor"](interpreter, means, factors));
  return affine(interpreter, affine(interpreter, tensor, factors, shifts), weight, bias);
}

/** @type {Record<string, Operation>} */
export const NORMALIZATION = {
  layer_norm: (interpreter, tensor, lengths, weight, bias, epsilon = 1e-5) =>
    normalize(interpreter, tensor, tailSize(tensor, lengths), epsilon, weight, bias),
  rms_norm: (interpreter, tensor, lengths, weight, epsilon = null) =>
    normalize(interpreter, tensor, tailSize(tensor, lengths), epsilon ?? FLOAT32_EPSILON, weight, null, false),
  group_norm: groupNorm,
  instance_norm: (interpreter, tensor, weight, bias, means, variances, fromInput, momentum, epsilon) =>
    fromInput
      ? groupNorm(interpreter, tensor, tensor.shape[1], weight, bias, epsilon)
      : batchNorm(interpreter, tensor, weight, bias, means, variances, epsilon),
  batch_norm: (interpreter, tensor, weight, bias, means, variances, training, momentum, epsilon) =>
    batchNorm(interpreter, tensor, weight, bias, means, variances, epsilon),
  _native_batch_norm_legit_no_training: (interpreter, tensor, weight, bias, means, variances, momentum, epsilon) => [
    batchNorm(interpreter, tensor, weight, bias, means, variances, epsilon),
    interpreter.empty([0]),
    interpreter.empty([0]),
  ],
};

// Norms.

/** @import { Operation } from "../types.d.ts" */

import { reshaped, formatShape, sizeOf } from "./tensors.js";
import { PAIRS } from "./elementwise.js";
import { FUNCTIONS } from "./functions.js";

/** @type {Operation} Each row of `length` numbers to mean 0 and variance 1, then by the weights of its cells. */
function normed(machine, tensor, length, epsilon, weight, bias) {
  const out = machine.empty(tensor.shape, "float32");
  const { data } = tensor;
  const to = out.data;
  const scales = weight?.data ?? new Float32Array(length).fill(1);
  const shifts = bias?.data ?? new Float32Array(length);
  for (let start = 0; length && start < data.length; start += length) {
    let sum = 0;
    for (let i = start; i < start + length; i++) sum += data[i];
    const mean = sum / length;
    let squares = 0;
    for (let i = start; i < start + length; i++) squares += (data[i] - mean) * (data[i] - mean);
    const factor = 1 / Math.sqrt(squares / length + epsilon);
    for (let i = 0; i < length; i++) to[start + i] = (data[start + i] - mean) * factor * scales[i] + shifts[i];
  }
  return out;
}

function expectTail(tensor, lengths) {
  const tail = tensor.shape.slice(tensor.shape.length - lengths.length);
  if (formatShape(tail) !== formatShape(lengths))
    throw new Error(`${formatShape(tensor.shape)} does not end in ${formatShape(lengths)}`);
}

/** @type {Operation} */
function layerNorm(machine, tensor, lengths, weight = null, bias = null, epsilon = 1e-5) {
  expectTail(tensor, lengths);
  return normed(machine, tensor, sizeOf(lengths), epsilon, weight, bias);
}

/** @type {Operation} */
function rmsNorm(machine, tensor, lengths, weight = null, epsilon = null) {
  expectTail(tensor, lengths);
  const length = sizeOf(lengths);
  const out = machine.empty(tensor.shape, "float32");
  for (let start = 0; start < out.data.length; start += length) {
    let squares = 0;
    for (let i = start; i < start + length; i++) squares += tensor.data[i] * tensor.data[i];
    const factor = 1 / Math.sqrt(squares / length + (epsilon ?? 1.1920929e-7));
    for (let i = 0; i < length; i++)
      out.data[start + i] = tensor.data[start + i] * factor * (weight ? weight.data[i] : 1);
  }
  return out;
}

/** @type {Operation} Weights of channels, the second axis. */
function channelwise(machine, tensor, weight, bias) {
  const tall = (one) => reshaped(one, [one.shape[0], ...Array(tensor.shape.length - 2).fill(1)]);
  const scaled = weight ? PAIRS["mul.Tensor"](machine, tensor, tall(weight)) : tensor;
  return bias ? PAIRS["add.Tensor"](machine, scaled, tall(bias)) : scaled;
}

/** @type {Operation} */
function groupNorm(machine, tensor, groups, weight = null, bias = null, epsilon = 1e-5) {
  const [batch, channels] = tensor.shape;
  if (channels % groups) throw new Error(`${channels} channels do not make ${groups} groups`);
  const out = normed(machine, tensor, tensor.data.length / (batch * groups) || 0, epsilon, null, null);
  return channelwise(machine, out, weight, bias);
}

/** @type {Operation} */
function batchNorm(machine, tensor, weight, bias, means, variances, epsilon) {
  const factors = FUNCTIONS.rsqrt(machine, PAIRS["add.Scalar"](machine, variances, epsilon));
  const shift = PAIRS["mul.Tensor"](machine, means, factors);
  const standard = channelwise(machine, tensor, factors, FUNCTIONS.neg(machine, shift));
  return channelwise(machine, standard, weight, bias);
}

/** @type {Record<string, Operation>} */
export const LAYERS = {
  layer_norm: layerNorm,
  rms_norm: rmsNorm,
  group_norm: groupNorm,
  instance_norm: (machine, tensor, weight, bias, means, variances, own, momentum, epsilon) =>
    own
      ? groupNorm(machine, tensor, tensor.shape[1], weight, bias, epsilon)
      : batchNorm(machine, tensor, weight, bias, means, variances, epsilon),
  batch_norm: (machine, tensor, weight, bias, means, variances, training, momentum, epsilon) =>
    batchNorm(machine, tensor, weight, bias, means, variances, epsilon),
  _native_batch_norm_legit_no_training: (machine, tensor, weight, bias, means, variances, momentum, epsilon) => [
    batchNorm(machine, tensor, weight, bias, means, variances, epsilon),
    machine.empty([0], "float32"),
    machine.empty([0], "float32"),
  ],
};

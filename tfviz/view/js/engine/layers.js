// Layers: norms, convolutions, pools, losses.

import { reshaped, formatShape, sizeOf } from "./tensors.js";
import { PAIRS } from "./elementwise.js";
import { FUNCTIONS } from "./functions.js";
import { REDUCING } from "./reducing.js";
import { SCANNING } from "./scanning.js";

// Each row of `length` numbers to mean 0 and variance 1, then by the weights of its cells; and means, 1 / deviations.
function normed(machine, tensor, length, epsilon, weight, bias) {
  const out = machine.empty(tensor.shape, "float32");
  const rows = length ? tensor.data.length / length : 0;
  const [means, inverse] = [new Float32Array(rows), new Float32Array(rows)];
  const { data } = tensor;
  const to = out.data;
  const scales = weight?.data ?? new Float32Array(length).fill(1);
  const shifts = bias?.data ?? new Float32Array(length);
  for (let row = 0, start = 0; row < rows; row++, start += length) {
    let sum = 0;
    for (let i = start; i < start + length; i++) sum += data[i];
    const mean = sum / length;
    let squares = 0;
    for (let i = start; i < start + length; i++) squares += (data[i] - mean) * (data[i] - mean);
    const factor = 1 / Math.sqrt(squares / length + epsilon);
    [means[row], inverse[row]] = [mean, factor];
    for (let i = 0; i < length; i++) to[start + i] = (data[start + i] - mean) * factor * scales[i] + shifts[i];
  }
  return { out, means, inverse };
}

function expectTail(tensor, lengths) {
  const tail = tensor.shape.slice(tensor.shape.length - lengths.length);
  if (formatShape(tail) !== formatShape(lengths))
    throw new Error(`${formatShape(tensor.shape)} does not end in ${formatShape(lengths)}`);
}

function layerNorm(machine, tensor, lengths, weight = null, bias = null, epsilon = 1e-5) {
  expectTail(tensor, lengths);
  return normed(machine, tensor, sizeOf(lengths), epsilon, weight, bias).out;
}

function nativeLayerNorm(machine, tensor, lengths, weight, bias, epsilon) {
  expectTail(tensor, lengths);
  const { out, means, inverse } = normed(machine, tensor, sizeOf(lengths), epsilon, weight, bias);
  const lead = tensor.shape.map((length, axis) => (axis < tensor.shape.length - lengths.length ? length : 1));
  return [out, ...[means, inverse].map((data) => ({ shape: lead, dtype: "float32", data }))];
}

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

// Weights of channels, the second axis.
function channelwise(machine, tensor, weight, bias) {
  const tall = (one) => reshaped(one, [one.shape[0], ...Array(tensor.shape.length - 2).fill(1)]);
  const scaled = weight ? PAIRS["mul.Tensor"](machine, tensor, tall(weight)) : tensor;
  return bias ? PAIRS["add.Tensor"](machine, scaled, tall(bias)) : scaled;
}

function groupNorm(machine, tensor, groups, weight = null, bias = null, epsilon = 1e-5) {
  const [batch, channels] = tensor.shape;
  if (channels % groups) throw new Error(`${channels} channels do not make ${groups} groups`);
  const { out } = normed(machine, tensor, tensor.data.length / (batch * groups) || 0, epsilon, null, null);
  return channelwise(machine, out, weight, bias);
}

function batchNorm(machine, tensor, weight, bias, means, variances, epsilon) {
  const factors = FUNCTIONS.rsqrt(machine, PAIRS["add.Scalar"](machine, variances, epsilon));
  const shift = PAIRS["mul.Tensor"](machine, means, factors);
  const standard = channelwise(machine, tensor, factors, FUNCTIONS.neg(machine, shift));
  return channelwise(machine, standard, weight, bias);
}

// The mean over texts, their sum, or each by itself: torch's 1, 2, 0.
function loss(machine, each, reduction) {
  return reduction === 0 ? each : REDUCING[reduction === 1 ? "mean" : "sum"](machine, each);
}

// Classes along the second axis; what is `ignored` does not count.
function likelihoodLoss(machine, logs, classes, weight = null, reduction = 1, ignored = -100) {
  const many = logs.shape.length > 1;
  const [batch, count] = many ? logs.shape : [1, logs.shape[0]];
  const inner = sizeOf(logs.shape.slice(2));
  const each = machine.empty(classes.shape, "float32");
  let mass = 0;
  for (let i = 0; i < batch * inner; i++) {
    const right = classes.data[i];
    if (right !== ignored && !(right >= 0 && right < count)) throw new Error(`${right} is none of ${count} classes`);
    const factor = right === ignored ? 0 : (weight?.data[right] ?? 1);
    mass += factor;
    each.data[i] = factor && -factor * logs.data[(Math.floor(i / inner) * count + right) * inner + (i % inner)];
  }
  if (reduction !== 1) return loss(machine, each, reduction);
  return PAIRS["div.Scalar"](machine, REDUCING.sum(machine, each), mass);
}

function crossEntropy(machine, scores, classes, weight = null, reduction = 1, ignored = -100, smoothing = 0) {
  if (smoothing) throw new Error("label smoothing is not known here");
  const logs = SCANNING["log_softmax.int"](machine, scores, scores.shape.length > 1 ? 1 : 0);
  if (classes.dtype !== "float32") return likelihoodLoss(machine, logs, classes, weight, reduction, ignored);
  const each = REDUCING["sum.dim_IntList"](machine, PAIRS["mul.Tensor"](machine, logs, classes), [
    logs.shape.length > 1 ? 1 : 0,
  ]);
  return loss(machine, FUNCTIONS.neg(machine, each), reduction);
}

function squaredLoss(machine, one, other, reduction = 1) {
  return loss(machine, FUNCTIONS.square(machine, PAIRS["sub.Tensor"](machine, one, other)), reduction);
}

function divergence(machine, logs, target, reduction = 1, logTarget = false) {
  const shares = logTarget ? FUNCTIONS.exp(machine, target) : target;
  const gap = PAIRS["xlogy.Tensor"](machine, shares, shares);
  return loss(machine, PAIRS["sub.Tensor"](machine, gap, PAIRS["mul.Tensor"](machine, shares, logs)), reduction);
}

export const LAYERS = {
  layer_norm: layerNorm,
  native_layer_norm: nativeLayerNorm,
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
  cross_entropy_loss: crossEntropy,
  nll_loss_nd: likelihoodLoss,
  mse_loss: squaredLoss,
  kl_div: divergence,
};

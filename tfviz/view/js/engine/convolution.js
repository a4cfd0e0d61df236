// Convolutions and pooling over images [batch, channel, height, width]. Those over texts are computed as images of
// height 1.

/** @import { Operation, Tensor } from "../types.js" */
/** @typedef {{ kernel: number[], stride: number[], padding: number[], dilation: number[], shape: number[] }} Windows */

import { asArray, formatShape } from "./shape-utils.js";
import { isTensor, reshape } from "./tensors.js";
import { BINARY } from "./binary.js";

/** @type {(value: any, missing: number[]) => number[]} A number for both axes, or one for each. */
function pairOf(value, missing) {
  const numbers = asArray(value ?? []);
  return numbers.length ? [numbers[0], numbers[numbers.length - 1]] : missing;
}

/** @type {(input: number[], kernel: number[], stride: any, padding: any, dilation: any, ceil?: boolean) => Windows} */
function slide(input, kernel, stride, padding, dilation, ceil = false) {
  const [steps, gaps] = [pairOf(stride, [1, 1]), pairOf(dilation, [1, 1])];
  const margins = marginsOf(padding, kernel, gaps);
  const shape = [0, 1].map((axis) => {
    const [length, step, margin] = [input[input.length - 2 + axis], steps[axis], margins[axis]];
    const moves = (length + 2 * margin - gaps[axis] * (kernel[axis] - 1) - 1) / step;
    const count = (ceil ? Math.ceil(moves) : Math.floor(moves)) + 1;
    return ceil && (count - 1) * step >= length + margin ? count - 1 : count; // the last window begins inside
  });
  if (!shape.every((count) => count > 0))
    throw new Error(`a window of ${formatShape(kernel)} is larger than ${formatShape(input)}`);
  return { kernel, stride: steps, padding: margins, dilation: gaps, shape };
}

/** @type {(padding: any, kernel: number[], dilation: number[]) => number[]} torch also takes "valid" and "same". */
function marginsOf(padding, kernel, dilation) {
  if (padding === "valid") return [0, 0];
  if (padding !== "same") return pairOf(padding, [0, 0]);
  const margins = kernel.map((size, axis) => (dilation[axis] * (size - 1)) / 2);
  if (!margins.every(Number.isInteger))
    throw new Error(`a kernel of ${formatShape(kernel)} has no middle for the padding "same"`);
  return margins;
}

/** @type {Operation} */
function convolve(interpreter, tensor, weight, bias = null, stride = 1, padding = 0, dilation = 1, groups = 1) {
  const [batch, channels, height, width] = tensor.shape;
  const [filters, depth, ...kernel] = weight.shape;
  if (tensor.shape.length !== 4 || kernel.length !== 2 || channels !== depth * groups || filters % groups) {
    const shapes = `${formatShape(weight.shape)} does not fit ${formatShape(tensor.shape)}`;
    throw new Error(`the weight ${shapes} in ${groups} groups`);
  }
  const windows = slide(tensor.shape, kernel, stride, padding, dilation);
  const out = interpreter.empty([batch, filters, ...windows.shape]);
  const area = windows.shape[0] * windows.shape[1];
  const sizes = { rows: filters / groups, inner: depth * kernel[0] * kernel[1], columns: area };
  const patches = new Float32Array(sizes.inner * area);
  for (let block = 0; block < batch * groups; block++) {
    im2col(tensor.data.subarray(block * depth * height * width), [height, width], windows, patches);
    const first = (block % groups) * sizes.rows;
    const filter = weight.data.subarray(first * sizes.inner, (first + sizes.rows) * sizes.inner);
    const target = out.data.subarray(block * sizes.rows * area, (block + 1) * sizes.rows * area);
    interpreter.matmulKernel.matmul(filter, patches, sizes, target);
  }
  return bias ? BINARY["add.Tensor"](interpreter, out, reshape(bias, [filters, 1, 1])) : out;
}

/**
 * Write what each cell of the kernel covers, one row for each cell: [channel * height * width of the kernel, window].
 * @type {(channels: Float32Array, size: number[], windows: Windows, patches: Float32Array) => void}
 */
function im2col(channels, [height, width], { kernel: [rows, columns], stride, padding, dilation, shape }, patches) {
  const [down, right] = stride;
  for (let cell = 0, to = 0; to < patches.length; cell++) {
    const left = (cell % columns) * dilation[1] - padding[1];
    const top = (Math.floor(cell / columns) % rows) * dilation[0] - padding[0];
    const channel = Math.floor(cell / (rows * columns)) * height * width;
    for (let y = top; y < top + shape[0] * down; y += down) {
      for (let x = left; x < left + shape[1] * right; x += right) {
        const inside = y >= 0 && y < height && x >= 0 && x < width;
        patches[to++] = inside ? channels[channel + y * width + x] : 0;
      }
    }
  }
}

/**
 * Reduce what each window covers. `size` includes the padding.
 * @type {(reduction: (values: number[], size: number) => number, ...args: Parameters<Operation>) => any}
 */
function pool(reduction, interpreter, tensor, size, stride, padding, dilation, ceil) {
  const [height, width] = tensor.shape.slice(-2);
  const kernel = pairOf(size, [1, 1]);
  const windows = slide(tensor.shape, kernel, pairOf(stride, kernel), padding, dilation, ceil);
  const [rows, columns] = windows.shape;
  const [spanY, spanX] = kernel.map((length, axis) => length * windows.dilation[axis]);
  const out = interpreter.empty([...tensor.shape.slice(0, -2), rows, columns], tensor.dtype);
  for (let i = 0; i < out.data.length; i++) {
    const left = (i % columns) * windows.stride[1] - windows.padding[1];
    const top = (Math.floor(i / columns) % rows) * windows.stride[0] - windows.padding[0];
    const channel = Math.floor(i / (rows * columns)) * height * width;
    const values = [];
    for (let y = top; y < top + spanY; y += windows.dilation[0]) {
      for (let x = left; x < left + spanX; x += windows.dilation[1]) {
        if (y >= 0 && y < height && x >= 0 && x < width) values.push(tensor.data[channel + y * width + x]);
      }
    }
    const bottom = Math.min(top + kernel[0], height + windows.padding[0]);
    const right = Math.min(left + kernel[1], width + windows.padding[1]);
    out.data[i] = reduction(values, (bottom - top) * (right - left));
  }
  return out;
}

/** @type {Operation} */
const maxPool = (interpreter, tensor, size, stride, padding, dilation, ceil) =>
  pool((values) => Math.max(...values), interpreter, tensor, size, stride, padding, dilation, ceil);

/** @type {Operation} */
function averagePool(interpreter, tensor, size, stride, padding, ceil, countPadding = true, divisor = null) {
  /** @type {(values: number[], size: number) => number} */
  const average = (values, area) =>
    values.reduce((sum, value) => sum + value, 0) / (divisor ?? (countPadding ? area : values.length));
  return pool(average, interpreter, tensor, size, stride, padding, 1, ceil);
}

/** @type {(text: Tensor) => Tensor} [..., length] as [..., 1, length] */
const addHeight = ({ shape, ...rest }) => ({ ...rest, shape: [...shape.slice(0, -1), 1, ...shape.slice(-1)] });

/**
 * Make an operation on texts from one on images. `heights`: each argument's value for the height; null leaves the
 * argument as it is.
 * @type {(operation: Operation, heights: (number | null)[]) => Operation}
 */
const oneDimensional =
  (operation, heights) =>
  (interpreter, ...args) => {
    const images = args.map((value, i) => {
      const height = heights[i];
      if (height === null || height === undefined || typeof value === "string") return value;
      if (isTensor(value)) return addHeight(value);
      const lengths = asArray(value ?? []);
      return lengths.length ? [height, ...lengths] : [];
    });
    const { shape, ...rest } = operation(interpreter, ...images);
    return { ...rest, shape: [...shape.slice(0, -2), ...shape.slice(-1)] };
  };

const convolveText = oneDimensional(convolve, [1, 1, null, 1, 0, 1]);

/** @type {Record<string, Operation>} */
export const CONVOLUTION = {
  conv1d: convolveText,
  "conv1d.padding": convolveText,
  conv2d: convolve,
  "conv2d.padding": convolve,
  max_pool1d: oneDimensional(maxPool, [1, 1, 1, 0, 1]),
  max_pool2d: maxPool,
  avg_pool1d: oneDimensional(averagePool, [1, 1, 1, 0]),
  avg_pool2d: averagePool,
};

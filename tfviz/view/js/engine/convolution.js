// Operations that go over an image or a text with a window: convolutions and pools. A text is an image of height 1.

/** @import { Operation } from "../types.d.ts" */

import { reshaped, formatShape } from "./tensors.js";
import { PAIRS } from "./elementwise.js";

const pairOf = (value, otherwise) => {
  const given = [].concat(value ?? []);
  if (given.length === 0) return otherwise;
  return given.length === 1 ? [given[0], given[0]] : given;
};

// How many places a window has along an axis.
const placesAlong = (length, size, step, margin, gap, up = false) => {
  const count = (up ? Math.ceil : Math.floor)((length + 2 * margin - gap * (size - 1) - 1) / step) + 1;
  return up && (count - 1) * step >= length + margin ? count - 1 : count; // the last one begins inside
};

/** @type {Operation} */
function convolve(machine, tensor, weight, bias = null, stride = [1, 1], margin = [0, 0], gap = [1, 1], groups = 1) {
  const [batch, channels, height, width] = tensor.shape;
  const [made, depth, rows, columns] = weight.shape;
  if (tensor.shape.length !== 4 || weight.shape.length !== 4 || channels !== depth * groups || made % groups) {
    throw new Error(
      `the kernel ${formatShape(weight.shape)} does not fit ${formatShape(tensor.shape)} in ${groups} groups`,
    );
  }
  const [[down, right], [gapDown, gapRight]] = [pairOf(stride, [1, 1]), pairOf(gap, [1, 1])];
  const [top, left] = margins(margin, [rows, columns], [gapDown, gapRight]);
  const tall = placesAlong(height, rows, down, top, gapDown);
  const wide = placesAlong(width, columns, right, left, gapRight);
  if (tall < 0 || wide < 0)
    throw new Error(`the kernel ${formatShape(weight.shape)} is larger than ${formatShape(tensor.shape)}`);
  const out = machine.empty([batch, made, tall, wide], "float32");
  const [area, cells] = [tall * wide, depth * rows * columns];
  const patches = new Float32Array(cells * area);
  const each = made / groups;
  for (let block = 0; block < batch * groups; block++) {
    const from = tensor.data.subarray(block * depth * height * width, (block + 1) * depth * height * width);
    for (let cell = 0, to = 0; cell < cells; cell++) {
      const column = (cell % columns) * gapRight - left;
      const row = (Math.floor(cell / columns) % rows) * gapDown - top;
      const plane = Math.floor(cell / (rows * columns)) * height * width;
      for (let y = row; y < row + tall * down; y += down) {
        for (let x = column; x < column + wide * right; x += right) {
          const inside = y >= 0 && y < height && x >= 0 && x < width;
          patches[to++] = inside ? from[plane + y * width + x] : 0;
        }
      }
    }
    const first = (block % groups) * each;
    const kernel = weight.data.subarray(first * cells, (first + each) * cells);
    const target = out.data.subarray(block * each * area, (block + 1) * each * area);
    machine.products.multiply(kernel, patches, each, cells, area, target);
  }
  return bias ? PAIRS["add.Tensor"](machine, out, reshaped(bias, [made, 1, 1])) : out;
}

// torch also takes the words "valid", none, and "same", so many that the size stays.
function margins(margin, sizes, gaps) {
  if (margin === "valid") return [0, 0];
  if (margin !== "same") return pairOf(margin, [0, 0]);
  const both = sizes.map((size, i) => gaps[i] * (size - 1));
  if (both.some((length) => length % 2)) throw new Error(`a kernel of ${formatShape(sizes)} has no middle for "same"`);
  return both.map((length) => length / 2);
}

// What is known of images, for texts: [..., length] as [..., 1, length]. Numbers for one axis get one for the other.
const flatImage = (tensor) =>
  reshaped(tensor, [...tensor.shape.slice(0, -1), 1, tensor.shape[tensor.shape.length - 1]]);
const flatText = (tensor) => reshaped(tensor, [...tensor.shape.slice(0, -2), tensor.shape[tensor.shape.length - 1]]);
/** @type {(value: any, other: number) => any} */
const lying = (value, other) => (typeof value === "string" ? value : [other, ...[].concat(value ?? []).slice(0, 1)]);
const lyingOr = (value, other) => ([].concat(value ?? []).length ? lying(value, other) : []);

/** @type {Operation} */
function convolveText(machine, tensor, weight, bias = null, stride = [1], margin = [0], gap = [1], groups = 1) {
  if (tensor.shape.length !== 3 || weight.shape.length !== 3) {
    throw new Error(`the kernel ${formatShape(weight.shape)} does not fit ${formatShape(tensor.shape)}`);
  }
  const [image, kernel] = [flatImage(tensor), flatImage(weight)];
  return flatText(convolve(machine, image, kernel, bias, lying(stride, 1), lying(margin, 0), lying(gap, 1), groups));
}

/** @type {Operation} `of(values, size)` makes one number of those that a window sees; `size` counts the margin in. */
function pooled(machine, tensor, size, stride, margin, gap, up, of) {
  const [height, width] = tensor.shape.slice(-2);
  const [rows, columns] = pairOf(size, [1, 1]);
  const [down, right] = pairOf(stride, [rows, columns]);
  const [[top, left], [gapDown, gapRight]] = [pairOf(margin, [0, 0]), pairOf(gap, [1, 1])];
  const tall = placesAlong(height, rows, down, top, gapDown, up);
  const wide = placesAlong(width, columns, right, left, gapRight, up);
  if (!(tall > 0 && wide > 0))
    throw new Error(`a window of ${formatShape([rows, columns])} is larger than ${formatShape(tensor.shape)}`);
  const out = machine.empty([...tensor.shape.slice(0, -2), tall, wide], tensor.dtype);
  for (let i = 0; i < out.data.length; i++) {
    const x = (i % wide) * right - left;
    const y = (Math.floor(i / wide) % tall) * down - top;
    const plane = Math.floor(i / (tall * wide)) * height * width;
    const values = [];
    for (let row = y; row < y + rows * gapDown; row += gapDown) {
      for (let column = x; column < x + columns * gapRight; column += gapRight) {
        if (row >= 0 && row < height && column >= 0 && column < width)
          values.push(tensor.data[plane + row * width + column]);
      }
    }
    out.data[i] = of(values, (Math.min(y + rows, height + top) - y) * (Math.min(x + columns, width + left) - x));
  }
  return out;
}

const largest = (values) => Math.max(...values);
const average = (whole) => (values, size) =>
  values.reduce((sum, value) => sum + value, 0) / (whole ? size : values.length);

/** @type {Operation} */
function maxPool(machine, tensor, size, stride = [], margin = 0, gap = 1, up = false) {
  return pooled(machine, tensor, size, stride, margin, gap, up, largest);
}

/** @type {Operation} */
function averagePool(machine, tensor, size, stride = [], margin = 0, up = false, whole = true, divisor = null) {
  const of = divisor === null ? average(whole) : (values) => values.reduce((sum, value) => sum + value, 0) / divisor;
  return pooled(machine, tensor, size, stride, margin, 1, up, of);
}

/** @type {Operation} */
function maxPoolText(machine, tensor, size, stride = [], margin = 0, gap = 1, up = false) {
  const image = flatImage(tensor);
  return flatText(maxPool(machine, image, lying(size, 1), lyingOr(stride, 1), lying(margin, 0), lying(gap, 1), up));
}

/** @type {Operation} */
function averagePoolText(machine, tensor, size, stride = [], margin = 0, up = false, whole = true) {
  const image = flatImage(tensor);
  return flatText(averagePool(machine, image, lying(size, 1), lyingOr(stride, 1), lying(margin, 0), up, whole));
}

/** @type {Record<string, Operation>} */
export const WINDOWS = {
  conv1d: convolveText,
  "conv1d.padding": convolveText,
  conv2d: convolve,
  "conv2d.padding": convolve,
  max_pool1d: maxPoolText,
  max_pool2d: maxPool,
  avg_pool1d: averagePoolText,
  avg_pool2d: averagePool,
};

// Operations that read or write the elements that indices select.

/** @import { Operation, Tensor } from "../types.js" */

import { broadcastShape, formatShape, normalizeAxis, normalizeIndex, sizeOf, stridesOf } from "./shape-utils.js";
import { asTensor, copy, expand } from "./tensors.js";

/** @type {(id: number, count: number, name: string) => void} */
function checkId(id, count, name) {
  if (!(id >= 0 && id < count)) throw new Error(`id ${id} is out of range for ${count} ${name}`);
}

/**
 * Visit each cell of a tensor that an index names along one axis: the cell, the index's number and position.
 * @param {Tensor} tensor
 * @param {number} axis
 * @param {Tensor} index
 * @param {(cell: number, i: number, position: number[]) => void} visit
 */
function forEachIndexed(tensor, axis, index, visit) {
  const shape = tensor.shape.length ? tensor.shape : [1];
  const lengths = index.shape.length ? index.shape : [1];
  const indexed = normalizeAxis(shape.length, axis);
  if (lengths.length !== shape.length || lengths.some((length, k) => k !== indexed && length > shape[k]))
    throw new Error(`an index of ${formatShape(index.shape)} does not fit ${formatShape(tensor.shape)}`);
  const strides = stridesOf(shape);
  const position = lengths.map(() => 0);
  for (let i = 0; i < index.data.length; i++) {
    let cell = normalizeIndex(index.data[i], shape[indexed]) * strides[indexed];
    for (let k = 0; k < position.length; k++) if (k !== indexed) cell += position[k] * strides[k];
    visit(cell, i, position);
    for (let k = position.length - 1; k >= 0 && ++position[k] === lengths[k]; k--) position[k] = 0;
  }
}

/** @type {(adds: boolean) => Operation} */
const scatter = (adds) => (interpreter, tensor, axis, index, source) => {
  const out = copy(interpreter, tensor);
  const { shape, data } = asTensor(source, tensor.dtype);
  const strides = shape.length ? stridesOf(shape) : index.shape.map(() => 0);
  forEachIndexed(tensor, axis, index, (cell, _, position) => {
    const value = data[position.reduce((offset, index, k) => offset + index * strides[k], 0)];
    out.data[cell] = adds ? out.data[cell] + value : value;
  });
  return out;
};

/**
 * Turn masks among indices into the indices of their true cells, one for each axis of the mask.
 * @type {(indices: (Tensor | null)[]) => (Tensor | null)[]}
 */
function maskToIndices(indices) {
  return indices.flatMap((index) => {
    if (index === null || index.dtype !== "bool") return [index];
    const { shape, data } = index;
    const strides = stridesOf(shape);
    const cells = [...data.keys()].filter((i) => data[i]);
    return shape.map((length, axis) => ({
      shape: [cells.length],
      dtype: /** @type {const} */ ("int64"),
      data: Int32Array.from(cells, (cell) => Math.floor(cell / strides[axis]) % length),
    }));
  });
}

/** @type {Operation} What `tensor[indices]` names: the cells of the tensor, and the shape that they make. */
function indexedCells(interpreter, { shape }, list) {
  const indices = maskToIndices(list);
  if (indices.length > shape.length)
    throw new Error(`${indices.length} indices are too many for ${formatShape(shape)}`);
  const axes = [...indices.keys()].filter((axis) => indices[axis] !== null);
  const tensors = axes.map((axis) => /** @type {Tensor} */ (indices[axis]));
  const common = broadcastShape(...tensors.map((tensor) => tensor.shape));
  const strides = stridesOf(shape);
  const starts = new Float64Array(sizeOf(common));
  axes.forEach((axis, k) => {
    const { data } = expand(interpreter, tensors[k], common);
    for (let i = 0; i < starts.length; i++) starts[i] += normalizeIndex(data[i], shape[axis]) * strides[axis];
  });
  // As in NumPy: the axes of neighbouring indices stand where these were, others come first.
  const adjacent = axes.every((axis, k) => k === 0 || axes[k - 1] + 1 === axis);
  const first = adjacent ? axes[0] : 0;
  /** @type {number[]} */
  const rest = [...shape.keys()].filter((axis) => !axes.includes(axis));
  const [before, after] = [rest.filter((axis) => axis < first), rest.filter((axis) => axis >= first)];
  const [leading, trailing] = [offsets(before, shape, strides), offsets(after, shape, strides)];
  const cells = new Int32Array(leading.length * starts.length * trailing.length);
  let to = 0;
  for (const lead of leading)
    for (const start of starts) for (const trail of trailing) cells[to++] = lead + start + trail;
  const lengths = (/** @type {number[]} */ list) => list.map((axis) => shape[axis]);
  return { cells, shape: [...lengths(before), ...common, ...lengths(after)] };
}

/**
 * Return the offset of each cell of these axes, in order.
 * @type {(axes: number[], shape: number[], strides: number[]) => number[]}
 */
const offsets = (axes, shape, strides) =>
  axes.reduce(
    (starts, axis) =>
      starts.flatMap((start) => Array.from({ length: shape[axis] }, (_, i) => start + i * strides[axis])),
    [0],
  );

/** @type {Record<string, Operation>} */
export const INDEXING = {
  embedding(interpreter, table, ids) {
    const [rows, width] = table.shape;
    const out = interpreter.empty([...ids.shape, width], table.dtype);
    for (let i = 0; i < ids.data.length; i++) {
      const id = ids.data[i];
      checkId(id, rows, "embeddings");
      out.data.set(table.data.subarray(id * width, (id + 1) * width), i * width);
    }
    return out;
  },
  index_select(interpreter, tensor, axis, indices) {
    const selected = normalizeAxis(tensor.shape.length, axis);
    const length = tensor.shape[selected] ?? 1;
    const normalized = Array.from(indices.data, (index) => normalizeIndex(index, length));
    if (tensor.shape.length === 0) return tensor;
    const shape = [...tensor.shape];
    shape[selected] = normalized.length;
    const out = interpreter.empty(shape, tensor.dtype);
    const inner = sizeOf(shape.slice(selected + 1));
    const outer = sizeOf(shape.slice(0, selected));
    let to = 0;
    for (let block = 0; block < outer; block++) {
      for (const index of normalized) {
        const from = (block * length + index) * inner;
        for (let i = 0; i < inner; i++) out.data[to++] = tensor.data[from + i];
      }
    }
    return out;
  },
  gather(interpreter, tensor, axis, index) {
    const out = interpreter.empty(index.shape, tensor.dtype);
    forEachIndexed(tensor, axis, index, (cell, i) => (out.data[i] = tensor.data[cell]));
    return out;
  },
  "scatter.value": scatter(false),
  "scatter.src": scatter(false),
  scatter_add: scatter(true),
  "index.Tensor"(interpreter, tensor, indices) {
    const { cells, shape } = indexedCells(interpreter, tensor, indices);
    const out = interpreter.empty(shape, tensor.dtype);
    for (let i = 0; i < cells.length; i++) out.data[i] = tensor.data[cells[i]];
    return out;
  },
  index_put(interpreter, tensor, indices, values, accumulate = false) {
    const { cells, shape } = indexedCells(interpreter, tensor, indices);
    const out = copy(interpreter, tensor);
    const { data } = expand(interpreter, values, shape);
    for (let i = 0; i < cells.length; i++) out.data[cells[i]] = data[i] + (accumulate ? out.data[cells[i]] : 0);
    return out;
  },
  one_hot(interpreter, ids, classes = -1) {
    const count = classes === -1 ? Math.max(...ids.data) + 1 : classes;
    const out = interpreter.empty([...ids.shape, count], "int64");
    out.data.fill(0);
    for (let i = 0; i < ids.data.length; i++) {
      checkId(ids.data[i], count, "classes");
      out.data[i * count + ids.data[i]] = 1;
    }
    return out;
  },
  take(interpreter, tensor, indices) {
    const out = interpreter.empty(indices.shape, tensor.dtype);
    for (let i = 0; i < out.data.length; i++)
      out.data[i] = tensor.data[normalizeIndex(indices.data[i], tensor.data.length)];
    return out;
  },
};

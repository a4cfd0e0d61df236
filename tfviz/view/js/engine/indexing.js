// Operations that read and write where numbers say.

/** @import { Operation } from "../types.d.ts" */

import { asTensor, axisOf, broadcastShape, expanded, formatShape, sizeOf, stridesOf } from "./tensors.js";
import { taken } from "./arranging.js";

// A place counted from the front, checked.
function inside(place, length) {
  if (!(place >= -length && place < length)) throw new Error(`there is no place ${place} among ${length}`);
  return place < 0 ? place + length : place;
}

/** @type {Operation} */
function embedding(machine, table, ids) {
  const [rows, width] = table.shape;
  const out = machine.empty([...ids.shape, width], table.dtype);
  for (let i = 0; i < ids.data.length; i++) {
    if (!(ids.data[i] >= 0 && ids.data[i] < rows)) throw new Error(`there is no row ${ids.data[i]} among ${rows}`);
    const start = ids.data[i] * width;
    out.data.set(table.data.subarray(start, start + width), i * width);
  }
  return out;
}

/** @type {Operation} */
function indexSelect(machine, tensor, axis, places) {
  const place = axisOf(tensor.shape.length, axis);
  const length = tensor.shape[place] ?? 1;
  const found = Array.from(places.data, (at) => inside(at, length));
  if (tensor.shape.length === 0) return tensor;
  return taken(machine, tensor, place, found);
}

// Call `visit(cell, i)` for each cell that `index` points to in a tensor: along one axis by what it says.
function pointed(tensor, axis, index, visit) {
  const shape = tensor.shape.length ? tensor.shape : [1];
  const pointing = index.shape.length ? index.shape : [1];
  const place = axisOf(shape.length, axis);
  if (pointing.length !== shape.length || pointing.some((size, i) => i !== place && size > shape[i])) {
    throw new Error(`places of the shape ${formatShape(index.shape)} do not lie in ${formatShape(tensor.shape)}`);
  }
  const strides = stridesOf(shape);
  const at = pointing.map(() => 0);
  for (let i = 0; i < index.data.length; i++) {
    let cell = inside(index.data[i], shape[place]) * strides[place];
    for (let k = 0; k < at.length; k++) if (k !== place) cell += at[k] * strides[k];
    visit(cell, i, at);
    for (let k = at.length - 1; k >= 0 && ++at[k] === pointing[k]; k--) at[k] = 0;
  }
}

/** @type {Operation} */
function gather(machine, tensor, axis, index) {
  const out = machine.empty(index.shape, tensor.dtype);
  pointed(tensor, axis, index, (cell, i) => (out.data[i] = tensor.data[cell]));
  return out;
}

/** @type {(...of: any[]) => Operation} */
const scatter = (join) => (machine, tensor, axis, index, source) => {
  const out = machine.empty(tensor.shape, tensor.dtype);
  out.data.set(tensor.data);
  const from = asTensor(source, tensor.dtype);
  const strides = from.shape.length ? stridesOf(from.shape) : index.shape.map(() => 0);
  pointed(tensor, axis, index, (cell, _, at) => {
    const value = from.data[strides.reduce((sum, step, k) => sum + step * at[k], 0)];
    out.data[cell] = join(out.data[cell], value);
  });
  return out;
};
const replace = (_, value) => value;
const gain = (old, value) => old + value;

// A mask among indices stands for as many indices as it has axes: where it is true.
function numbered(indices) {
  return indices.flatMap((index) => {
    if (index === null || index.dtype !== "bool") return [index];
    const strides = stridesOf(index.shape);
    const cells = [...index.data.keys()].filter((i) => index.data[i]);
    const along = (axis) => Int32Array.from(cells, (cell) => Math.floor(cell / strides[axis]) % index.shape[axis]);
    return index.shape.map((_, axis) => ({ shape: [cells.length], dtype: "int64", data: along(axis) }));
  });
}

/** @type {Operation} What `tensor[indices]` names: the cells of the tensor, and the shape that they make. */
function cellsNamed(machine, tensor, given) {
  const indices = numbered(given);
  const { shape } = tensor;
  if (indices.length > shape.length)
    throw new Error(`${indices.length} indices are too many for ${formatShape(shape)}`);
  const used = [...indices.keys()].filter((axis) => indices[axis] !== null);
  const common = broadcastShape(...used.map((axis) => indices[axis].shape));
  const places = used.map((axis) => expanded(machine, indices[axis], common).data);
  const strides = stridesOf(shape);
  const count = sizeOf(common);
  const starts = new Float64Array(count);
  used.forEach((axis, k) => {
    for (let i = 0; i < count; i++) starts[i] += inside(places[k][i], shape[axis]) * strides[axis];
  });
  // neighbouring indices stand where they were, others come first
  const together = used.every((axis, k) => k === 0 || used[k - 1] + 1 === axis);
  const first = together ? used[0] : 0;
  const rest = [...shape.keys()].filter((axis) => !used.includes(axis));
  const [before, after] = [rest.filter((axis) => axis < first), rest.filter((axis) => axis >= first)];
  const [lead, tail] = [offsets(before, shape, strides), offsets(after, shape, strides)];
  const cells = new Int32Array(lead.length * count * tail.length);
  let at = 0;
  for (const one of lead) for (const start of starts) for (const other of tail) cells[at++] = one + start + other;
  const lengths = (axes) => axes.map((axis) => shape[axis]);
  return { cells, shape: [...lengths(before), ...common, ...lengths(after)] };
}

// How far from its start each cell of these axes lies, in order.
function offsets(axes, shape, strides) {
  const next = (starts, axis) =>
    starts.flatMap((start) => Array.from({ length: shape[axis] }, (_, i) => start + i * strides[axis]));
  return axes.reduce(next, [0]);
}

/** @type {Operation} */
function index(machine, tensor, indices) {
  const { cells, shape } = cellsNamed(machine, tensor, indices);
  const out = machine.empty(shape, tensor.dtype);
  for (let i = 0; i < cells.length; i++) out.data[i] = tensor.data[cells[i]];
  return out;
}

/** @type {Operation} */
function indexPut(machine, tensor, indices, values, accumulate = false) {
  const { cells, shape } = cellsNamed(machine, tensor, indices);
  const out = machine.empty(tensor.shape, tensor.dtype);
  out.data.set(tensor.data);
  const { data } = expanded(machine, values, shape);
  for (let i = 0; i < cells.length; i++) out.data[cells[i]] = data[i] + (accumulate ? out.data[cells[i]] : 0);
  return out;
}

/** @type {Operation} */
function oneHot(machine, ids, classes = -1) {
  const count = classes === -1 ? Math.max(...ids.data) + 1 : classes;
  const out = machine.empty([...ids.shape, count], "int64");
  out.data.fill(0);
  ids.data.forEach((id, i) => {
    if (!(id >= 0 && id < count)) throw new Error(`${id} is none of ${count} classes`);
    out.data[i * count + id] = 1;
  });
  return out;
}

/** @type {Operation} */
function take(machine, tensor, places) {
  const out = machine.empty(places.shape, tensor.dtype);
  places.data.forEach((place, i) => (out.data[i] = tensor.data[inside(place, tensor.data.length)]));
  return out;
}

/** @type {Record<string, Operation>} */
export const INDEXING = {
  embedding,
  index_select: indexSelect,
  gather,
  "scatter.value": scatter(replace),
  "scatter.src": scatter(replace),
  scatter_add: scatter(gain),
  "index.Tensor": index,
  index_put: indexPut,
  one_hot: oneHot,
  take,
};

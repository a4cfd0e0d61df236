// Functions that compute shapes, strides and broadcasts, and that check axes and indices.

/** @typedef {number | number[] | null | undefined} Axes */

/** @type {<T>(value: T | T[]) => T[]} */
export const asArray = (value) => (Array.isArray(value) ? value : [value]);

/** @type {(shape: ArrayLike<number>) => string} */
export const formatShape = (shape) => `[${Array.from(shape).join(", ")}]`;

/** @type {(shape: number[]) => number} */
export const sizeOf = (shape) => shape.reduce((size, length) => size * length, 1);

/** @type {(shape: number[], size: number) => number[]} Compute the length -1 of a shape from the size of all, as `torch.reshape` does. */
export function inferShape(shape, size) {
  const known = sizeOf(shape.filter((length) => length >= 0));
  return shape.map((length) => (length < 0 ? size / known : length));
}

/** @type {(index: number, length: number) => number} An index counted from the front. */
export function normalizeIndex(index, length) {
  if (!(index >= -length && index < length))
    throw new Error(`index ${index} is out of range for a length of ${length}`);
  return index < 0 ? index + length : index;
}

/** @type {(rank: number, axis: number) => number} An axis counted from the front; torch gives a scalar an axis 0. */
export function normalizeAxis(rank, axis) {
  const count = Math.max(rank, 1);
  if (!(axis >= -count && axis < count)) throw new Error(`axis ${axis} is out of range for ${rank} axes`);
  return axis < 0 ? axis + count : axis;
}

/** @type {(rank: number, axes: Axes) => number[]} Sorted axes; all of them for null or an empty list. */
export function normalizeAxes(rank, axes) {
  const list = asArray(axes ?? []);
  if (list.length === 0) return [...Array(rank).keys()];
  const normalized = list.map((axis) => normalizeAxis(rank, axis));
  if (new Set(normalized).size !== normalized.length)
    throw new Error(`the axes ${formatShape(list)} name an axis twice`);
  return normalized.sort((left, right) => left - right);
}

/** Return the strides of a row-major tensor. @type {(shape: number[]) => number[]} */
export function stridesOf(shape) {
  const strides = Array(shape.length);
  for (let axis = shape.length - 1, stride = 1; axis >= 0; stride *= shape[axis--]) strides[axis] = stride;
  return strides;
}

/** Return the shape that several shapes are broadcast to. @type {(...shapes: number[][]) => number[]} */
export function broadcastShape(...shapes) {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    const lengths = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1);
    const broadcast = lengths.find((length) => length !== 1) ?? 1;
    if (lengths.some((length) => length !== 1 && length !== broadcast))
      throw new Error(`${shapes.map(formatShape).join(" and ")} cannot be broadcast together`);
    return broadcast;
  });
}

/**
 * Return the strides that read one shape as another: 0 where it repeats.
 * @type {(shape: number[], target: number[]) => number[]}
 */
export function broadcastStrides(shape, target) {
  const lead = target.length - shape.length;
  const strides = stridesOf(shape);
  return target.map((length, axis) => {
    const source = axis < lead ? 1 : shape[axis - lead];
    if (lead < 0 || (source !== 1 && source !== length))
      throw new Error(`${formatShape(shape)} cannot be broadcast to ${formatShape(target)}`);
    return source === 1 ? 0 : strides[axis - lead];
  });
}

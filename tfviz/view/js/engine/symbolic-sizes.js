// Functions that evaluate sizes that depend on the lengths of the inputs: a number, a name, or [operator, size, ...].

/** @import { Lengths, ProgramSpec, Size, Tensor } from "../types.js" */

/** @type {Record<string, (...parts: number[]) => number>} */
const OPERATORS = {
  "+": (...parts) => parts.reduce((sum, part) => sum + part),
  "*": (...parts) => parts.reduce((product, part) => product * part),
  "-": (left, right) => left - right,
  "//": (left, right) => Math.floor(left / right),
  "%": (left, right) => left - right * Math.floor(left / right),
  max: Math.max,
  min: Math.min,
};

/** Evaluate a size for given lengths. @type {(size: Size, lengths: Lengths) => number} */
export function evaluateSize(size, lengths) {
  if (typeof size === "number") return size;
  if (typeof size === "string") return lengths[size];
  return OPERATORS[size[0]](...size.slice(1).map((part) => evaluateSize(part, lengths)));
}

/**
 * Read the named lengths from the shapes of the inputs; throw if one does not fit.
 * @type {(spec: ProgramSpec, tensors: Tensor[]) => Lengths}
 */
export function bindLengths(spec, tensors) {
  /** @type {Lengths} */
  const lengths = {};
  spec.inputs.forEach(({ name, shape }, i) => {
    const actual = tensors[i].shape;
    const fits =
      actual.length === shape.length &&
      shape.every((size, axis) => {
        if (typeof size === "number") return size === actual[axis];
        lengths[size] ??= actual[axis];
        return lengths[size] === actual[axis];
      });
    if (!fits) throw new Error(`${name} has the shape [${actual}]; this program was made for [${shape}]`);
  });
  for (const [name, [min, max]] of Object.entries(spec.lengths))
    if (lengths[name] < min || (max !== null && lengths[name] > max))
      throw new Error(
        `there are ${lengths[name]} ${name}; this model takes ${min} to ${max ?? "any number of"} ${name}`,
      );
  return lengths;
}

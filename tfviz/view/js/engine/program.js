// The decoder that prepares an exported program of `tfviz/portable` for the interpreter.

/** @import { Argument, Dtype, Lengths, ProgramSpec, Tensor } from "../types.js" */
/** @typedef {{ shape: number[], data: ArrayLike<number> }} Input */

import { formatShape, sizeOf } from "./shape-utils.js";
import { evaluateSize } from "./symbolic-sizes.js";
import { ARRAY_TYPES } from "./tensors.js";

/** A program that is ready to run: its weights decoded, and for each step the values that are not needed after it. */
export class LoadedProgram {
  /** @param {ProgramSpec} spec @param {Tensor[]} weights */
  constructor(spec, weights) {
    this.spec = spec;
    this.weights = weights;
    this.weightArrays = new Set(weights.map(({ data }) => data));
    this.sites = spec.nodes.flatMap(({ site }) => site ?? []);
    this.expiring = expiringValues(spec);
  }
}

/** @type {(spec: ProgramSpec) => number[][]} For each step, the results that no later step and no output takes. */
function expiringValues({ inputs, weights, nodes, outputs }) {
  const first = inputs.length + weights.length;
  let count = first;
  /** @type {Map<number, number>} */
  const lastSteps = new Map();
  nodes.forEach((node, step) => {
    for (const value of valuesIn(node.args)) lastSteps.set(value, step);
    for (let i = 0; i < node.out.length; i++) lastSteps.set(count++, step);
  });
  for (const { value } of outputs) lastSteps.delete(value);
  /** @type {number[][]} */
  const expiring = nodes.map(() => []);
  for (const [value, step] of lastSteps) if (value >= first) expiring[step].push(value);
  return expiring;
}

/** @type {(argument: Argument) => number[]} */
function valuesIn(argument) {
  if (Array.isArray(argument)) return argument.flatMap(valuesIn);
  return argument !== null && typeof argument === "object" && "value" in argument ? [argument.value] : [];
}

/**
 * Replace references to values and sizes in an argument by what they refer to.
 * @type {(argument: Argument, values: Tensor[], lengths: Lengths) => any}
 */
export function decode(argument, values, lengths) {
  if (Array.isArray(argument)) return argument.map((item) => decode(item, values, lengths));
  if (argument === null || typeof argument !== "object") return argument;
  if ("value" in argument) return values[argument.value];
  return "size" in argument
    ? evaluateSize(argument.size, lengths)
    : { inf: Infinity, "-inf": -Infinity, nan: NaN }[argument.float];
}

/** Make a tensor of an input. @type {(declared: { name: string, dtype: Dtype }, input: Input | undefined) => Tensor} */
export function toTensor({ name, dtype }, input) {
  if (!input) throw new Error(`the input ${name} is missing`);
  const { shape } = input;
  const data = input.data instanceof ARRAY_TYPES[dtype] ? input.data : ARRAY_TYPES[dtype].from(input.data);
  if (data.length !== sizeOf(shape))
    throw new Error(`${name} has ${data.length} numbers, which do not fill the shape ${formatShape(shape)}`);
  return { shape, dtype, data };
}

// An interpreter of the programs that `tfviz/portable` exports.

/** @import { Dtype, Edit, Lengths, Numbers, Pattern, ProgramNode, ProgramSpec } from "../types.js" */
/** @import { RunOptions, Tensor, WeightSpec } from "../types.js" */
/** @import { MatmulKernel, StoredMatrix } from "./products.js" */
/** @import { Input } from "./program.js" */

import { applyEdits } from "./edits.js";
import { SUPPORTED_OPERATORS } from "./operations.js";
import { LoadedProgram, decode, toTensor } from "./program.js";
import { bindLengths } from "./symbolic-sizes.js";
import { asArray, sizeOf } from "./shape-utils.js";
import { ARRAY_TYPES } from "./tensors.js";
import { weightOf } from "./weights.js";

/** An interpreter with the memory that its programs share. Operations take it as their first argument. */
export class Interpreter {
  /** @type {Map<string, LoadedProgram>} */
  programs = new Map();
  /** @type {Map<string, Numbers[]>} arrays for reuse, by dtype and length */
  pool = new Map();
  /** @type {WeakMap<Numbers, StoredMatrix>} weights in the memory of `matmulKernel` */
  storedWeights = new WeakMap();
  /** @type {Map<string, Tensor>} outputs that a run keeps for the next one, such as keys and values */
  cache = new Map();

  // State of the current run:
  /** @type {Partial<ProgramNode> | null} */
  node = null;
  /** @type {Edit[]} */
  edits = [];
  /** @type {boolean | string[]} */
  capture = false;
  /** @type {Record<string, Pattern[]>} by site, in the order of the computation */
  patterns = {};
  /** @type {Set<Numbers>} */
  weightArrays = new Set();

  /** @param {MatmulKernel} matmulKernel */
  constructor(matmulKernel) {
    this.matmulKernel = matmulKernel;
  }

  /**
   * Load programs by name with the bytes of their weights. A weight that several programs share is decoded once.
   * @param {Record<string, ProgramSpec>} programs
   * @param {Uint8Array} bytes
   */
  load(programs, bytes) {
    /** @type {Map<string, Tensor>} */
    const unpacked = new Map();
    /** @type {(weight: WeightSpec) => Tensor} */
    const unpack = (weight) => {
      const key = JSON.stringify([weight.stored, weight.byte_range, weight.scale, weight.shape]);
      const tensor = unpacked.get(key) ?? weightOf(weight, bytes);
      unpacked.set(key, tensor);
      return tensor;
    };
    for (const [name, spec] of Object.entries(programs))
      this.programs.set(name, new LoadedProgram(spec, spec.weights.map(unpack)));
  }

  /**
   * Return a tensor of arbitrary numbers, to be overwritten.
   * @template {Dtype} [D="float32"]
   * @param {number[]} shape
   * @param {D} [dtype]
   * @returns {Tensor<D>}
   */
  empty(shape, dtype = /** @type {D} */ ("float32")) {
    const length = sizeOf(shape);
    const data = this.pool.get(`${dtype} ${length}`)?.pop() ?? new ARRAY_TYPES[dtype](length);
    return { shape, dtype, data: /** @type {any} */ (data) };
  }

  /** @param {Tensor[]} tensors no longer needed, whose memory `empty` reuses */
  recycle(...tensors) {
    for (const { dtype, data } of tensors) {
      const key = `${dtype} ${data.length}`;
      const arrays = this.pool.get(key);
      if (arrays) arrays.push(data);
      else this.pool.set(key, [data]);
    }
  }

  /**
   * Return a weight [out, in] in the form of `matmulKernel`, kept from its first use on; null for a result of an operation.
   * @param {Tensor<"float32">} weight
   */
  storedWeight({ data, shape }) {
    if (!this.weightArrays.has(data)) return null;
    const stored = this.storedWeights.get(data) ?? this.matmulKernel.store(data, shape[0], shape[1]);
    this.storedWeights.set(data, stored);
    return stored;
  }

  /**
   * Return the weights of an attention after edits; record them if the site is captured.
   * @param {Tensor<"float32">} weights [..., query, key]
   * @param {Tensor<"bool"> | null} allowed True where a query may attend; null: everywhere
   */
  applyHooks(weights, allowed = null) {
    const site = this.node?.site;
    if (!site) return weights;
    const edits = this.edits.filter((edit) => edit.site === site);
    const flowing = applyEdits(weights, edits);
    if (this.capture === true || (this.capture && this.capture.includes(site))) {
      const { shape, data } = flowing;
      const mask = allowed ? allowed.data.slice() : new Uint8Array(data.length).fill(1);
      (this.patterns[site] ??= []).push({ shape, data: data.slice(), allowed: mask });
    }
    return flowing;
  }

  /**
   * Run a program by name; return its outputs and the patterns that were captured.
   * @param {string} name
   * @param {Record<string, Input>} inputs
   * @param {RunOptions} options
   */
  run(name, inputs, { edits = [], capture = false, cache = [] } = {}) {
    const program = this.programs.get(name);
    if (!program) throw new Error(`there is no program ${name}; there are ${[...this.programs.keys()].join(", ")}`);
    const { spec, sites, weightArrays } = program;
    for (const { site } of edits)
      if (!sites.includes(site))
        throw new Error(`there is no attention at ${site}; there is ${sites.join(", ") || "none"}`);
    this.edits = edits;
    this.capture = capture;
    this.patterns = {};
    this.weightArrays = weightArrays;
    const tensors = spec.inputs.map((input) => toTensor(input, inputs[input.name] ?? this.cache.get(input.name)));
    const { values, references } = this.execute(program, tensors);
    /** @type {Record<string, Tensor>} */
    const outputs = {};
    for (const { name: output, value } of spec.outputs) {
      const { shape, dtype, data } = values[value];
      const shared = references.get(data) !== 1;
      references.set(data, Infinity); // it may be an output twice
      const tensor = { shape, dtype, data: shared ? data.slice() : data };
      if (cache.includes(output.split(".")[0])) this.cacheOutput(output, tensor);
      else outputs[output] = tensor;
    }
    return { outputs, patterns: this.patterns };
  }

  /**
   * Run all steps; return all values, and for each array the number of values still needed that share it.
   * @param {LoadedProgram} program
   * @param {Tensor[]} inputs
   */
  execute({ spec, weights, expiring }, inputs) {
    const lengths = bindLengths(spec, inputs);
    const values = [...inputs, ...weights];
    /** @type {Map<Numbers, number>} */
    const references = new Map(values.map(({ data }) => [data, Infinity])); // inputs and weights stay
    const count = (/** @type {Numbers} */ data, /** @type {number} */ change) => {
      const total = (references.get(data) ?? 0) + change;
      references.set(data, total);
      return total;
    };
    spec.nodes.forEach((node, step) => {
      for (const result of this.compute(node, values, lengths)) {
        values.push(result);
        count(result.data, 1);
      }
      for (const value of expiring[step]) if (count(values[value].data, -1) === 0) this.recycle(values[value]);
    });
    return { values, references };
  }

  /** @param {ProgramNode} node @param {Tensor[]} values @param {Lengths} lengths @returns {Tensor[]} */
  compute(node, values, lengths) {
    const operation = SUPPORTED_OPERATORS[node.op];
    if (!operation) throw new Error(`the engine has no operation ${node.op}`);
    this.node = node;
    return asArray(operation(this, ...node.args.map((argument) => decode(argument, values, lengths))));
  }

  /** @param {string} output @param {Tensor} tensor */
  cacheOutput(output, tensor) {
    const previous = this.cache.get(output);
    if (previous) this.recycle(previous);
    this.cache.set(output, tensor);
  }
}

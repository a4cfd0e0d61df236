// Runs programs (`tfviz/portable`): tensors are { shape, dtype, data } over typed arrays, whole and row-major.
import { edited } from "./edits.js";
import { OPERATIONS } from "./operations.js";
import { bind, sized } from "./sizes.js";
import { weightOf } from "./weights.js";

const ARRAYS = { float32: Float32Array, int64: Int32Array, bool: Uint8Array };

// A program, ready to run: its weights unpacked, and after which step each value is needed no more.
class Loaded {
  constructor(described, weights) {
    this.described = described;
    this.weights = weights;
    this.constants = new Set(this.weights.map(({ data }) => data));
    this.sites = described.nodes.map(({ pattern }) => pattern).filter(Boolean);
    this.first = described.inputs.length + this.weights.length; // the number of the first step's first result
    this.needless = lastUses(described, this.first);
  }
}

// For each step, the values that nothing after it takes.
function lastUses(described, first) {
  const last = new Map(); // value -> step
  let number = first;
  described.nodes.forEach((node, step) => {
    for (const argument of node.args) for (const value of tensorsIn(argument)) last.set(value, step);
    for (let i = 0; i < node.out.length; i++) last.set(number++, step);
  });
  for (const output of described.outputs) last.delete(output.t);
  const needless = described.nodes.map(() => []);
  for (const [value, step] of last) if (value >= first) needless[step].push(value);
  return needless;
}

function tensorsIn(argument) {
  if (Array.isArray(argument)) return argument.flatMap(tensorsIn);
  return argument && argument.t !== undefined ? [argument.t] : [];
}

export class Machine {
  constructor(products) {
    this.products = products;
    this.programs = new Map();
    this.spare = new Map(); // kind and length -> arrays to be used again
    this.stores = new WeakMap(); // weight -> the same, turned, where products keep it
    this.carried = new Map(); // name -> what a run left for the next
  }

  // Programs by name, whose weights lie in these bytes; one that several have is unpacked once.
  load(programs, bytes) {
    const unpacked = new Map();
    const once = (weight) => {
      const key = JSON.stringify([weight.stored, weight.at, weight.scale, weight.shape]);
      if (!unpacked.has(key)) unpacked.set(key, weightOf(weight, bytes));
      return unpacked.get(key);
    };
    for (const [name, described] of Object.entries(programs))
      this.programs.set(name, new Loaded(described, described.weights.map(once)));
  }

  // A tensor to be written whole: what it holds is arbitrary.
  empty(shape, dtype = "float32") {
    const length = shape.reduce((size, one) => size * one, 1);
    const free = this.spare.get(`${dtype} ${length}`);
    return { shape, dtype, data: free?.length ? free.pop() : new ARRAYS[dtype](length) };
  }

  // What an operation needed only for itself: its memory is used again.
  done(...tensors) {
    for (const { dtype, data } of tensors) {
      const key = `${dtype} ${data.length}`;
      if (!this.spare.has(key)) this.spare.set(key, []);
      this.spare.get(key).push(data);
    }
  }

  // A weight [out, in] as `products` keeps it, made once; null for what is no weight.
  kept(weight) {
    if (!this.constants.has(weight.data)) return null;
    let kept = this.stores.get(weight.data);
    if (!kept)
      this.stores.set(weight.data, (kept = this.products.store(transposed(weight), weight.shape[1], weight.shape[0])));
    return kept;
  }

  // The weights of an attention go by: seen, and changed where that was asked for.
  pattern(weights, allowed = null) {
    const site = this.node.pattern;
    if (!site) return weights;
    const flows = edited(
      this,
      weights,
      this.edits.filter((edit) => edit.site === site),
    );
    if (this.watch === true || (this.watch && this.watch.includes(site))) {
      const { shape, data } = flows;
      (this.seen[site] ??= []).push({
        shape,
        data: data.slice(),
        open: allowed ? allowed.data.slice() : new Uint8Array(data.length).fill(1),
      });
    }
    return flows;
  }

  // The outputs of a program by name, and the patterns that were watched, for inputs by name.
  // carry: outputs whose names begin so ("keys" for "keys.0") stay here, as inputs of the next run.
  /**
   * @param {string} name
   * @param {Record<string, any>} inputs
   * @param {{ edits?: import("../types.d.ts").Edit[], watch?: boolean | string[], carry?: string[] }} options
   */
  run(name, inputs, { edits = [], watch = false, carry = [] } = {}) {
    const program = this.programs.get(name);
    if (!program) throw new Error(`there is no program ${name}; there are ${[...this.programs.keys()].join(", ")}`);
    const { described, weights, needless, constants, sites } = program;
    for (const { site } of edits)
      if (!sites.includes(site))
        throw new Error(`there is no attention at ${site}; there is ${sites.join(", ") || "none"}`);
    this.edits = edits;
    this.watch = watch;
    this.constants = constants;
    this.seen = {};
    const given = described.inputs.map((declared) =>
      input(declared, inputs[declared.name] ?? this.carried.get(declared.name)),
    );
    const lengths = bind(described, given);
    const values = [...given, ...weights];
    const holders = new Map(); // array -> how many values that are still needed lie in it
    for (const value of values) holders.set(value.data, Infinity);
    described.nodes.forEach((node, step) => {
      this.node = node;
      for (const made of this.results(node, values, lengths)) {
        values.push(made);
        holders.set(made.data, (holders.get(made.data) ?? 0) + 1);
      }
      for (const value of needless[step]) this.release(values, value, holders);
    });
    const outputs = {};
    for (const { name: said, t } of described.outputs) {
      // What lies nowhere else is handed over as it is.
      const given = holders.get(values[t].data) === 1 ? values[t] : copy(values[t]);
      holders.set(values[t].data, Infinity);
      if (!carry.includes(said.split(".")[0])) outputs[said] = given;
      else {
        if (this.carried.has(said)) this.done(this.carried.get(said));
        this.carried.set(said, given);
      }
    }
    return { outputs, patterns: this.seen };
  }

  results(node, values, lengths) {
    const operation = OPERATIONS[node.op];
    if (!operation) throw new Error(`the engine has no operation ${node.op}`);
    const made = operation(this, ...node.args.map((argument) => valued(argument, values, lengths)));
    return Array.isArray(made) ? made : [made];
  }

  release(values, value, holders) {
    const { data } = values[value];
    const left = holders.get(data) - 1;
    holders.set(data, left);
    if (left === 0) this.done(values[value]);
  }
}

function valued(argument, values, lengths) {
  if (Array.isArray(argument)) return argument.map((one) => valued(one, values, lengths));
  if (argument === null || typeof argument !== "object") return argument;
  if (argument.t !== undefined) return values[argument.t];
  if (argument.s !== undefined) return sized(argument.s, lengths);
  return { inf: Infinity, "-inf": -Infinity, nan: NaN }[argument.f];
}

// An input as a tensor: a typed array or a list with its shape.
function input({ name, dtype }, given) {
  if (!given) throw new Error(`the input ${name} is missing`);
  const data = given.data instanceof ARRAYS[dtype] ? given.data : ARRAYS[dtype].from(given.data);
  if (data.length !== given.shape.reduce((size, one) => size * one, 1))
    throw new Error(`${name} has ${data.length} numbers, which do not make the shape [${given.shape}]`);
  return { shape: given.shape, dtype, data };
}

function copy({ shape, dtype, data }) {
  return { shape, dtype, data: data.slice() };
}

// [out, in] as [in, out].
function transposed({ shape: [rows, columns], data }) {
  const made = new Float32Array(data.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) made[column * rows + row] = data[row * columns + column];
  return made;
}

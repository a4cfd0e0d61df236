// The engine on numbers worked out by hand: order of equals, changes of weights, sizes, programs, and its two ends.
// tests/portable/test_operations.py compares its operations with torch.

import assert from "node:assert/strict";
import { test } from "node:test";
import { near, stub, tensor } from "./helpers.js";
import { Engine } from "../../tfviz/view/js/engine/client.js";
import { applyEdits } from "../../tfviz/view/js/engine/edits.js";
import { Interpreter } from "../../tfviz/view/js/engine/interpreter.js";
import { SUPPORTED_OPERATORS } from "../../tfviz/view/js/engine/operations.js";
import { MatmulKernel } from "../../tfviz/view/js/engine/products.js";
import { answerRequests } from "../../tfviz/view/js/engine/rpc.js";
import { bindLengths, evaluateSize } from "../../tfviz/view/js/engine/symbolic-sizes.js";
import { weightOf } from "../../tfviz/view/js/engine/weights.js";

const matmulKernel = await MatmulKernel.make();

/** What an operation gives on an interpreter of its own. @param {string} name @param {...any} given */
const run = (name, ...given) => SUPPORTED_OPERATORS[name](new Interpreter(matmulKernel), ...given);

/** @param {any} result @param {number[]} shape @param {number[]} data */
function is(result, shape, data) {
  assert.deepEqual(result.shape, shape);
  near(result.data, data);
}

test("sorted rows keep the order of equals, and NaN is the largest", () => {
  const [values, indices] = run("sort", tensor([1, 4], [2, NaN, 1, 2]), -1, false);
  near(values.data, [1, 2, 2, NaN]);
  assert.deepEqual([...indices.data], [2, 0, 3, 1]);
  const [largest, at] = run("topk", tensor([1, 4], [2, 5, 1, 2]), 2);
  near(largest.data, [5, 2]);
  assert.deepEqual([...at.data], [1, 0]);
});

// One sentence, two heads, two queries, three keys.
const WEIGHTS = [0.5, 0.3, 0.2, 0.9, 0.1, 0, 0.2, 0.2, 0.6, 0, 0, 0];
/** @param {...any} edits */
const changed = (...edits) =>
  applyEdits(
    tensor([1, 2, 2, 3], WEIGHTS),
    edits.map((edit) => ({ site: "s", ...edit })),
  ).data;
/** @param {...any} edits */
const head0 = (...edits) => changed(...edits.map((edit) => ({ head: 0, ...edit }))).subarray(0, 6);

test("a head that is switched off has no weights, the others keep theirs", () => {
  near(changed({ head: 1, kind: "zero" }), [...WEIGHTS.slice(0, 6), 0, 0, 0, 0, 0, 0]);
  near(changed({ kind: "zero" }), Array(12).fill(0));
  near(changed(), WEIGHTS);
});

test("an even head looks alike at all that it may see", () => {
  near(head0({ kind: "uniform" }), [1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2, 0]);
});

test("what a query may not see any more goes to its other keys, in their shares", () => {
  near(head0({ kind: "hide", cells: [[0, 1]] }), [5 / 7, 0, 2 / 7, 0.9, 0.1, 0]);
  near(head0({ kind: "hide", cells: [[null, 0]] }), [0, 0.6, 0.4, 0, 1, 0]);
  near(
    head0({
      kind: "hide",
      cells: [
        [1, 0],
        [1, 1],
      ],
    }),
    [0.5, 0.3, 0.2, 0, 0, 0],
  ); // nothing is left
});

test("a weight that is pinned leaves the others the rest, in their shares", () => {
  near(head0({ kind: "pin", cells: [[0, 0]], weight: 0.4 }), [0.4, 0.36, 0.24, 0.9, 0.1, 0]);
  near(head0({ kind: "pin", cells: [[0, null]], weight: 1 / 3 }), [1 / 3, 1 / 3, 1 / 3, 0.9, 0.1, 0]);
  near(changed({ head: 1, kind: "pin", cells: [[1, 0]], weight: 1 }).subarray(9), [0, 0, 0]); // it sees nothing
});

test("no row can be pinned to more than 1, or to less where there is no other key", () => {
  assert.throws(
    () =>
      head0({
        kind: "pin",
        cells: [
          [0, 0],
          [0, 1],
        ],
        weight: 0.6,
      }),
    /0.6 for 2 keys of a query is more than 1/,
  );
  assert.throws(
    () =>
      head0({
        kind: "pin",
        cells: [
          [1, 0],
          [1, 1],
        ],
        weight: 0.4,
      }),
    /sees no other to share the rest/,
  );
});

test("edits follow one another, and the weights that were given stay", () => {
  const weights = tensor([1, 1, 1, 2], [0.5, 0.5]);
  const pin = { site: "s", kind: /** @type {const} */ ("pin"), cells: stub([[0, 0]]), weight: 0.8 };
  near(applyEdits(weights, [pin, { site: "s", kind: "uniform" }]).data, [0.5, 0.5]);
  near(applyEdits(weights, [{ site: "s", kind: "uniform" }, pin]).data, [0.8, 0.2]);
  near(weights.data, [0.5, 0.5]);
});

test("a size is computed from the lengths of the inputs, as in Python", () => {
  const lengths = { words: 7, batch: 2 };
  assert.equal(evaluateSize(["//", ["+", "words", 1, "batch"], 3], lengths), 3);
  assert.equal(evaluateSize(["%", ["-", "batch", "words"], 3], lengths), 1); // -5 % 3
  assert.equal(evaluateSize(["//", -7, 2], lengths), -4);
  assert.equal(evaluateSize(["max", "words", ["*", "batch", 4]], lengths), 8);
});

test("a length is what the first input says, and all inputs have to agree", () => {
  const spec = stub({
    inputs: [
      { name: "x", shape: ["words", 2] },
      { name: "y", shape: ["words"] },
    ],
    lengths: {},
  });
  assert.deepEqual(bindLengths(spec, [tensor([3, 2], Array(6)), tensor([3], Array(3))]), { words: 3 });
  /** @param {...number[]} shapes */
  const bind = (...shapes) =>
    bindLengths(
      spec,
      shapes.map((shape) => stub({ shape })),
    );
  assert.throws(() => bind([3, 2], [4]), /y has the shape \[4\]; this program was made for \[words\]/);
  assert.throws(() => bind([3, 1], [3]), /x has the shape \[3,1\]/);
});

test("weights travel as halves, as bytes with a scale for each row, and as they are", () => {
  const bytes = new Uint8Array(28);
  new Uint16Array(bytes.buffer, 0, 4).set([0x3c00, 0xc100, 0x0001, 0x7c00]); // 1, -2.5, the smallest, infinity
  new Int8Array(bytes.buffer, 8, 4).set([127, -2, 10, 0]);
  new Float32Array(bytes.buffer, 12, 4).set([0.5, 3, 0.25, 8]);
  /** @type {(shape: number[], stored: string, start: number, length: number, scale?: number[]) => Iterable<number>} */
  const read = (shape, stored, start, length, scale) =>
    weightOf(stub({ shape, dtype: "float32", stored, byte_range: [start, length], scale }), bytes).data;
  assert.deepEqual([...read([4], "float16", 0, 8)], [1, -2.5, 2 ** -24, Infinity]);
  assert.deepEqual([...read([2, 2], "int8", 8, 4, [12, 8])], [63.5, -1, 30, 0]);
  assert.deepEqual([...read([2], "float32", 20, 8)], [0.25, 8]);
});

// relu(x @ w) of an x of any number of rows; the attention of a program is a softmax over three axes.
const PROGRAM = stub({
  inputs: [{ name: "x", shape: ["rows", 2], dtype: "float32" }],
  weights: [{ shape: [2, 2], dtype: "float32", stored: "float32", byte_range: [0, 16] }],
  nodes: [
    { op: "mm", args: [{ value: 0 }, { value: 1 }], out: [["rows", 2]], dtype: ["float32"] },
    { op: "relu", args: [{ value: 2 }], out: [["rows", 2]], dtype: ["float32"] },
  ],
  outputs: [{ name: "y", value: 3 }],
  lengths: { rows: [1, null] },
});
const ATTENDING = stub({
  inputs: [{ name: "scores", shape: [1, 1, 2], dtype: "float32" }],
  weights: [],
  nodes: [{ op: "softmax.int", args: [{ value: 0 }, -1], out: [[1, 1, 2]], dtype: ["float32"], site: "layer.pattern" }],
  outputs: [{ name: "weights", value: 1 }],
  lengths: {},
});

function loaded() {
  const interpreter = new Interpreter(matmulKernel);
  interpreter.load({ layer: PROGRAM, attention: ATTENDING }, new Uint8Array(Float32Array.of(1, -1, 0, 2).buffer));
  return interpreter;
}

test("a program runs on inputs of any length, again and again", () => {
  const interpreter = loaded();
  const { outputs } = interpreter.run("layer", { x: { shape: [1, 2], data: [3, 1] } });
  is(outputs.y, [1, 2], [3, 0]); // 3 * [1, -1] + 1 * [0, 2] = [3, -1]
  is(interpreter.run("layer", { x: { shape: [2, 2], data: [1, 1, 0, 4] } }).outputs.y, [2, 2], [1, 1, 0, 8]);
  is(outputs.y, [1, 2], [3, 0]); // what was given once is not written over
});

test("a program says what it misses", () => {
  const interpreter = loaded();
  assert.throws(() => interpreter.run("layers", {}), /there is no program layers; there are layer, attention/);
  assert.throws(() => interpreter.run("layer", {}), /the input x is missing/);
  assert.throws(() => interpreter.run("layer", { x: { shape: [2, 2], data: [1] } }), /x has 1 numbers/);
  const edits = [{ site: "elsewhere", kind: /** @type {const} */ ("zero") }];
  assert.throws(() => interpreter.run("attention", {}, { edits }), /no attention at elsewhere; there is layer.pattern/);
});

test("a program's attention is watched and edited where it is asked for", () => {
  const interpreter = loaded();
  const inputs = { scores: { shape: [1, 1, 2], data: [0, Math.log(3)] } };
  assert.deepEqual(interpreter.run("attention", inputs).patterns, {});
  const { patterns } = interpreter.run("attention", inputs, { capture: ["layer.pattern"] });
  near(patterns["layer.pattern"][0].data, [1 / 4, 3 / 4]);
  const edits = [{ site: "layer.pattern", kind: /** @type {const} */ ("uniform") }];
  const even = interpreter.run("attention", inputs, { capture: true, edits });
  near(even.outputs.weights.data, [1 / 2, 1 / 2]);
  near(even.patterns["layer.pattern"][0].data, [1 / 2, 1 / 2]);
});

test("what is carried stays in the engine as an input of the next run", () => {
  const interpreter = new Interpreter(matmulKernel);
  const step = {
    ...PROGRAM,
    nodes: PROGRAM.nodes.slice(0, 1),
    outputs: [
      { name: "x", value: 2 },
      { name: "same", value: 2 },
    ],
  };
  interpreter.load({ step }, new Uint8Array(Float32Array.of(2, 0, 0, 3).buffer));
  const first = interpreter.run("step", { x: { shape: [1, 2], data: [1, 1] } }, { cache: ["x"] });
  assert.deepEqual(Object.keys(first.outputs), ["same"]);
  is(interpreter.run("step", {}).outputs.same, [1, 2], [4, 9]);
});

/** An engine whose other end answers when it is told to. */
function asked() {
  /** @type {any[]} */
  const sent = [];
  /** @type {(message: any) => void} */
  let listener;
  const port = {
    post: (/** @type {any} */ message) => sent.push(message),
    listen: (/** @type {typeof listener} */ heard) => (listener = heard),
    close() {},
  };
  const engine = new Engine(null, () => port);
  return { engine, sent, answer: (/** @type {any} */ message) => listener(message) };
}

test("answers find their questions by number, in any order", async () => {
  const { engine, sent, answer } = asked();
  const [first, second] = [engine.run("a", {}), engine.run("b", {})];
  answer({ id: sent[1].id, result: 2 });
  answer({ id: sent[0].id, error: "no" });
  answer({ id: 99, result: 3 }); // nobody asked
  assert.equal(await second, 2);
  await assert.rejects(first, /^Error: no$/);
});

test("of the calls that come while one runs only the last is run", async () => {
  const { engine, sent, answer } = asked();
  const results = [1, 2, 3].map((x) => engine.runLatest("channel", "program", x));
  assert.equal(sent.length, 1);
  assert.equal(await results[1], null);
  answer({ id: sent[0].id, result: "first" });
  assert.equal(await results[0], "first");
  await null;
  assert.deepEqual(
    sent.map(({ inputs }) => inputs),
    [1, 3],
  );
  answer({ id: sent[1].id, result: "third" });
  assert.equal(await results[2], "third");
});

test("a request is answered with its number, an error with its words", async () => {
  /** @type {any[][]} */
  const posted = [];
  const endpoint = stub({ postMessage: (/** @type {any[]} */ ...given) => posted.push(given) });
  const buffer = new ArrayBuffer(8);
  answerRequests(endpoint, async ({ run: name }) => {
    if (name === "bad") throw new Error("no such thing");
    return name === "empty" ? {} : { result: 5, transfer: [buffer] };
  });
  for (const [id, name] of ["good", "bad", "empty"].entries()) await endpoint.onmessage({ data: { id, run: name } });
  assert.deepEqual(posted, [
    [{ id: 0, result: 5 }, [buffer]],
    [{ id: 1, error: "no such thing" }],
    [{ id: 2, result: null }, []],
  ]);
});

// What the views share: numbers in a range, words as labels, tokens on a picture, strongest keys, tables as CSV, scales.

import assert from "node:assert/strict";
import { test } from "node:test";
import { near, stub, tensor } from "./helpers.js";
import { cellAfterKey, followDrag, followWheel, indexAfterKey } from "../../tfviz/view/js/base/events.js";
import { ABSENT, FORBIDDEN, Grid, ALLOWED, sinks } from "../../tfviz/view/js/base/grid.js";
import { KernelClient } from "../../tfviz/view/js/base/kernel-client.js";
import { clamp, exportedNumber, formatStep, withSign } from "../../tfviz/view/js/base/numbers.js";
import { bytesOf, concatenated, PageData } from "../../tfviz/view/js/base/page-data.js";
import { PatchGrid, profile, spread } from "../../tfviz/view/js/base/patch-grid.js";
import { spreadApart } from "../../tfviz/view/js/base/pen.js";
import { TopKeys } from "../../tfviz/view/js/base/top-keys.js";
import { TraitStore } from "../../tfviz/view/js/base/widget.js";
import { label, quoted, visibleCharacter } from "../../tfviz/view/js/base/visible-text.js";
import { csv, csvs } from "../../tfviz/view/js/controls/table.js";
import { roundUp } from "../../tfviz/view/js/base/axis-ticks.js";
import { gridOf, scaleOf, wordsFor } from "../../tfviz/view/js/interact/scales.js";
import { describeCell, describeLocked } from "../../tfviz/view/js/views/aria-text.js";

/** @param {string[]} rows @param {string[]} columns @param {number[]} values @param {number[]} state */
const grid = (rows, columns, values, state = values.map(() => ALLOWED), style = {}) =>
  Grid.of(rows, columns, Float32Array.from(values), Uint8Array.from(state), style);

test("a number beyond a range becomes its end; an empty range gives the low one", () => {
  assert.deepEqual(
    [-1, 0, 2, 5, 9].map((value) => clamp(value, 0, 5)),
    [0, 0, 2, 5, 5],
  );
  assert.equal(clamp(3, 0, -1), 0);
  assert.equal(clamp(Infinity, 0, 4), 4);
});

test("a key leads to a cell of a table, not beyond its edges; other keys lead nowhere", () => {
  const keys = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "Enter"];
  const cells = (/** @type {number | undefined} */ step) => keys.map((key) => cellAfterKey(key, [1, 3], [4, 9], step));
  assert.deepEqual(cells(undefined), [[0, 3], [2, 3], [1, 2], [1, 4], [1, 0], [1, 8], null]);
  assert.deepEqual(cells(10), [[0, 3], [3, 3], [1, 0], [1, 8], [1, 0], [1, 8], null]);
});

test("a wheel zooms with Ctrl or Cmd only, and else scrolls the page", () => {
  /** @type {any} */
  const element = {};
  /** @type {(number | string)[]} */
  const calls = [];
  followWheel(element, (factor) => void calls.push(factor));
  const preventDefault = () => void calls.push("prevented");
  element.onwheel({ deltaY: 200, preventDefault });
  element.onwheel({ deltaY: -200, ctrlKey: true, preventDefault });
  element.onwheel({ deltaY: 400, metaKey: true, preventDefault });
  assert.deepEqual(calls, ["prevented", 2, "prevented", 0.25]);
});

test("a drag is followed until its pointer is released, and only that of the pointer that was pressed", () => {
  /** @type {number[]} */
  const captured = [];
  /** @type {any} */
  const element = {
    setPointerCapture: (/** @type {number} */ id) => captured.push(id),
    hasPointerCapture: (/** @type {number} */ id) => captured.includes(id),
  };
  /** @type {(number | string)[]} */
  const calls = [];
  const move = (/** @type {any} */ { clientX }) => void calls.push(clientX);
  followDrag(
    element,
    ({ button }) => (button ? undefined : move),
    () => void calls.push("end"),
  );
  element.onpointermove({ pointerId: 7, clientX: 1 }); // a mouse that only passes
  element.onpointerdown({ pointerId: 7, button: 2 });
  element.onpointerup({ pointerId: 7 });
  assert.deepEqual([captured, calls], [[], []]);
  element.onpointerdown({ pointerId: 7, button: 0 });
  element.onpointermove({ pointerId: 7, clientX: 2 });
  element.onpointermove({ pointerId: 8, clientX: 3 }); // a second finger
  element.onpointerup({ pointerId: 7 });
  element.onpointermove({ pointerId: 7, clientX: 4 });
  assert.deepEqual([captured, calls], [[7], [2, "end"]]);
});

test("a key leads to an index in a row, also beyond its ends", () => {
  const keys = ["ArrowLeft", "ArrowRight", "Home", "End", "Enter"];
  assert.deepEqual(
    keys.map((key) => indexAfterKey(key, 0, 6)),
    [-1, 1, 0, 6, undefined],
  );
});

test("a sign stands for what cannot be seen, and a cut is marked", () => {
  assert.deepEqual(["\n", "\x07", "\u200b", "\ud800", "\uffff", "é"].map(visibleCharacter), [
    "⏎",
    "␇",
    "⟨200B⟩",
    "⟨D800⟩",
    "⟨FFFF⟩",
    "é",
  ]);
  assert.equal(label(""), "∅");
  assert.equal(label("attention's scores"), "attention's scores"); // one space within a name stays
  assert.deepEqual(
    [" a", "a ", "a  b", " ", "a\nb", " a b"].map((text) => label(text)),
    ["␣a", "a␣", "a  b", "␣", "a⏎b", "␣a␣b"],
  );
  assert.equal(label("abcde", 5), "abcde");
  assert.equal(label("abcdef", 5), "abcd…");
  assert.equal(label("😀😀😀", 2), "😀…"); // by characters, not by halves of them
  assert.equal(quoted("a b"), "“\u2068a b\u2069”");
});

test("positions on a line are moved apart, in their order, and stay between the ends", () => {
  assert.deepEqual(spreadApart([5, 5, 50], 10, 0, 100), [5, 15, 50]);
  assert.deepEqual(spreadApart([30, 10, 12], 10, 0, 100), [30, 10, 20]);
  assert.deepEqual(spreadApart([98, 99], 10, 0, 100), [90, 100]);
  assert.deepEqual(spreadApart([-5], 10, 0, 100), [0]);
  assert.deepEqual(spreadApart([], 10, 0, 100), []);
});

test("a slider's number has the decimals of its step, or more where it needs them", () => {
  assert.deepEqual([formatStep(0.5, 0.01), formatStep(2, 1), formatStep(2e-7, 1e-7)], ["0.50", "2", "0.0000002"]);
  assert.equal(formatStep(0.123456, 0.1), "0.123456");
  assert.deepEqual([withSign(0.5), withSign(-0.5), withSign(0.001)], ["+0.50", "−0.50", "0.00"]);
});

test("a number for a spreadsheet has four digits, a whole number all of its own", () => {
  assert.deepEqual([0.123456, 1234567, 1234.5678, NaN, -1e-7].map(exportedNumber), [
    "0.1235",
    "1234567",
    "1235",
    "NaN",
    "-1e-7",
  ]);
});

test("pieces of a page's data come out of base64 as out of bytes", async () => {
  const bytes = Uint8Array.of(1, 2, 3, 4, 5, 250, 251);
  const base64 = Buffer.from(bytes).toString("base64");
  assert.deepEqual(bytesOf(base64), bytes);
  for (const data of [bytes, base64]) {
    const page = new PageData(stub({}), data);
    assert.deepEqual([...page.slice([3, 4, 1])], [4, 5, 250, 251]);
    assert.deepEqual([...page.slice([0, 2, 1])], [1, 2]);
  }
  assert.deepEqual([...concatenated([bytes.subarray(0, 1), new Uint8Array(), bytes.subarray(5)])], [1, 250, 251]);
});

test("what a page has found once it keeps, by key", async () => {
  const page = new PageData(stub({}), "");
  let made = 0;
  const make = async () => ++made;
  assert.deepEqual([await page.cached("a", make), await page.cached("a", make)], [1, 1]);
  assert.equal(await page.cached("b", make), 2);
});

test("a token has its cell on the picture, counted from above or from below", () => {
  const words = ["[CLS]", ..."abcdef", "end"];
  const patches = { first: 1, rows: 2, columns: 3, upward: false };
  const down = new PatchGrid(stub(patches), words);
  assert.deepEqual([down.cell(0), down.cell(1), down.cell(6), down.cell(7)], [null, [0, 0], [1, 2], null]);
  assert.equal(down.token(1, 0), 4);
  assert.deepEqual(down.others, [0, 7]);
  const up = new PatchGrid(stub({ ...patches, upward: true }), words);
  assert.deepEqual([up.cell(1), up.token(0, 0)], [[1, 0], 4]);
});

test("what a token looks at, and what looks at it, is a column, laid out on the picture", () => {
  const part = { rows: ["p", "q"], columns: ["x", "y"] };
  const some = grid(part.rows, part.columns, [0.25, 0.75, 1, 0], [ALLOWED, ALLOWED, ALLOWED, FORBIDDEN]);
  const attentionProfile = profile(some, part, "rows", 0);
  assert.deepEqual([attentionProfile.rows, attentionProfile.columns], [["x", "y"], ["p"]]);
  near(attentionProfile.values, [0.25, 0.75]);
  const looked = profile(some, part, "columns", 1);
  assert.deepEqual(
    [looked.rows, [...looked.state]],
    [
      ["p", "q"],
      [ALLOWED, FORBIDDEN],
    ],
  );
  const upward = new PatchGrid(stub({ first: 0, rows: 2, columns: 1, upward: true }), part.columns);
  near(spread(attentionProfile, upward, 1).values, [0.75, 0.25]);
});

test("a token whose key is hidden is absent from a profile", () => {
  const part = { rows: ["p"], columns: ["x", "y", "z"] };
  const left = grid(["p"], ["x", "z"], [0.5, 0.5]);
  Object.assign(left, { visibleKeys: [0, 2], keys: 3 });
  const column = profile(left, part, "rows", 0);
  near(column.values, [0.5, 0, 0.5]);
  assert.deepEqual([...column.state], [ALLOWED, ABSENT, ALLOWED]);
});

test("of strongest keys the codes of a range are known, and the rest of each row", async () => {
  /** @param {number} count */
  const words = (count) => Array.from({ length: count }, String);
  // two queries, the two strongest keys of each: columns, codes, what is left out as a root
  const bytes = Uint8Array.of(3, 0, 0, 0, 1, 0, 3, 0, 200, 100, 50, 150, 51, 0);
  const head_codes = [{ offset: 0, length: 14, pool_size: 1 }];
  const keys = new TopKeys(stub({ rows: words(2), columns: words(4), head_codes, top: 2 }), async () => bytes);
  /** @type {(rows: [number, number], columns: [number, number], poolSize: number) => Promise<Uint8Array>} */
  const codes = (rows, columns, poolSize) => keys.codes(0, { rows, columns, poolSize });
  assert.deepEqual([...(await codes([0, 2], [0, 4], 1))], [100, 0, 0, 200, 0, 50, 0, 150]);
  assert.deepEqual([...(await codes([1, 2], [1, 3], 1))], [50, 0]);
  assert.deepEqual([...(await codes([0, 2], [0, 4], 2))], [100, 200]);
  near((await keys.head(0)).rest, [0.04, 0]);
});

test("a sink draws much of the weight of the queries that may see it, if these are several", () => {
  const open = [ALLOWED, ALLOWED, FORBIDDEN, ALLOWED, ALLOWED, ALLOWED];
  assert.deepEqual([...sinks(grid(["p", "q"], ["a", "b", "c"], [0.4, 0.6, 0, 0.2, 0, 0.8], open))], [0, 1]); // c: one query
  assert.deepEqual([...sinks(grid(["p", "q"], ["a", "b"], [0.5, 0.5, 0.09, 0.91]), 0.3)], [1]);
});

test("a name that a spreadsheet would run as a formula has an apostrophe before it, also above a table", () => {
  const names = {
    "=1+1": "'=1+1",
    "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
    "@SUM(A1)": "'@SUM(A1)",
    "-x": "'-x",
    "\t=1": "'\t=1",
    "\r=1": "'\r=1",
    "-1": "-1",
    "-1+1": "'-1+1",
    "-": "'-",
    "a=b": "a=b",
  };
  for (const [name, written] of Object.entries(names)) {
    const some = grid([name], [name], [1]);
    assert.equal(csvs([{ name, grid: some }]), `"${written}"\r\n"query/key","${written}"\r\n"${written}",1\r\n`);
  }
});

test("CSV leaves out what may not be seen, and no cell of it is a formula", () => {
  const some = grid(['say "a"', "=1+1"], ["-2", "+x"], [0.25, 1, 0.123456, 0], [ALLOWED, ALLOWED, ALLOWED, FORBIDDEN]);
  assert.equal(csv(some), '"query/key","-2","\'+x"\r\n"say ""a""",0.25,1\r\n"\'=1+1",0.1235,\r\n');
  const panels = [
    { name: "one", grid: grid(["q"], ["k"], [1]) },
    { name: "", grid: grid(["q"], ["k"], [0]), axes: ["next token", ""] },
    { name: "", grid: grid(["q"], ["k"], [0]), axes: ["layer", "head"] },
  ];
  const tables = [
    '"one"\r\n"query/key","k"\r\n"q",1\r\n',
    '"next token","k"\r\n"q",0\r\n',
    '"layer/head","k"\r\n"q",0\r\n',
  ];
  assert.equal(csvs(panels), tables.join("\r\n"));
});

test("a cell is read with both words; what may not be seen, or is not there, says so", () => {
  const state = [ALLOWED, FORBIDDEN, ABSENT];
  const some = grid(["cat"], ["the", "cat", "sat"], [0.25, 0, 0], state);
  /** @param {string} word */
  const where = (word) => `“\u2068cat\u2069” → “\u2068${word}\u2069”  `;
  assert.equal(describeCell(some, [0, 0], "", false), `${where("the")}0.25`);
  assert.equal(describeCell(some, [0, 1], "head 1", false), `head 1: ${where("cat")}may not look`);
  assert.equal(describeCell(some, [0, 2], "", false), `${where("sat")}not there yet`);
  assert.equal(describeCell(some, [0, 2], "", true), `${where("sat")}left out`);
  some.rest = Float32Array.of(0.5);
  assert.match(describeCell(some, [0, 2], "", true), /left out; all that is left out of this row holds 0.5$/);
});

test("a cell of a block is read as a maximum", () => {
  const block = new Grid(["a…b"], ["c…d"], Uint8Array.of(51), Uint8Array.of(ALLOWED), { poolSize: 2 });
  assert.match(describeCell(block, [0, 0], "", false), /at most 0.04$/);
});

test("locked rows name what they look at, locked columns what looks at them, strongest first", () => {
  const some = grid(["p", "q"], ["a", "b"], [0.25, 0.75, 1, 0], [ALLOWED, ALLOWED, ALLOWED, FORBIDDEN]);
  const plain = describeLocked(some, { rows: [0], columns: [0, 1] }).replace(/[\u2068\u2069]/g, "");
  assert.equal(plain, "“p” → “b” 0.75, “a” 0.25\n“a” ← “q” 1, “p” 0.25\n“b” ← “p” 0.75");
});

test("a scale ends at a round number that is not less", () => {
  assert.deepEqual(
    [0.9, 1, 1.01, 2.4, 7, 81, 0.00123, 0, NaN].map((value) => roundUp(value)),
    [1, 1, 1.5, 3, 8, 100, 0.0015, 1, 1],
  );
  assert.equal(roundUp(2.1, [1, 5, 10]), 5);
});

test("a result's scale: shares end at 1, numbers with a sign diverge, others end at a round number", () => {
  /** @param {number[]} data */
  const of = (data, spec = {}, dtype = "float32") =>
    scaleOf(
      stub({ ...tensor([1, data.length], data), dtype }),
      stub({ kind: "heatmap", scale: null, limit: null, min_limit: 0, ...spec }),
    );
  assert.deepEqual(of([0.25, 0.75]), { scale: "linear", limit: 1 });
  assert.deepEqual(of([0.25, 0.5]), { scale: "linear", limit: 0.5 });
  assert.deepEqual(of([0.25, 0.75, -Infinity]), { scale: "linear", limit: 1 }); // a score that a mask forbids
  assert.deepEqual(of([-0.2, 3.5]), { scale: "diverging", limit: 4 });
  assert.deepEqual(of([7, NaN, Infinity]), { scale: "linear", limit: 8 });
  assert.deepEqual(of([0, 1, 1], {}, "int64"), { scale: "linear", limit: 1 });
  assert.deepEqual(of([0, 2, 1], {}, "int64"), { scale: "linear", limit: 2 });
  assert.deepEqual(of([1, 1, 1]), { scale: "linear", limit: 1 });
  assert.deepEqual(of([0, 9], { scale: "sqrt" }), { scale: "sqrt", limit: 1 });
  assert.deepEqual(of([0, 9], { limit: 20 }), { scale: "linear", limit: 20 });
  assert.deepEqual(of([0, 0.01], { min_limit: 0.5 }), { scale: "linear", limit: 0.5 });
  assert.deepEqual(of([1.9, 0], { kind: "dots" }), { scale: "linear", limit: 3 }); // 2.09: room for names
});

test("a grid of results: minus infinity is forbidden, no number is absent", () => {
  const made = gridOf(["q"], ["a", "b", "c"], Float32Array.of(1, -Infinity, NaN), { scale: "linear", limit: 1 });
  assert.deepEqual([...made.state], [ALLOWED, FORBIDDEN, ABSENT]);
  assert.deepEqual(wordsFor(["a"], 1), ["a"]);
  assert.deepEqual(wordsFor(["a"], 2), ["0", "1"]);
});

/** What anywidget gives: traits and messages. @param {Record<string, any>} traits */
function widgetModel(traits = {}) {
  const listeners = new Map();
  const [sent, saved] = [stub([]), stub([])];
  return stub({
    sent,
    saved,
    get: (/** @type {string} */ name) => traits[name],
    set: (/** @type {string} */ name, /** @type {any} */ value) => (traits[name] = value),
    save_changes: () => saved.push({ ...traits }),
    send: (/** @type {any} */ message) => sent.push(message),
    on: (/** @type {string} */ name, /** @type {Function} */ listener) => listeners.set(name, listener),
    off: (/** @type {string} */ name) => listeners.delete(name),
    tell: (/** @type {string} */ name, /** @type {any[]} */ ...given) => listeners.get(name)?.(...given),
  });
}

test("a kernel's answer finds its question by number; its bytes come along", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const model = widgetModel();
  /** @type {string[]} */
  const said = [];
  const client = new KernelClient(model, (text) => said.push(text));
  const [first, second] = [client.ask({ a: 1 }), client.ask({ b: 2 })];
  assert.deepEqual([model.sent[0].a, model.sent[1].b], [1, 2]);
  model.tell("msg:custom", { id: model.sent[1].id, note: "x" }, [new DataView(Uint8Array.of(1, 2, 3, 4).buffer, 1, 2)]);
  model.tell("msg:custom", { id: "of another view" });
  assert.deepEqual(await second, { content: { note: "x" }, buffers: [Uint8Array.of(2, 3)] });
  t.mock.timers.tick(7999);
  assert.deepEqual(said, []);
  t.mock.timers.tick(1);
  assert.deepEqual(said, ["the kernel does not answer: it may be busy, or gone"]);
  model.tell("msg:custom", { id: model.sent[0].id, error: "wrong" });
  await assert.rejects(first, /^Error: wrong$/);
});

test("a client that is closed hears no more, and says nothing late", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const model = widgetModel();
  /** @type {string[]} */
  const said = [];
  const client = new KernelClient(model, (text) => said.push(text));
  client.ask({ a: 1 });
  client.close();
  t.mock.timers.tick(10_000);
  assert.deepEqual(said, []);
});

test("traits are a store: what differs is set and saved once, and heard of", () => {
  const model = widgetModel({ layer: 0, rows: [1] });
  const store = new TraitStore(model, ["layer"]);
  let heard = 0;
  const off = store.on(() => heard++);
  store.set({ layer: 2, rows: [1] });
  store.set({ layer: 2 });
  assert.deepEqual(model.saved, [{ layer: 2, rows: [1] }]);
  model.tell("change:layer");
  off();
  model.tell("change:layer");
  assert.equal(heard, 1);
});

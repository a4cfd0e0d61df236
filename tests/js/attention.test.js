// Attention in the engine: weights by hand, masks, one query, groups of heads, and what is seen of them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { near, tensor } from "./helpers.js";
import { ATTENTION } from "../../tfviz/view/js/engine/attention.js";
import { Interpreter } from "../../tfviz/view/js/engine/interpreter.js";
import { MatmulKernel } from "../../tfviz/view/js/engine/products.js";

const matmulKernel = await MatmulKernel.make();
const attend = ATTENTION.scaled_dot_product_attention;

/** @param {number[]} shape @param {number[]} data */
const mask = (shape, data) => ({ shape, dtype: "bool", data: Uint8Array.from(data) });

/** An interpreter that sees the weights of its attention. */
function watching() {
  const interpreter = new Interpreter(matmulKernel);
  return Object.assign(interpreter, { node: { site: "site" }, edits: [], capture: true, patterns: {} });
}

// Scores of 0 and ln 3 (a query of width 1): weights 1/4 and 3/4.
const [ZERO, LN3] = [0, Math.log(3)];

test("weights are a softmax of scaled products, and mix the values", () => {
  const interpreter = watching();
  const out = attend(
    interpreter,
    tensor([1, 1, 1], [1]),
    tensor([1, 2, 1], [ZERO, LN3]),
    tensor([1, 2, 2], [4, 8, 0, 4]),
  );
  near(interpreter.patterns.site[0].data, [1 / 4, 3 / 4]);
  near(out.data, [1, 5]);
  assert.deepEqual([...interpreter.patterns.site[0].allowed], [1, 1]);
});

test("the products are divided by the root of the width, or by the scale that is given", () => {
  const [query, key] = [tensor([1, 1, 4], [1, 0, 0, 0]), tensor([1, 2, 4], [0, 0, 0, 0, 2 * LN3, 0, 0, 0])];
  const value = tensor([1, 2, 1], [0, 1]);
  near(attend(watching(), query, key, value).data, [3 / 4]);
  near(attend(watching(), query, key, value, null, 0, false, 1).data, [9 / 10]);
});

test("is_causal hides the keys after a query, counted from the first", () => {
  const interpreter = watching();
  attend(
    interpreter,
    tensor([1, 2, 1], [1, 1]),
    tensor([1, 3, 1], [5, 5, 5]),
    tensor([1, 3, 1], [1, 2, 3]),
    null,
    0,
    true,
  );
  near(interpreter.patterns.site[0].data, [1, 0, 0, 1 / 2, 1 / 2, 0]);
  assert.deepEqual([...interpreter.patterns.site[0].allowed], [1, 0, 0, 1, 1, 0]);
});

test("a single query under is_causal sees the first key only, as in torch", () => {
  const interpreter = watching();
  const value = tensor([1, 3, 1], [7, 8, 9]);
  const out = attend(interpreter, tensor([1, 1, 1], [1]), tensor([1, 3, 1], [0, 9, 9]), value, null, 0, true);
  near(interpreter.patterns.site[0].data, [1, 0, 0]);
  near(out.data, [7]);
});

test("a mask of truths forbids, a mask of numbers is added", () => {
  const [query, key, value] = [tensor([1, 1, 1], [1]), tensor([1, 3, 1], [0, 0, 0]), tensor([1, 3, 1], [1, 2, 4])];
  near(attend(watching(), query, key, value, mask([1, 3], [1, 0, 1])).data, [2.5]);
  near(attend(watching(), query, key, value, tensor([1, 3], [0, LN3, -Infinity])).data, [7 / 4]);
});

test("a query that may look nowhere has weights of zero where they are seen, and gives nothing", () => {
  const interpreter = watching();
  const value = tensor([1, 2, 1], [3, 5]);
  const out = attend(interpreter, tensor([1, 1, 1], [1]), tensor([1, 2, 1], [0, 0]), value, mask([1, 2], [0, 0]));
  near(interpreter.patterns.site[0].data, [0, 0]);
  near(out.data, [0]);
});

test("heads of queries share heads of keys in order", () => {
  const interpreter = watching();
  const [query, key] = [tensor([6, 1, 1], [1, 1, 1, 1, 1, 1]), tensor([2, 2, 1], [0, LN3, LN3, 0])];
  attend(interpreter, query, key, tensor([2, 2, 1], [0, 1, 0, 1]), null, 0, false, null, true);
  near(interpreter.patterns.site[0].data, [...Array(3).fill([1 / 4, 3 / 4]), ...Array(3).fill([3 / 4, 1 / 4])].flat());
  assert.throws(
    () => attend(watching(), tensor([3, 1, 1], [1, 1, 1]), key, key, null, 0, false, null, true),
    /3 heads of queries do not share 2/,
  );
});

test("a head that is switched off gives nothing, the others are as they were", () => {
  const interpreter = Object.assign(watching(), { edits: [{ site: "site", head: 1, kind: "zero" }] });
  const value = tensor([1, 2, 2, 1], [2, 4, 2, 4]);
  const out = attend(interpreter, tensor([1, 2, 1, 1], [1, 1]), tensor([1, 2, 2, 1], [0, 0, 0, 0]), value);
  near(out.data, [3, 0]);
});

test("a softmax over the last of three axes is an attention; over two axes it is none", () => {
  const interpreter = watching();
  near(ATTENTION["softmax.int"](interpreter, tensor([1, 1, 2], [0, LN3]), -1).data, [1 / 4, 3 / 4]);
  assert.equal(interpreter.patterns.site.length, 1);
  ATTENTION["softmax.int"](interpreter, tensor([1, 2], [0, LN3]), -1);
  assert.equal(interpreter.patterns.site.length, 1);
});

test("an edit of causal attention shares out what the query may still see, and shows what it saw", () => {
  const interpreter = Object.assign(watching(), { edits: [{ site: "site", kind: "hide", cells: [[2, 0]] }] });
  const [query, key] = [tensor([1, 1, 3, 1], [1, 1, 1]), tensor([1, 1, 3, 1], [0, LN3, 0])];
  const out = attend(interpreter, query, key, tensor([1, 1, 3, 1], [4, 8, 0]), null, 0, true);
  near(interpreter.patterns.site[0].data, [1, 0, 0, 1 / 4, 3 / 4, 0, 0, 3 / 4, 1 / 4]);
  assert.deepEqual([...interpreter.patterns.site[0].allowed], [1, 0, 0, 1, 1, 0, 1, 1, 1]); // what the model allows
  near(out.data, [4, 7, 6]);
});

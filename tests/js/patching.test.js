// What a patch brings back, the answers that are compared, and where a run is patched.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { near, stub } from "./helpers.js";
import { scaleText } from "../../tfviz/view/js/studios/patching/patching-description.js";
import { PatchingKernelRuns } from "../../tfviz/view/js/studios/patching/patching-kernel-runs.js";
import { answersOf, PatchingRuns, shareBack } from "../../tfviz/view/js/studios/patching/patching-runs.js";

const SIZES = stub({ layers: ["0", "1"], attentions: ["0", "1"], heads: 3, dim: 2, head_dim: 1 });
const run = (/** @type {number[]} */ logits) => ({ logits: Float32Array.from(logits) });
const pair = (/** @type {number[]} */ clean, /** @type {number[]} */ corrupt) =>
  stub({ key: "", ids: [], clean: run(clean), corrupt: run(corrupt) });

test("0 is the corrupt run, 1 the clean one; without a difference there is no share", () => {
  const metrics = { clean: 3, corrupt: -1 };
  near(
    [-1, 3, 0, 5, -3].map((value) => Number(shareBack(metrics, value))),
    [0, 1, 0.25, 1.5, -0.5],
  );
  assert.equal(shareBack({ clean: 2, corrupt: 2 }, 2), null);
});

test("the cells' unit names what would bring all back, in its own direction, or nothing", () => {
  assert.match(scaleText({ clean: 3, corrupt: -1.5 }), / \(all: \+4\.50\)\.$/);
  assert.match(scaleText({ clean: -1, corrupt: 1 }), / \(all: −2\.00\)/);
  assert.match(scaleText({ clean: 2, corrupt: 2 }), /the logit difference\.$/);
});

test("answers that are not chosen are the likeliest of each run, and two", () => {
  assert.deepEqual(answersOf(pair([1, 5, 2], [4, 0, 3]), [-1, -1]), [1, 0]);
  assert.deepEqual(answersOf(pair([1, 5, 2], [3, 9, 4]), [-1, -1]), [1, 2]);
  assert.deepEqual(answersOf(pair([1, 5, 2], [3, 9, 4]), [2, -1]), [2, 1]);
  assert.deepEqual(answersOf(pair([1, 5, 2], [3, 9, 4]), [-1, 1]), [2, 1]);
  assert.deepEqual(answersOf(pair([1, 5, 2], [3, 9, 4]), [7, 0.5]), [1, 2]);
});

test("a target is one layer at one position, or one head at all", () => {
  const runs = new PatchingRuns(SIZES, 3, async () => null);
  const residual = { shape: [2, 4, 2], data: new Float32Array(16).fill(1) };
  const heads = { shape: [2, 4, 3, 1], data: new Float32Array(24).fill(2) };
  const texts = stub({
    ids: [
      [1, 2, 3, 4],
      [1, 2, 5, 4],
    ],
    clean: { residual, heads },
  });
  const patchedResidual = runs.patchInputs(texts, ["residual", 1, 2]);
  assert.deepEqual([...patchedResidual.residual_at.data], [0, 0, 0, 0, 0, 0, 1, 0]);
  assert.ok(patchedResidual.heads_at.data.every((at) => at === 0));
  const head = runs.patchInputs(texts, ["heads", 1, 0]);
  assert.deepEqual(head.heads_at.shape, [2, 3, 4]);
  assert.deepEqual(
    [...head.heads_at.data.keys()].filter((i) => head.heads_at.data[i]),
    [12, 13, 14, 15],
  );
  assert.ok(head.residual_at.data.every((at) => at === 0));
  assert.equal(runs.targetsOf("residual", 4).length, 8);
  assert.deepEqual(runs.targetsOf("heads", 4).at(-1), ["heads", 1, 2]);
});

test("a kernel is sent both texts and the target alone, and its answers are kept by target", async () => {
  /** @type {any[][]} */
  const asked = [];
  const runs = new PatchingKernelRuns(SIZES, 3, async (channel, program, inputs) => {
    asked.push([channel, program, inputs]);
    return { outputs: { logits: { data: Float32Array.from([asked.length, 2, 3, 4]) } }, patterns: {} };
  });
  const texts = await runs.read([
    [1, 2],
    [1, 0],
  ]);
  assert.ok(texts);
  assert.deepEqual([...texts.corrupt.logits], [2, 2, 3]);
  assert.deepEqual(asked, [
    ["text 0", "read", { ids: { shape: [1, 2], data: [1, 2] } }],
    ["text 1", "read", { ids: { shape: [1, 2], data: [1, 0] } }],
  ]);
  const head = await runs.patch("fill heads", texts, ["heads", 1, 2]);
  await runs.patch("fill residual", texts, ["residual", 0, 1]);
  const both = { shape: [2, 2], data: [1, 2, 1, 0] };
  assert.deepEqual(asked.slice(2), [
    ["fill heads", "patch", { texts: both, target: { shape: [3], data: [1, 1, 2] } }],
    ["fill residual", "patch", { texts: both, target: { shape: [3], data: [0, 0, 1] } }],
  ]);
  assert.equal(await runs.patch("patch", texts, ["heads", 1, 2]), head);
  assert.equal(asked.length, 4);
});

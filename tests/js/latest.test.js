// Questions of which only the latest counts, and questions that are asked one at a time.

import assert from "node:assert/strict";
import test from "node:test";
import { LatestRequest } from "../../tfviz/view/js/base/latest-request.js";
import { LatestCallQueue } from "../../tfviz/view/js/engine/latest-call-queue.js";

test("a question is obsolete once another has begun", () => {
  const latest = new LatestRequest();
  const first = latest.begin();
  assert.equal(first(), true);
  const second = latest.begin();
  assert.deepEqual([first(), second()], [false, true]);
});

test("no question counts once the view is closed, nor one that begins after that", () => {
  const latest = new LatestRequest();
  const first = latest.begin();
  latest.end();
  assert.deepEqual([first(), latest.begin()()], [false, false]);
});

test("of the questions that come during one only the last is asked, and an error belongs to its own", async () => {
  const channel = new LatestCallQueue();
  /** @type {string[]} */
  const asked = [];
  const ask = (/** @type {string} */ name) => channel.run(async () => (asked.push(name), name));
  const broken = channel.run(async () => {
    throw new Error("no answer");
  });
  const answers = [ask("a"), ask("b"), ask("c")];
  await assert.rejects(broken, /no answer/);
  assert.deepEqual(await Promise.all(answers), [null, null, "c"]);
  assert.deepEqual(asked, ["c"]);
  assert.equal(await ask("d"), "d");
});

test("a question that fails before it is asked is an error, and the next one is asked", async () => {
  const channel = new LatestCallQueue();
  const thrown = channel.run(() => {
    throw new Error("not ready");
  });
  await assert.rejects(thrown, /not ready/);
  assert.equal(await channel.run(async () => "later"), "later");
});

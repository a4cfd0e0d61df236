// Questions of which only the latest counts, and questions that are asked one at a time.

import assert from "node:assert/strict";
import test from "node:test";
import { LatestRequest } from "../../tfviz/view/js/base/latest-request.js";
import { throttle } from "../../tfviz/view/js/base/throttle.js";
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

test("answers in order count until that to a later question has come, and none once the view is closed", () => {
  const latest = new LatestRequest();
  const [first, second, third] = [latest.beginInOrder(), latest.beginInOrder(), latest.beginInOrder()];
  assert.deepEqual([first.accept(), first.isCurrent()], [true, false]); // shown while later ones are computed
  assert.deepEqual([third.accept(), third.isCurrent()], [true, true]);
  assert.equal(second.accept(), false); // it would replace a newer one
  const fourth = latest.beginInOrder();
  latest.end();
  assert.deepEqual([fourth.accept(), latest.beginInOrder().accept()], [false, false]);
});

test("a channel is idle once the last question that came meanwhile is done", async () => {
  const channel = new LatestCallQueue();
  /** @type {string[]} */
  const done = [];
  const ask = (/** @type {string} */ name) =>
    channel.run(async () => {
      await new Promise((resolve) => setTimeout(resolve));
      done.push(name);
    });
  void ask("a");
  const { idle } = channel;
  void ask("b");
  void ask("c");
  await idle;
  assert.deepEqual(done, ["a", "c"]);
  await channel.idle;
  void ask("d");
  await channel.idle;
  assert.deepEqual(done, ["a", "c", "d"]);
});

test("a throttled function runs at most once an interval, and not before the first has passed", (context) => {
  let now = 1000;
  context.mock.method(performance, "now", () => now);
  /** @type {number[]} */
  const times = [];
  const draw = throttle(() => times.push(now), 100);
  for (now of [1000, 1099, 1100, 1150, 1199, 1200, 1450, 1500]) draw();
  assert.deepEqual(times, [1100, 1200, 1450]);
});

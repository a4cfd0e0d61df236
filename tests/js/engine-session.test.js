// A studio's engine: when it is busy, and what it reports.

import assert from "node:assert/strict";
import test from "node:test";

import { EngineSession } from "../../tfviz/view/js/studios/engine-session.js";

/** A session with a worker that answers when the test does, and what the session reports. */
function openSession() {
  /** @type {(string | boolean)[]} */
  const reports = [];
  /** @type {((reply: { result?: any, error?: string }) => void)[]} */
  const answers = [];
  const handlers = {
    busy: (/** @type {boolean} */ busy) => void reports.push(busy),
    showError: (/** @type {Error} */ error) => void reports.push(error.message),
  };
  const worker = class {
    onmessage(/** @type {any} */ _event) {}
    postMessage(/** @type {any} */ { id }) {
      answers.push((reply) => this.onmessage({ data: { id, ...reply } }));
    }
    terminate() {}
  };
  Object.assign(globalThis, { Worker: worker });
  const viewDocument = /** @type {any} */ ({ programs: {} });
  return { session: new EngineSession(viewDocument, new Uint8Array(), {}, handlers), reports, answers };
}

const settled = () => new Promise((done) => setTimeout(done));

test("a session is busy from its start until the programs are loaded", async () => {
  const { session, reports, answers } = openSession();
  session.start();
  await settled();
  assert.deepEqual(reports, [true]);
  answers[0]({ result: null });
  await settled();
  assert.deepEqual(reports, [true, false]);
});

test("a session whose programs do not load says so and is no longer busy", async () => {
  const { session, reports, answers } = openSession();
  session.start();
  answers[0]({ error: "no such program" });
  await settled();
  assert.deepEqual(reports, [true, "no such program", false]);
});

test("a session that is closed while it loads is not busy for ever", async () => {
  const { session, reports } = openSession();
  session.start();
  session.close();
  await settled();
  assert.deepEqual(reports, [true, false]);
});

test("a run that was asked for during loading keeps the session busy until it is answered", async () => {
  const { session, reports, answers } = openSession();
  session.start();
  const answer = session.run("maps", "read", {}, {});
  answers[0]({ result: null });
  await settled();
  assert.equal(reports.at(-1), true);
  answers[1]({ result: 7 });
  assert.equal(await answer, 7);
  assert.equal(reports.at(-1), false);
});

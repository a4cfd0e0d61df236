// What a reader chose: kept, undone and redone, grouped, and written into an address.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, choicesOf, UndoHistory } from "../../tfviz/view/js/base/history.js";
import { Store } from "../../tfviz/view/js/base/store.js";

/** @import { TestContext } from "node:test" */

const NAMES = ["layer", "rows"];

/**
 * A store and its history, at a clock that stands still until it is moved.
 * @param {TestContext} t @param {object} state @param {string[]} names
 */
function followed(t, state = { layer: 0, rows: [], cursor: null }, names = NAMES) {
  const clock = { now: 10_000 };
  t.mock.method(performance, "now", () => clock.now);
  const told = { moved: 0 };
  /** @type {Store<any>} */
  const store = new Store(state);
  const history = new UndoHistory(store, names, () => told.moved++);
  /** @param {number} milliseconds */
  const later = (milliseconds) => (clock.now += milliseconds);
  return { store, history, told, later };
}

test("a store tells its listeners of a change, once for all values, and of nothing else", () => {
  const store = new Store({ a: 1, b: [1, 2] });
  let told = 0;
  const off = store.on(() => told++);
  store.set({ a: 2, b: [3] });
  assert.deepEqual([told, store.get("a"), store.get("b")], [1, 2, [3]]);
  store.set({ a: 2, b: [3] }); // equal by value
  assert.equal(told, 1);
  off();
  store.set({ a: 5 });
  assert.deepEqual([told, store.get("a")], [1, 5]);
});

test("a store keeps its values apart from those that it was given", () => {
  const given = { a: 1 };
  const store = new Store(given);
  store.set({ a: 2 });
  assert.deepEqual(given, { a: 1 });
});

test("a listener that is taken off by another still hears of the change at hand", () => {
  const store = new Store({ a: 1 });
  /** @type {string[]} */
  const heard = [];
  store.on(() => {
    heard.push("first");
    off();
  });
  const off = store.on(() => heard.push("second"));
  store.set({ a: 2 });
  store.set({ a: 3 });
  assert.deepEqual(heard, ["first", "second", "first"]);
});

test("undo goes back step by step, redo forward again", (t) => {
  const { store, history, later } = followed(t);
  store.set({ layer: 1 });
  later(1000);
  store.set({ layer: 2 });
  history.undo();
  assert.equal(store.get("layer"), 1);
  history.undo();
  assert.equal(store.get("layer"), 0);
  history.undo(); // nothing is left
  assert.equal(store.get("layer"), 0);
  history.redo();
  history.redo();
  assert.equal(store.get("layer"), 2);
  assert.deepEqual([history.past.length, history.future.length], [2, 0]);
});

test("changes of one choice within 800 milliseconds are one step", (t) => {
  const { store, history, later } = followed(t);
  store.set({ layer: 1 });
  later(799);
  store.set({ layer: 2 });
  later(799); // since the last change, not since the first
  store.set({ layer: 3 });
  assert.equal(history.past.length, 1);
  later(800);
  store.set({ layer: 4 });
  assert.equal(history.past.length, 2);
  history.undo();
  assert.equal(store.get("layer"), 3);
});

test("changes of different choices are different steps, however soon", (t) => {
  const { store, history } = followed(t);
  store.set({ layer: 1 });
  store.set({ rows: [4] });
  assert.equal(history.past.length, 2);
  history.undo();
  assert.deepEqual([store.get("layer"), store.get("rows")], [1, []]);
});

test("what is not among the names is not undone, and makes no step", (t) => {
  const { store, history, told } = followed(t);
  store.set({ cursor: [1, 2] });
  assert.deepEqual([history.past.length, told.moved], [0, 0]);
  store.set({ layer: 3 });
  history.undo();
  assert.deepEqual([store.get("layer"), store.get("cursor")], [0, [1, 2]]);
});

test("a change after an undo forgets what could be redone", (t) => {
  const { store, history, later } = followed(t);
  store.set({ layer: 1 });
  later(1000);
  history.undo();
  store.set({ layer: 7 });
  history.redo();
  assert.equal(store.get("layer"), 7);
});

test("all that happens in a group is one step, also where it takes time or fails", async (t) => {
  const { store, history } = followed(t);
  const given = await history.group(async () => {
    store.set({ layer: 1 });
    await null;
    store.set({ rows: [2] });
    await history.group(() => store.set({ layer: 5 })); // a group inside is the same step
    return "done";
  });
  assert.deepEqual([given, history.past.length], ["done", 1]);
  await assert.rejects(
    history.group(() => {
      store.set({ layer: 6 });
      throw new Error("half way");
    }),
    /half way/,
  );
  assert.equal(history.past.length, 2);
  history.undo();
  assert.equal(store.get("layer"), 5);
  history.undo();
  assert.deepEqual([store.get("layer"), store.get("rows")], [0, []]);
});

test("a group that changes nothing is no step", async (t) => {
  const { history, told } = followed(t);
  await history.group(() => {});
  assert.deepEqual([history.past.length, told.moved], [0, 1]);
});

test("a history that is closed records no more", (t) => {
  const { store, history } = followed(t);
  history.close();
  store.set({ layer: 1 });
  assert.equal(history.past.length, 0);
});

test("an address holds what differs from the beginning, and is read again", (t) => {
  const { store, history } = followed(t);
  assert.equal(addressOf(history), "");
  store.set({ rows: [1, 2], cursor: [0, 0] });
  assert.equal(addressOf(history), encodeURIComponent('{"rows":[1,2]}'));
  assert.deepEqual(choicesOf(addressOf(history), { layer: 0, rows: [] }), { rows: [1, 2] });
});

test("an address holds the states of all studios: texts, nested lists, numbers and targets", (t) => {
  const [first, chosen] = [
    {
      text: "abc",
      ablated_heads: [],
      filled: [],
      replaced: [],
      hidden_patches: [],
      forced: [],
      num_beams: 4,
      target: null,
    },
    {
      text: "der „Käse“ # 50% & שלום 😀\n",
      ablated_heads: [["decoder.0.cross.pattern", 1]],
      filled: [[9, 31]],
      replaced: [[3, "film with an end"]],
      hidden_patches: [2, 8],
      forced: [[5, 1], []],
      num_beams: 1,
      target: ["residual", 0, 2],
    },
  ];
  const { store, history } = followed(t, first, Object.keys(first));
  store.set(chosen);
  const address = addressOf(history);
  assert.match(address, /^[\w%.~!*'()-]*$/); // it can stand behind the # of any address
  assert.deepEqual(choicesOf(address, first), chosen);
});

test("an address gives only known choices, each of the kind that it was; none where it cannot be read", () => {
  const state = { layer: 0, rows: [], word: "a", at: null };
  /** @param {object} choices */
  const read = (choices) => choicesOf(encodeURIComponent(JSON.stringify(choices)), state);
  assert.deepEqual(read({ layer: 2, other: 3 }), { layer: 2 });
  assert.deepEqual(read({ layer: "2", rows: { 0: 1 }, word: 5 }), {});
  assert.deepEqual(read({ at: [1], layer: null }), { at: [1], layer: null });
  for (const text of ["%7Bnot", "{", "[1]", "null"]) assert.deepEqual(choicesOf(text, state), {});
  assert.deepEqual(choicesOf("%", state), {});
});

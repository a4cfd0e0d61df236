// Undo and redo of what the reader chose, and the same as text for a link.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, choicesOf, History } from "../../tfviz/view/js/base/history.js";
import { Store } from "../../tfviz/view/js/base/store.js";

const FIRST = { text: "a", off: [], pointed: 0 };
let clock = 1e6;
performance.now = () => clock;

function begun() {
  const store = new Store(FIRST);
  const history = new History(store, ["text", "off"], () => {});
  const choose = (changes, later = 1000) => {
    clock += later;
    store.set(changes);
  };
  return { store, history, choose, chosen: () => [store.get("text"), store.get("off")] };
}

test("each change is undone, the last first, and done again", () => {
  const { history, choose, chosen } = begun();
  choose({ text: "b" });
  choose({ off: [2] });
  const states = [["b", []], ["a", []], ["a", []]]; // prettier-ignore
  for (const state of states) {
    history.undo();
    assert.deepEqual(chosen(), state);
  }
  for (const state of [
    ["b", []],
    ["b", [2]],
    ["b", [2]],
  ]) {
    history.redo();
    assert.deepEqual(chosen(), state);
  }
});

test("after another change there is nothing to do again", () => {
  const { history, choose, chosen } = begun();
  choose({ text: "b" });
  history.undo();
  choose({ off: [1] });
  history.redo();
  assert.deepEqual(chosen(), ["a", [1]]);
  history.undo();
  assert.deepEqual(chosen(), ["a", []]);
});

test("what does not count is no step, and stays", () => {
  const { store, history, choose } = begun();
  choose({ pointed: 3 });
  history.undo();
  assert.equal(store.get("pointed"), 3);
  assert.deepEqual([history.past.length, history.future.length], [0, 0]);
});

test("one choice that changes again and again within 0.8 seconds is one step, two choices are two", () => {
  const { history, choose, chosen } = begun();
  for (const text of ["ab", "abc", "abcd"]) choose({ text }, 700);
  choose({ off: [1] }, 10);
  choose({ off: [1, 2] }, 800);
  assert.equal(history.past.length, 3);
  for (const state of [
    ["abcd", [1]],
    ["abcd", []],
    ["a", []],
  ]) {
    history.undo();
    assert.deepEqual(chosen(), state);
  }
});

test("all that a group changes is one step, and nothing is none", async () => {
  const { history, choose, chosen } = begun();
  await history.group(async () => {
    choose({ text: "b" });
    await history.group(() => choose({ off: [1] }));
    choose({ text: "c" });
  });
  await history.group(() => choose({ text: "d" }) ?? choose({ text: "c" }));
  assert.equal(history.past.length, 1);
  choose({ text: "e" }, 0); // a step of its own
  history.undo();
  assert.deepEqual(chosen(), ["c", [1]]);
  history.undo();
  assert.deepEqual(chosen(), ["a", []]);
});

test("an address has what differs from the beginning", () => {
  const { store, history, choose } = begun();
  assert.equal(addressOf(history), "");
  choose({ text: "ü #1", pointed: 9 });
  assert.deepEqual(choicesOf(addressOf(history), store.values), { text: "ü #1" });
  choose({ text: "a" });
  assert.equal(addressOf(history), "");
});

test("of an address what is unknown or of another kind is left out", () => {
  const address = (values) => encodeURIComponent(JSON.stringify(values));
  const state = { text: "a", off: [], at: null, node: 3 };
  assert.deepEqual(choicesOf(address({ text: 5, off: {}, at: 2, node: 4, more: 1 }), state), { at: 2, node: 4 });
  assert.deepEqual(choicesOf(address({ text: [], off: [1], node: null }), state), { off: [1], node: null });
  for (const nonsense of ["", "%", "null", "5", "{"]) assert.deepEqual(choicesOf(nonsense, state), {});
});

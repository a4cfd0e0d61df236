// Alt and a letter: by the letter, or by the key's place where Alt makes another character of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { shortcuts } from "../../tfviz/view/js/base/events.js";
import { stub } from "./helpers.js";

/** What a key does: the actions called, and whether the event was used up. @param {string} key @param {string} code */
function pressed(key, code, properties = {}) {
  /** @type {string[]} */
  const called = [];
  const event = {
    key,
    code,
    altKey: true,
    preventDefault: () => called.push("prevented"),
    stopPropagation: () => called.push("stopped"),
    ...properties,
  };
  shortcuts({ s: () => called.push("step"), r: ({ repeat }) => called.push(`run ${repeat}`) })(stub(event));
  return called.join(", ");
}

test("Alt and a letter call an action, and nothing else hears of it", () => {
  assert.equal(pressed("s", "KeyS"), "step, prevented, stopped");
  assert.equal(pressed("S", "KeyS"), "step, prevented, stopped"); // with the shift key, or capitals locked
  assert.equal(pressed("r", "KeyR", { repeat: true }), "run true, prevented, stopped");
});

test("where Alt makes another character, as on a Mac, the key's place counts", () => {
  assert.equal(pressed("ß", "KeyS"), "step, prevented, stopped");
  assert.equal(pressed("®", "KeyR", { repeat: false }), "run false, prevented, stopped");
});

test("the letter goes before the place: other layouts have it elsewhere", () => {
  assert.equal(pressed("r", "KeyS", { repeat: false }), "run false, prevented, stopped"); // Colemak
});

test("other keys, and letters without Alt, are left alone", () => {
  assert.equal(pressed("s", "KeyS", { altKey: false }), "");
  assert.equal(pressed("x", "KeyX"), "");
  assert.equal(pressed("ArrowUp", "ArrowUp"), "");
  assert.equal(pressed("Alt", "AltLeft"), "");
  assert.equal(pressed("å", ""), ""); // a virtual keyboard knows no places
});

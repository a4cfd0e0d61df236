// A cache keeps the entries that were used last.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LruCache } from "../../tfviz/view/js/base/lru-cache.js";

/** @returns {LruCache<number>} a full one of three */
function full() {
  /** @type {LruCache<number>} */
  const cache = new LruCache(3);
  ["a", "b", "c"].forEach((key, i) => cache.set(key, i));
  return cache;
}
/** @param {LruCache<number>} cache */
const keys = (cache) => [...cache.entries.keys()].join("");

test("the entry longest unused goes", () => {
  const cache = full();
  cache.set("d", 3);
  assert.equal(keys(cache), "bcd");
  assert.equal(cache.get("a"), undefined);
  assert.equal(cache.get("d"), 3);
});

test("reading and writing are uses", () => {
  const cache = full();
  assert.equal(cache.get("a"), 0);
  cache.set("b", 7);
  cache.set("d", 3);
  assert.equal(keys(cache), "abd");
  assert.equal(cache.get("b"), 7);
});

test("an entry is made only where it is missing", () => {
  const cache = full();
  assert.equal(cache.getOrMake("a", () => 9), 0); // prettier-ignore
  assert.equal(cache.getOrMake("e", () => 9), 9); // prettier-ignore
  assert.equal(keys(cache), "cae");
});

test("a cache that gets smaller drops all that is too much at the next entry", () => {
  const cache = full();
  cache.capacity = 2;
  cache.set("d", 3);
  assert.equal(keys(cache), "cd");
});

// The attention maps of the last run in a studio.

import assert from "node:assert/strict";
import { test } from "node:test";
import { stub } from "./helpers.js";
import { CapturedMaps } from "../../tfviz/view/js/studios/captured-maps.js";

/** @param {number[]} data the weights of two queries and three keys, for each of two heads */
const part = (data) => ({
  name: "attention",
  sites: ["layers.0.attention.pattern"],
  maps: [stub({ shape: [1, 2, 2, 3], data: Float32Array.from(data), allowed: new Uint8Array(data.length).fill(1) })],
  rows: ["a", "b"],
  columns: ["a", "b", "c"],
});

test("a head has one grid until new maps come", async () => {
  const maps = new CapturedMaps({});
  maps.update([part([1, 0, 0, 0.5, 0.5, 0, 0, 1, 0, 0, 0, 1])]);
  const grid = maps.grid(0, 0, 1);
  assert.deepEqual([grid.at(0, 1), grid.at(1, 2), grid.at(1, 0)], [1, 1, 0]);
  assert.equal(maps.grid(0, 0, 1), grid);
  assert.equal(await maps.head(0, 0, 1), grid);
  assert.notEqual(maps.grid(0, 0, 0), grid);
  maps.update([part([1, 0, 0, 0.5, 0.5, 0, 0, 0, 1, 0, 1, 0])]);
  const renewed = maps.grid(0, 0, 1);
  assert.notEqual(renewed, grid);
  assert.deepEqual([renewed.at(0, 1), renewed.at(0, 2)], [0, 1]);
});

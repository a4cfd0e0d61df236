// The plane of points and arrows: pixels of its points, and a square that need not lie around the origin.

import assert from "node:assert/strict";
import { test } from "node:test";
import "./stubs.js";
import { Plane } from "../../tfviz/view/js/interact/plane.js";

test("a plane around the origin has it in the middle", () => {
  const plane = new Plane(2, 240);
  assert.deepEqual(plane.at([0, 0]), [120, 120]);
  assert.deepEqual(plane.at([2, -2]), [220, 220]);
});

test("a plane that begins at 0 has the origin in its lower left corner", () => {
  const plane = new Plane(2, 240, 0, 0);
  assert.deepEqual(plane.at([0, 0]), [20, 220]);
  assert.deepEqual(plane.at([2, 2]), [220, 20]);
});

test("a pixel leads back to its point, within the plane", () => {
  for (const plane of [new Plane(2, 240, 7), new Plane(2, 240, 7, 0)]) {
    const [x, y] = plane.at([0.5, 1.5]);
    const found = plane.from(x, y);
    assert.ok(Math.abs(found[0] - 0.5) < 1e-9 && Math.abs(found[1] - 1.5) < 1e-9);
    assert.deepEqual(plane.from(-1e4, 1e4), [plane.low, plane.low]);
  }
});

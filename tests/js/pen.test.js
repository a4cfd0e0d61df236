// The pens of canvas and SVG: a drawing within a drawing lies from the origin of the outer one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { stub } from "./helpers.js";
import { CanvasPen, SvgPen } from "../../tfviz/view/js/base/pen.js";

/** @import { Pen } from "../../tfviz/view/js/types.js" */

/** Draw a square at 2, 3 within a drawing at 10, 20, then one in the outer drawing. @param {Pen} pen */
const drawNested = (pen) =>
  pen.drawAt(10, 20, () => {
    pen.drawAt(2, 3, () => pen.rect(0, 0, 1, 1, { fill: "red" }));
    pen.rect(0, 0, 1, 1, { fill: "blue" });
  });

test("an SVG drawing within a drawing is a group within a group", () => {
  const pen = new SvgPen(50, 60, 1);
  drawNested(pen);
  assert.deepEqual(
    pen.parts.map((part) => part.replace(/<rect.* fill="(\w+)".*\/>/, "$1")),
    ['<g transform="translate(10 20)">', '<g transform="translate(2 3)">', "red", "</g>", "blue", "</g>"],
  );
});

test("a canvas drawing within a drawing is moved by both, and back", () => {
  /** @type {unknown[][]} */
  const filled = [];
  /** @type {number[]} */
  let origin = [];
  const context = {
    fillStyle: "",
    setTransform: (/** @type {number[]} */ ...matrix) => (origin = matrix.slice(4)),
    fillRect: () => filled.push([context.fillStyle, ...origin]),
  };
  drawNested(new CanvasPen(stub({ style: {}, getContext: () => context }), 50, 60, 2));
  assert.deepEqual(filled, [
    ["red", 24, 46], // at 12, 23, two pixels for one
    ["blue", 20, 40],
  ]);
  assert.deepEqual(origin, [0, 0]);
});

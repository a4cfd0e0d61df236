// A sheet of thumbnails: where each head stands, and which are marked, chosen and named.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { recorder, stub } from "./helpers.js";
import { Sheet } from "../../tfviz/view/js/stages/sheet.js";

const lut = new Uint32Array(256);
const theme = stub({
  lut: () => lut,
  sequential: lut,
  diverging: lut,
  soft: "soft",
  line: "line",
  mark: "mark",
  ink: "ink",
  focus: "focus",
});

/** What a sheet of some layers and 3 heads draws, none of which has arrived. @param {object} [look] */
function drawn(look, layers = 2) {
  const sheet = new Sheet(theme, []);
  sheet.place(stub({ layers, heads: 3, rows: [..."abcd"], cols: [..."abcd"] }), 600);
  const { pen, calls } = recorder();
  sheet.draw(pen, { grids: new Map(), chosen: [0, 0], marked: [], focused: false, ...look });
  /** @param {string} ink */
  const outlined = (ink) => calls.rect.filter(([, , , , { stroke }]) => stroke === ink).map((box) => box.slice(0, 2));
  return { sheet, calls, outlined };
}

test("a point is in the head whose box holds it, and in none between them", () => {
  const { sheet } = drawn();
  const [x, y, wide, tall] = sheet.box(1, 2);
  assert.deepEqual(sheet.headAt(x + wide / 2, y + tall / 2), [1, 2]);
  assert.equal(sheet.headAt(1, 1), null);
  assert.equal(sheet.headAt(x + 10 * wide, y), null);
});

test("every head has a frame, every layer and head a name", () => {
  const { calls, outlined } = drawn();
  assert.equal(outlined("line").length, 6 + 1); // and that of the scale
  const names = calls.text.map(([, , text]) => text);
  assert.deepEqual(names.slice(0, 5), ["layer 0", "layer 1", "head 0", "head 1", "head 2"]);
});

test("a single layer needs no name", () => {
  const names = drawn({}, 1).calls.text.map(([, , text]) => text);
  assert.deepEqual(names.slice(0, 3), ["head 0", "head 1", "head 2"]);
});

test("the chosen head is outlined unless it is marked", () => {
  const { sheet, outlined } = drawn({ chosen: [1, 1] });
  assert.deepEqual(outlined("ink"), [sheet.box(1, 1).slice(0, 2)]);
  const both = drawn({
    chosen: [1, 1],
    marked: [
      [1, 1],
      [0, 2],
    ],
  });
  assert.deepEqual(both.outlined("ink"), []);
  assert.deepEqual(
    both.outlined("mark"),
    [
      [1, 1],
      [0, 2],
    ].map(([layer, head]) =>
      both.sheet
        .box(layer, head)
        .slice(0, 2)
        .map((at) => at + 1),
    ),
  );
});

test("what the part does not have is not outlined", () => {
  const { outlined } = drawn({ chosen: [4, 0], marked: [[0, 7]] });
  assert.deepEqual([outlined("ink"), outlined("mark")], [[], []]);
});

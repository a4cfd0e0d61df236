// A sheet of thumbnails: where each head stands, and which are marked, chosen and named.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { recorder, stub } from "./helpers.js";
import { Sheet } from "../../tfviz/view/js/views/sheet.js";

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

/** What a sheet of some layers and 3 heads draws, none of which has arrived. @param {object} [style] */
function drawn(style, layers = 2) {
  const sheet = new Sheet(theme, []);
  sheet.layout(stub({ layers, heads: 3, rows: [..."abcd"], columns: [..."abcd"] }), 600);
  const { pen, calls } = recorder();
  sheet.draw(pen, { grids: new Map(), chosen: [0, 0], marked: [], focused: false, ...style });
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

/** The boxes of a sheet's heads, by "layer.head". @param {number} layers @param {number} heads @param {number} [width] */
function boxes(layers, heads, width = 1200) {
  const sheet = new Sheet(theme, []);
  sheet.layout(stub({ layers, heads, rows: [..."abcd"], columns: [..."abcd"] }), width);
  /** @param {number} layer @param {number} head */
  const box = (layer, head) => sheet.box(layer, head);
  return { sheet, box };
}

test("layers are columns and heads are rows, and the heads of a single layer stand side by side", () => {
  const { sheet, box } = boxes(2, 3);
  assert.equal(box(1, 0)[1], box(0, 0)[1]);
  assert.ok(box(1, 0)[0] > box(0, 0)[0]);
  assert.equal(box(0, 1)[0], box(0, 0)[0]);
  assert.ok(box(0, 1)[1] > box(0, 0)[1]);
  assert.equal(sheet.headAt(box(1, 2)[0] + 1, box(1, 2)[1] + sheet.thumbHeight + 3 * sheet.gap), null); // below the last
  const single = boxes(1, 3);
  assert.equal(single.box(0, 2)[1], single.box(0, 0)[1]);
});

test("maps are as large as width and height allow, and the scale has room in any width", () => {
  assert.equal(boxes(2, 2).sheet.thumbWidth, 190);
  assert.equal(boxes(2, 12).sheet.thumbWidth, 60);
  const { sheet } = boxes(12, 12, 350);
  const { pen, calls } = recorder();
  sheet.draw(pen, { grids: new Map(), chosen: [0, 0], marked: [], focused: false });
  assert.ok(sheet.width <= 350);
  assert.deepEqual(
    calls.text.slice(-7).map(([, , text]) => text),
    ["attention weight, square-root scale", "0", "0.01", "0.1", "0.25", "0.5", "1"],
  );
  assert.ok(calls.text.every(([x, y]) => x <= sheet.width && y <= sheet.height));
});

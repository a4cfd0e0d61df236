// Two columns of words joined by lines: which weights are shown, and which words light up.

import "./stubs.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { recorder, stub } from "./helpers.js";
import { Grid } from "../../tfviz/view/js/base/grid.js";
import { LinksStage } from "../../tfviz/view/js/views/head-modes.js";
import { LinkDiagram } from "../../tfviz/view/js/views/link-diagram.js";

const theme = stub({ soft: "soft", ink: "ink", faint: "faint", focus: "focus", headColour: () => "head" });
const ALLOWED = new Uint8Array(8);
const WEIGHTS = [0.6, 0.3, 0.1, 0, 0.5, 0.5, 0.01, 0.01, 0.98];

/** @param {any} style */
function drawn(style) {
  const grid = Grid.of([..."abc"], [..."xyz"], Float32Array.from(WEIGHTS), new Uint8Array(9));
  const lines = new LinkDiagram(theme, ["query", "key"]);
  lines.layout([{ grid, ink: 0, name: "head" }], 600);
  const { pen, calls } = recorder();
  lines.draw(pen, style);
  const words = calls.text.slice(2); // after the names of both sides
  return { lines, calls, lit: words.filter(([, , , { fill }]) => fill === "ink").map(([, , text]) => text) };
}

test("weights of at least the least are lines, the strongest of a word first and no more than the most", () => {
  assert.equal(drawn({ minWeight: 0.05, maxLinks: 5 }).calls.line.length, 6);
  assert.equal(drawn({ minWeight: 0.05, maxLinks: 1 }).calls.line.length, 3);
  assert.equal(drawn({ minWeight: 0.005, maxLinks: 5 }).calls.line.length, 8);
});

test("a word that is pointed at has its lines only, and what they touch lights up", () => {
  const { calls, lit } = drawn({ pointed: ["rows", 0], minWeight: 0.2 });
  assert.equal(calls.line.length, 2);
  assert.deepEqual(lit, ["a", "x", "y"]);
  assert.deepEqual(drawn({ pointed: ["columns", 2], minWeight: 0.2 }).lit, ["b", "c", "z"]);
});

test("a locked word has a sign, and the cursor a frame on its side", () => {
  const { calls, lines } = drawn({ rows: [1], cursor: ["columns", 2] });
  assert.ok(calls.text.some(([, , text]) => text === "b ●"));
  assert.equal(calls.rect.length, 1);
  assert.ok(
    calls.rect[0][0] > lines.right && calls.rect[0][1] < lines.y(2) && lines.y(2) < calls.rect[0][1] + calls.rect[0][3],
  );
});

test("what is scrolled out of sight is not drawn", () => {
  const { calls } = drawn({ scroll: 10_000, height: 100 });
  assert.equal(calls.text.length, 2);
});

test("a word is read with what is strongest on the other side, head by head", () => {
  const heads = [
    { name: "head 0", grid: Grid.of([..."ab"], [..."wxyz"], Float32Array.of(0.5, 0.25, 0, 0.25, 0, 0, 1, 0), ALLOWED) },
    {
      name: "head 1",
      grid: Grid.of([..."ab"], [..."wxyz"], Float32Array.of(0, 0.75, 0.25, 0, 0.5, 0.5, 0, 0), ALLOWED),
    },
  ];
  /** @param {import("../../tfviz/view/js/types.js").Side} side @param {number} index */
  const read = (side, index) =>
    LinksStage.prototype.reading.call(stub({ diagram: { heads } }), side, index).replace(/[\u2068\u2069]/g, ""); // isolates
  assert.equal(read("rows", 0), "“a” → head 0: “w” 0.5, “x” 0.25, “z” 0.25; head 1: “x” 0.75, “y” 0.25, “w” 0");
  assert.equal(read("columns", 1), "“x” ← head 0: “a” 0.25, “b” 0; head 1: “a” 0.75, “b” 0.5");
  assert.equal(read("columns", 2), "“y” ← head 0: “b” 1, “a” 0; head 1: “a” 0.25, “b” 0");
});

// From choices to grids: which heads are shown, what they are combined to, and what is hidden.

import assert from "node:assert/strict";
import { test } from "node:test";
import { near, stub } from "./helpers.js";
import { ABSENT, Grid } from "../../tfviz/view/js/base/grid.js";
import { Store } from "../../tfviz/view/js/base/store.js";
import { HeadSelection } from "../../tfviz/view/js/controls/head-selection.js";

const WORDS = ["[CLS]", "un", "##do", "it"];
// Two heads of two queries: the second of each pair of rows looks at one key only.
const HEADS = [
  [0.5, 0.3, 0.2, 0, 0, 0, 0, 1],
  [0.1, 0.1, 0.4, 0.4, 1, 0, 0, 0],
];

const STATE = {
  mode: "head",
  part: 0,
  layer: 0,
  head: 0,
  selected_heads: [],
  combine_heads: "mean",
  hide_keys: "nothing",
  hidden_keys: [],
  merge_subwords: false,
  locked_rows: [],
  locked_columns: [],
  direction: "from",
};

/** The selection over parts of 2 layers and 2 heads; head 0 and 1 of any layer have the weights of HEADS. */
function chosen(state = {}, { viewDocument = {}, parts = [{}] } = {}) {
  const rows = WORDS.slice(1, 3);
  const source = {
    viewDocument: { arrange: "choose", axes: ["query", "key"], ...viewDocument },
    parts: parts.map((part) => ({ name: "part", rows, columns: WORDS, layers: 2, heads: 2, groups: null, ...part })),
    head: async (/** @type {number} */ part, /** @type {number} */ _layer, /** @type {number} */ head) => {
      const { rows: down, columns: across } = source.parts[part];
      return Grid.of(down, across, Float32Array.from(HEADS[head]), new Uint8Array(down.length * across.length));
    },
    fullHead: (/** @type {number} */ part, /** @type {number} */ layer, /** @type {number} */ head) =>
      source.head(part, layer, head),
    isPartial: (/** @type {number} */ _part, /** @type {number} */ layer) => layer === 1,
  };
  return new HeadSelection(stub(source), new Store(stub({ ...STATE, ...state })));
}

/** @param {import("../../tfviz/view/js/types.js").AnyGrid} grid */
const values = (grid) => grid.rows.flatMap((_, row) => grid.columns.map((__, col) => grid.at(row, col)));

test("one head is shown, or those that are marked; numbers that are too large mean the last", () => {
  assert.deepEqual(chosen({ layer: 1, head: 0 }).heads, [[1, 0]]);
  assert.deepEqual(chosen({ layer: 9, head: -1 }).heads, [[1, 0]]);
  assert.deepEqual(chosen({ selected_heads: [[0, 1]] }).heads, [[0, 1]]);
  const selected = [
    [0, 1],
    [5, 5],
  ];
  assert.deepEqual(chosen({ selected_heads: selected }).heads, [
    [0, 1],
    [1, 1],
  ]);
});

test("of a part that has its strongest keys only, no heads are combined and no keys hidden", async () => {
  const selection = chosen({ selected_heads: [[0, 1]], hide_keys: "first" }, { parts: [{ top: 3 }] });
  assert.deepEqual(selection.heads, [[0, 0]]);
  assert.deepEqual((await selection.resolveGrids(0, true, false))[0].columns, WORDS);
});

test("a part that is not there means the last; compared parts have the layers and heads that both have", () => {
  const parts = [
    { layers: 4, heads: 3 },
    { layers: 2, heads: 5, name: "second" },
  ];
  assert.equal(chosen({ part: 7 }, { parts }).part.name, "second");
  assert.deepEqual(chosen({ part: 1 }, { parts }).shape, { layers: 2, heads: 5 });
  assert.deepEqual(chosen({}, { parts, viewDocument: { arrange: "compare" } }).shape, { layers: 2, heads: 3 });
});

test("a single head stands alone", () => {
  assert.equal(chosen().hasOneHead, false);
  assert.equal(chosen({}, { parts: [{ layers: 1, heads: 1 }] }).hasOneHead, true);
});

test("a head has the colour of its number; heads of several layers that of their place, others none", () => {
  const oneLayer = chosen({
    selected_heads: [
      [1, 0],
      [1, 1],
    ],
  });
  assert.deepEqual([oneLayer.colourIndex(1, 0), oneLayer.colourIndex(1, 1)], [0, 1]);
  const several = chosen({
    selected_heads: [
      [1, 1],
      [0, 0],
    ],
  });
  assert.deepEqual([several.colourIndex(1, 1), several.colourIndex(0, 0), several.colourIndex(0, 1)], [5, 6, -1]); // the first two of TEXT_COLOURS
});

test("locked rows and columns count only where the grid has them", async () => {
  const selection = chosen({ locked_rows: [0, 2, -1], locked_columns: [3, 4] });
  assert.deepEqual(selection.lockedIn(await selection.grid(0, 0, 0, false)), { rows: [0], columns: [3] });
});

test("heads together are their mean or their maximum, apart they are as they are", async () => {
  const selected = [
    [0, 0],
    [0, 1],
  ];
  const [mean] = await chosen({ selected_heads: selected }).resolveGrids(0, true, false);
  near(values(mean), [0.3, 0.2, 0.3, 0.2, 0.5, 0, 0, 0.5]);
  const [max] = await chosen({ selected_heads: selected, combine_heads: "max" }).resolveGrids(0, true, false);
  near(values(max), [0.5, 0.3, 0.4, 0.4, 1, 0, 0, 1]);
  const apart = await chosen({ selected_heads: selected }).resolveGrids(0, false, false);
  near(apart.flatMap(values), HEADS.flat());
});

test("a key that is hidden leaves its weight to the others of the row", async () => {
  const [first] = await chosen({ hide_keys: "first" }).resolveGrids(0, true, false);
  assert.deepEqual(first.columns, WORDS.slice(1));
  near(values(first), [0.6, 0.4, 0, 0, 0, 1]);
  const [picked] = await chosen({ hide_keys: "chosen", hidden_keys: [1, 2] }).resolveGrids(0, true, false);
  assert.deepEqual(picked.columns, ["[CLS]", "it"]);
  near(values(picked), [1, 0, 0, 1]);
});

test("separators are signs and special tokens; sinks draw 0.3 of the weight or more", async () => {
  const words = { columns: ["<s>", ",", "it's", "<|end|>"] };
  const separators = chosen({ hide_keys: "separators" }, { parts: [words] });
  assert.deepEqual(separators.hiddenKeys(stub(await separators.grid(0, 0, 0, false))), [0, 1, 3]);
  const sinking = chosen({ hide_keys: "sinks", head: 1 });
  assert.deepEqual(sinking.hiddenKeys(stub(await sinking.grid(0, 0, 1, false))), [0]); // means: 0.55, 0.05, 0.2, 0.2
});

test("pieces become words: weights are added over a word's keys, averaged over its queries", async () => {
  const groups = { rows: [0, 0], columns: [0, 1, 1, 2] };
  const [merged] = await chosen({ merge_subwords: true }, { parts: [{ groups }] }).resolveGrids(0, true, false);
  assert.deepEqual([merged.rows, merged.columns], [["undo"], ["[CLS]", "undo", "it"]]);
  near(values(merged), [0.25, 0.25, 0.5]);
  const both = chosen({ merge_subwords: true, hide_keys: "first" }, { parts: [{ groups }] });
  const [left] = await both.resolveGrids(0, true, false);
  assert.deepEqual(left.columns, ["undo", "it"]); // groups 1, 1, 2 are numbered anew
  near(values(left), [0.5, 0.5]);
});

test("a head is looked at closely only where nothing changes it", () => {
  assert.equal(chosen().unfiltered, true);
  for (const state of [{ mode: "words" }, { hide_keys: "first" }, { merge_subwords: true }])
    assert.equal(chosen(state).unfiltered, false);
  assert.equal(chosen({}, { viewDocument: { arrange: "steps" } }).unfiltered, false);
});

test("two captures stand side by side, with the second minus the first where they have the same size", async () => {
  const viewDocument = { arrange: "compare" };
  const parts = [{ name: "before" }, { name: "after" }];
  const selection = chosen({}, { viewDocument, parts });
  const { head } = selection.source;
  selection.source.head = (part, layer) => head.call(selection.source, part, layer, part); // another head in each
  const panels = await selection.panels(false);
  assert.deepEqual(
    panels.map(({ name }) => name),
    ["before", "after", "after − before"],
  );
  near(values(panels[2].grid), [-0.4, -0.2, 0.2, 0.4, 1, 0, 0, -1]);
  const others = chosen({}, { viewDocument, parts: [{}, { columns: [...WORDS, "?"], rows: ["q"] }] });
  others.source.head = async (part) => {
    const { rows, columns } = others.source.parts[part];
    return Grid.of(
      rows,
      columns,
      new Float32Array(rows.length * columns.length),
      new Uint8Array(rows.length * columns.length),
    );
  };
  assert.equal((await others.panels(false)).length, 2);
});

test("a step stands in the frame of the largest, absent where it has no words yet", async () => {
  const parts = [
    { rows: ["a"], columns: ["a", "b"] },
    { rows: ["a", "b"], columns: ["a", "b", "c"] },
  ];
  const selection = chosen({}, { viewDocument: { arrange: "steps" }, parts });
  selection.source.head = async () => Grid.of(["a"], ["a", "b"], Float32Array.of(0.25, 1), new Uint8Array(2));
  const grid = await selection.grid(0, 0, 0, false);
  assert.deepEqual([grid.rows, grid.columns], [parts[1].rows, parts[1].columns]);
  assert.deepEqual([...stub(grid).codes], [128, 255, 0, 0, 0, 0]);
  assert.deepEqual([...stub(grid).values], [0.25, 1, 0, 0, 0, 0]); // the numbers themselves, which codes round
  const codes = new Grid(["a"], ["a", "b"], Uint8Array.of(127, 255), new Uint8Array(2), { limit: 2, poolSize: 1 });
  selection.source.head = async () => codes;
  const other = await chosen({}, { viewDocument: { arrange: "steps" }, parts }).grid(0, 0, 0, false);
  assert.equal(other.rows.length, 2);
  const coded = stub(await selection.grid(0, 0, 0, false));
  assert.deepEqual([coded.values, coded.limit], [null, 2]);
  assert.deepEqual([...stub(grid).state], [0, 0, ABSENT, ABSENT, ABSENT, ABSENT]);
});

test("a caption names part, layer and head, or how several are combined", () => {
  assert.equal(chosen({ layer: 1 }).caption("head"), "layer 1, head 0");
  const parts = [{}, { name: "step 2" }];
  assert.equal(chosen({ part: 1 }, { parts }).caption("head"), "step 2, layer 0, head 0");
  const film = chosen({ part: 1 }, { parts, viewDocument: { arrange: "steps" } });
  assert.equal(film.caption("head"), "step 2 (2 of 2), layer 0, head 0");
  const selected = [
    [0, 1],
    [1, 0],
  ];
  assert.equal(chosen({ selected_heads: selected, combine_heads: "max" }).caption("head"), "max of heads 0.1, 1.0");
  assert.equal(chosen({ selected_heads: selected }).caption("links"), "heads 0.1, 1.0");
  assert.equal(chosen({ selected_heads: selected }).caption("sheet"), "2 layers × 2 heads, 2 marked");
  assert.equal(chosen({}, { parts: [{ layers: 1, heads: 1 }] }).caption("head"), "");
});

test("the kernel has more where it has more of any head that is shown", () => {
  assert.equal(chosen().isPartial, false);
  assert.equal(
    chosen({
      selected_heads: [
        [0, 0],
        [1, 0],
      ],
    }).isPartial,
    true,
  );
});

// Changes of attention weights, as plain values; `tfviz/look/edits.py` does the same to the same weights:
//   { site, head, kind: "zero" }                    the head gives nothing
//   { site, head, kind: "uniform" }                 it looks uniformly at all it may see
//   { site, head, kind: "hide", cells: [[q, k]] }   it may not look there; the row's other weights are scaled up
//   { site, head, kind: "pin", cells: [[q, k]], weight: 0.5 }   it looks there with this weight; the others are scaled
// A row that sees nothing stays as it is. It is an error to give a row more than 1, or less with no key to share the
// rest. `head` null means every head; a cell's query or key null means every one.

/** @import { Edit, Tensor } from "../types.js" */
/** @typedef {(row: Float32Array, query: number, edit: Edit) => void} RowEdit */

const SUM_TOLERANCE = 1e-6; // by which a row of weights may sum to more than 1

/** @type {Record<Edit["kind"], RowEdit>} */
const ROW_EDITS = { zero: (row) => row.fill(0), uniform: spread, hide: pin, pin };

/** @type {(weights: Tensor<"float32">, edits: Edit[]) => Tensor<"float32">} weights: [batch, head, query, key] */
export function applyEdits(weights, edits) {
  if (!edits.length) return weights;
  const data = weights.data.slice();
  const [batch, heads, queries, keys] = [1, 1, ...weights.shape].slice(-4);
  for (const edit of edits)
    for (let row = 0; row < batch * heads * queries; row++)
      if ((edit.head ?? null) === null || edit.head === Math.floor(row / queries) % heads)
        ROW_EDITS[edit.kind](data.subarray(row * keys, (row + 1) * keys), row % queries, edit);
  return { ...weights, data };
}

/** Make the weights of a row uniform over the keys it may see. @type {RowEdit} */
function spread(row) {
  const count = row.reduce((sum, weight) => sum + Number(weight > 0), 0);
  for (let key = 0; key < row.length; key++) row[key] = row[key] > 0 ? 1 / count : 0;
}

/** Set some weights of a row, and scale the others to the rest. @type {RowEdit} */
function pin(row, query, { cells = [], weight: pinnedWeight = 0 }) {
  const keys = cells.filter(([q]) => q === null || q === query).map(([, key]) => key);
  const pinned = Array.from(row, (_, key) => keys.includes(null) || keys.includes(key));
  const count = pinned.filter(Boolean).length;
  if (pinnedWeight * count > 1 + SUM_TOLERANCE)
    throw new Error(`${pinnedWeight} for ${count} keys of a query is more than 1 in all`);
  if (!count || row.every((weight) => weight === 0)) return;
  const unpinned = row.reduce((sum, weight, key) => sum + (pinned[key] ? 0 : weight), 0);
  const rest = Math.max(0, 1 - pinnedWeight * count);
  if (pinnedWeight && unpinned === 0 && rest > SUM_TOLERANCE)
    throw new Error(`${pinnedWeight} for ${count} keys of a query that sees no other to share the rest`);
  for (let key = 0; key < row.length; key++) {
    if (pinned[key]) row[key] = pinnedWeight;
    else row[key] = unpinned === 0 ? 0 : (row[key] / unpinned) * rest;
  }
}

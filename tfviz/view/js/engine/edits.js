// What a reader changes of an attention, as plain values; `tfviz/look/edits.py` does the same to the same weights.

/** @import { Operation } from "../types.d.ts" */
//   { site, head, do: "zero" }                    the head gives nothing
//   { site, head, do: "even" }                    it looks evenly at all it may see
//   { site, head, do: "hide", cells: [[q, k]] }   it may not look there; the row's other weights share what is left
//   { site, head, do: "pin", cells: [[q, k]], to: 0.5 }   it looks there with this weight, the others share the rest
// A row that sees nothing stays as it is; more than 1 given away in a row, or less with no other key to share the rest, is an error.
// `head` null means every head; a cell's query or key null means every one.

/** @type {Operation} The weights [batch, head, query, key] that flow on: the same ones if nothing is to be done. */
export function edited(machine, weights, edits) {
  if (!edits.length) return weights;
  const made = { ...weights, data: weights.data.slice() };
  const shape = [1, 1, ...weights.shape].slice(-4);
  const [batch, heads, queries, keys] = shape;
  for (const edit of edits)
    for (let text = 0; text < batch; text++)
      for (let head = 0; head < heads; head++) {
        if (edit.head !== null && edit.head !== undefined && edit.head !== head) continue;
        const start = (text * heads + head) * queries * keys;
        EDITS[edit.do](made.data.subarray(start, start + queries * keys), queries, keys, edit);
      }
  return made;
}

const SLACK = 1e-6; // of a sum of weights

const EDITS = {
  zero(head) {
    head.fill(0);
  },
  even(head, queries, keys) {
    for (let query = 0; query < queries; query++) {
      const row = head.subarray(query * keys, (query + 1) * keys);
      const open = row.reduce((count, weight) => count + (weight > 0), 0);
      for (let key = 0; key < keys; key++) row[key] = row[key] > 0 ? 1 / open : 0;
    }
  },
  hide(head, queries, keys, { cells }) {
    for (let query = 0; query < queries; query++)
      share(head.subarray(query * keys, (query + 1) * keys), chosen(cells, query, keys), 0);
  },
  pin(head, queries, keys, { cells, to }) {
    for (let query = 0; query < queries; query++)
      share(head.subarray(query * keys, (query + 1) * keys), chosen(cells, query, keys), to);
  },
};

// The keys that the cells name in a query's row.
function chosen(cells, query, keys) {
  const found = new Set();
  for (const [row, key] of cells)
    if (row === null || row === query) for (let k = 0; k < keys; k++) if (key === null || key === k) found.add(k);
  return found;
}

// Give each of the chosen this weight, and what is left to the others, in proportion; hidden rows may be left with zeros.
function share(row, keys, weight) {
  if (weight * keys.size > 1 + SLACK)
    throw new Error(`${weight} for ${keys.size} keys of a query is more than 1 in all`);
  if (!keys.size || row.every((old) => old === 0)) return;
  let others = 0;
  row.forEach((old, key) => {
    if (!keys.has(key)) others += old;
  });
  const left = Math.max(0, 1 - weight * keys.size);
  if (weight && others === 0 && left > SLACK)
    throw new Error(`${weight} for ${keys.size} keys of a query that sees no other to share the rest`);
  for (let key = 0; key < row.length; key++)
    row[key] = keys.has(key) ? weight : others === 0 ? 0 : (row[key] / others) * left;
}

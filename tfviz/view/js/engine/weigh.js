// Attention weights from queries and keys, behind a line of messages: { id, load: heads, bytes }, then
// { id, run: name } for the weights of a head, which is forgotten then.
import { Products } from "./products.js";
import { weightOf } from "./weights.js";

const ROWS = 64; // computed together

export function serve(port) {
  const products = Products.make();
  const heads = new Map();
  port.onmessage = async ({ data }) => {
    try {
      if (data.load) for (const [name, head] of Object.entries(data.load)) heads.set(name, unpacked(head, data.bytes));
      const codes = data.run && weigh(await products, heads.get(data.run));
      if (data.run) heads.delete(data.run);
      port.postMessage({ id: data.id, result: codes ?? null }, codes ? [codes.buffer] : []);
    } catch (error) {
      port.postMessage({ id: data.id, error: String(error.message ?? error) });
    }
  };
}

const unpacked = ({ query, key, ...rest }, bytes) => ({ ...rest, query: weightOf(query, bytes), key: weightOf(key, bytes) });

// 255 times the square root of each weight; what may not be seen is 0.
function weigh(products, { query, key, scale, rule }) {
  const [queries, width] = query.shape;
  const [keys] = key.shape;
  products.free();
  const kept = products.store(turned(key.data, keys, width), width, keys);
  const codes = new Uint8Array(queries * keys);
  for (let row = 0; row < queries; row += ROWS) {
    const count = Math.min(ROWS, queries - row);
    const scores = new Float32Array(count * keys);
    products.times(query.data.subarray(row * width, (row + count) * width), count, kept, null, scores);
    for (let i = 0; i < count; i++) {
      const [first, stop] = rule ? [rule[row + i], rule[queries + row + i]] : [0, keys];
      const from = (row + i) * keys;
      weights(scores.subarray(i * keys + first, i * keys + stop), scale, codes.subarray(from + first, from + stop));
    }
  }
  return codes;
}

function turned(matrix, rows, columns) {
  const made = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) made[column * rows + row] = matrix[row * columns + column];
  return made;
}

// The softmax of one row's scores, which are lost for it.
function weights(scores, scale, codes) {
  let most = -Infinity;
  for (let i = 0; i < scores.length; i++) {
    scores[i] *= scale;
    if (scores[i] > most) most = scores[i];
  }
  let sum = 0;
  for (let i = 0; i < scores.length; i++) {
    scores[i] = Math.exp(scores[i] - most);
    sum += scores[i];
  }
  for (let i = 0; i < scores.length; i++) codes[i] = 255 * Math.sqrt(scores[i] / sum) + 0.5;
}

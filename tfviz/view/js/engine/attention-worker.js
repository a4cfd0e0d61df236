// Attention weights from queries and keys, behind a line of messages: { id, load: heads, bytes }, then
// { id, run: name, inputs: { rows, cols, block } } for a range of a head: the codes of its blocks.
import { Products } from "./products.js";
import { weightOf } from "./weights.js";

const TOGETHER = 64; // rows computed together, or as many as a block has
const KEPT = 4; // heads at hand

export function serve(port) {
  const made = Products.make();
  const heads = new Map();
  port.onmessage = async ({ data }) => {
    try {
      const products = await made;
      if (data.load) {
        for (const [name, head] of Object.entries(data.load)) heads.set(name, new Head(head, data.bytes));
        while (heads.size > KEPT) heads.delete(heads.keys().next().value);
        port.postMessage({ id: data.id, result: null });
        return;
      }
      const codes = heads.get(data.run)?.codes(products, data.inputs) ?? null; // null: it has to be loaded again
      port.postMessage({ id: data.id, result: codes }, codes ? [codes.buffer] : []);
    } catch (error) {
      port.postMessage({ id: data.id, error: String(error.message ?? error) });
    }
  };
}

class Head {
  constructor({ query, key, scale, rule }, bytes) {
    const [queries, width] = query.shape;
    const [keys] = key.shape;
    this.queries = queries;
    this.keys = keys;
    this.width = width;
    this.scale = scale;
    this.rule = rule;
    this.query = weightOf(query, bytes).data;
    this.key = transposed(weightOf(key, bytes).data, keys, width);
    this.sums = new Float64Array(queries).fill(NaN); // logarithms of what each row's exponentials add up to
  }

  // 255 times the square root of the largest weight of each block; what may not be seen is 0.
  codes(products, { rows: [top, bottom], cols: [left, right], block }) {
    products.free();
    const whole = left === 0 && right === this.keys;
    const all = whole || this.sums.subarray(top, bottom).some(Number.isNaN);
    const [from, count] = all ? [0, this.keys] : [left, right - left];
    const kept = products.store(all ? this.key : between(this.key, this.keys, left, right), this.width, count);
    const wide = Math.ceil((right - left) / block);
    const codes = new Uint8Array(Math.ceil((bottom - top) / block) * wide);
    const together = Math.max(TOGETHER, block);
    for (let row = top; row < bottom; row += together) {
      const tall = Math.min(together, bottom - row);
      const scores = new Float32Array(tall * count);
      products.times(this.query.subarray(row * this.width, (row + tall) * this.width), tall, kept, null, scores);
      for (let i = 0; i < tall; i++) {
        const line = scores.subarray(i * count, (i + 1) * count);
        const to = codes.subarray(Math.floor((row + i - top) / block) * wide);
        this.weigh(row + i, line, from, left, right, block, to);
      }
    }
    return codes;
  }

  // One row of scores over the keys from `from` on, into blocks of the keys from left to right.
  weigh(row, scores, from, left, right, block, codes) {
    const { rule, scale, queries } = this;
    const [first, stop] = rule ? [rule[row], rule[queries + row]] : [0, this.keys];
    if (Number.isNaN(this.sums[row])) this.sums[row] = sum(scores.subarray(first - from, stop - from), scale);
    const add = -this.sums[row];
    const end = Math.min(stop, right);
    for (let key = Math.max(first, left); key < end; key++) {
      const code = 255 * Math.exp((scores[key - from] * scale + add) / 2) + 0.5; // the root of an exponential
      const at = block === 1 ? key - left : Math.floor((key - left) / block);
      if (code > codes[at]) codes[at] = code;
    }
  }
}

function sum(scores, scale) {
  let most = -Infinity;
  for (let i = 0; i < scores.length; i++) most = Math.max(most, scores[i] * scale);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += Math.exp(scores[i] * scale - most);
  return most + Math.log(total);
}

function transposed(matrix, rows, columns) {
  const made = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) made[column * rows + row] = matrix[row * columns + column];
  return made;
}

// Some columns of a matrix.
function between(matrix, columns, left, right) {
  const rows = matrix.length / columns;
  const made = new Float32Array(rows * (right - left));
  for (let row = 0; row < rows; row++)
    made.set(matrix.subarray(row * columns + left, row * columns + right), row * (right - left));
  return made;
}

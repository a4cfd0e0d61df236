// A worker that computes attention weights. It loads heads { query, key, scale, keyRanges }, and for a range { rows, columns,
// poolSize } of a head returns the codes of its blocks.

/** @import { Endpoint, WeightSpec } from "../types.js" */
/** @typedef {{ query: WeightSpec, key: WeightSpec, scale: number, keyRanges: ArrayLike<number> | null }} HeadSpec */
/** @typedef {{ rows: [number, number], columns: [number, number], poolSize: number }} Range */

import { MatmulKernel } from "./products.js";
import { answerRequests } from "./rpc.js";
import { weightOf } from "./weights.js";

const ROWS_PER_CHUNK = 64; // rows computed together, unless a block has more
const MAX_CACHED_HEADS = 4;

/** Answer the requests of a page for attention weights. @type {(endpoint: Endpoint) => void} */
export function serve(endpoint) {
  const loading = MatmulKernel.make();
  /** @type {Map<string, Head>} */
  const heads = new Map();
  answerRequests(endpoint, async ({ load, bytes, run, inputs }) => {
    const matmulKernel = await loading;
    if (load) {
      for (const [name, head] of Object.entries(load)) heads.set(name, new Head(head, bytes));
      for (const name of [...heads.keys()].slice(0, -MAX_CACHED_HEADS)) heads.delete(name);
      return {};
    }
    const result = heads.get(run)?.encode(matmulKernel, inputs); // null: the head has to be loaded again
    return { result, transfer: result ? [result.buffer] : [] };
  });
}

/** The queries and keys of one head, from which weights are computed row by row. */
class Head {
  /**
   * @param {HeadSpec} head its key ranges: for each query the first key that it may see, then for each the end of its keys
   * @param {Uint8Array} bytes
   */
  constructor({ query, key, scale, keyRanges }, bytes) {
    this.queries = query.shape[0];
    this.keys = key.shape[0];
    this.width = key.shape[1];
    this.scale = scale;
    this.keyRanges = keyRanges;
    this.query = /** @type {Float32Array} */ (weightOf(query, bytes).data);
    this.key = /** @type {Float32Array} */ (weightOf(key, bytes).data);
    this.logSums = new Float64Array(this.queries).fill(NaN); // of each row's exponentials, once they are known
  }

  /**
   * Return 255 times the square root of the largest weight of each block; 0 where nothing may be seen.
   * @param {MatmulKernel} matmulKernel
   * @param {Range} range
   */
  encode(matmulKernel, { rows: [top, bottom], columns: [left, right], poolSize }) {
    const { width } = this;
    const needsAll = this.logSums.subarray(top, bottom).some(Number.isNaN);
    const [first, end] = needsAll ? [0, this.keys] : [left, right];
    matmulKernel.free();
    const keys = matmulKernel.store(this.key.subarray(first * width, end * width), end - first, width);
    const columns = Math.ceil((right - left) / poolSize);
    const codes = new Uint8Array(Math.ceil((bottom - top) / poolSize) * columns);
    const step = Math.max(ROWS_PER_CHUNK, poolSize);
    for (let start = top; start < bottom; start += step) {
      const count = Math.min(step, bottom - start);
      const scores = new Float32Array(count * (end - first));
      matmulKernel.linear(this.query.subarray(start * width, (start + count) * width), count, keys, scores);
      for (let i = 0; i < count; i++) {
        const row = scores.subarray(i * (end - first), (i + 1) * (end - first));
        const to = codes.subarray(Math.floor((start + i - top) / poolSize) * columns);
        this.encodeRow(start + i, row, first, [left, right], poolSize, to);
      }
    }
    return codes;
  }

  /**
   * @param {number} query
   * @param {Float32Array} scores of the keys from `start` on
   * @param {number} start
   * @param {[number, number]} range of keys that are wanted
   * @param {number} poolSize
   * @param {Uint8Array} codes
   */
  encodeRow(query, scores, start, [left, right], poolSize, codes) {
    const { keyRanges, scale, queries } = this;
    const [first, end] = keyRanges ? [keyRanges[query], keyRanges[queries + query]] : [0, this.keys];
    if (Number.isNaN(this.logSums[query]))
      this.logSums[query] = logSumExp(scores.subarray(first - start, end - start), scale);
    const logSum = this.logSums[query];
    const last = Math.min(end, right);
    for (let key = Math.max(first, left); key < last; key++) {
      const code = 255 * Math.exp((scores[key - start] * scale - logSum) / 2) + 0.5; // the root of an exponential
      const at = poolSize === 1 ? key - left : Math.floor((key - left) / poolSize);
      if (code > codes[at]) codes[at] = code;
    }
  }
}

/**
 * Return the logarithm of the sum of exponentials of scaled scores.
 * @type {(scores: Float32Array, scale: number) => number}
 */
function logSumExp(scores, scale) {
  let largest = -Infinity;
  for (let i = 0; i < scores.length; i++) largest = Math.max(largest, scores[i] * scale);
  let sum = 0;
  for (let i = 0; i < scores.length; i++) sum += Math.exp(scores[i] * scale - largest);
  return largest + Math.log(sum);
}

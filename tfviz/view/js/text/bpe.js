// Byte-pair encoding. The pair that was learned first is merged first; of equal pairs, the leftmost.

import { toBytes } from "./characters.js";

const RANK_FACTOR = 2 ** 32; // heap items are rank * RANK_FACTOR + position, so that the smallest comes first

/** List the character that byte-level BPE writes for each byte: itself if it is printable, else one from U+0100 on. */
export function byteCharacters() {
  let others = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCharCode(printable ? byte : others++);
  });
}

/** A byte-pair encoder with its learned merges. */
export class BytePairEncoder {
  /** @type {Map<number, number>} */
  ranks = new Map();

  /**
   * @param {string[]} tokens
   * @param {number[]} merges the left, the right and the joined token of each pair, as one list of ids, in the order they
   *   were learned
   */
  constructor(tokens, merges) {
    const idOf = new Map(tokens.map((token, id) => [token, id]));
    this.size = tokens.length;
    this.merges = merges;
    this.letters = byteCharacters().map((character) => Number(idOf.get(character)));
    for (let i = 0; i < merges.length; i += 3) this.ranks.set(merges[i] * this.size + merges[i + 1], i / 3);
  }

  /** @param {string} word */
  encode(word) {
    const ids = Array.from(toBytes(word), (byte) => this.letters[byte]);
    const after = ids.map((_, index) => index + 1);
    const before = ids.map((_, index) => index - 1);
    /** @param {number} index */
    const rank = (index) =>
      after[index] < ids.length ? this.ranks.get(ids[index] * this.size + ids[after[index]]) : undefined;
    /** @type {number[]} */
    const heap = [];
    /** @param {number} index */
    const pushPair = (index) => {
      const order = rank(index);
      if (order !== undefined) heapPush(heap, order * RANK_FACTOR + index);
    };
    ids.forEach((_, index) => pushPair(index));
    while (heap.length) {
      const smallest = heapPop(heap);
      const [order, index] = [Math.floor(smallest / RANK_FACTOR), smallest % RANK_FACTOR];
      if (ids[index] < 0 || rank(index) !== order) continue; // one of the two was joined otherwise meanwhile
      const removed = after[index];
      ids[index] = this.merges[3 * order + 2];
      ids[removed] = -1;
      after[index] = after[removed];
      if (after[removed] < ids.length) before[after[removed]] = index;
      if (before[index] >= 0) pushPair(before[index]);
      pushPair(index);
    }
    return ids.filter((id) => id >= 0);
  }
}

/** @param {number[]} heap @param {number} value */
function heapPush(heap, value) {
  let at = heap.length;
  for (let above = (at - 1) >> 1; at && heap[above] > value; above = (at - 1) >> 1) {
    heap[at] = heap[above];
    at = above;
  }
  heap[at] = value;
}

/** @param {number[]} heap one number or more */
function heapPop(heap) {
  const [smallest, last] = [heap[0], Number(heap.pop())];
  if (!heap.length) return smallest;
  let at = 0;
  for (let below = 1; below < heap.length; below = 2 * at + 1) {
    if (below + 1 < heap.length && heap[below + 1] < heap[below]) below++;
    if (heap[below] >= last) break;
    heap[at] = heap[below];
    at = below;
  }
  heap[at] = last;
  return smallest;
}

// The binary data of a view: access to its pieces and masks, and functions that decode bytes.

import { FORBIDDEN } from "./grid.js";

/** @import { MasksDocument, HeadsDocument, ByteRange, ViewDocument } from "../documents.js" */

/**
 * The document of a view with its data, from which pieces are read by their position.
 * @template {ViewDocument} Document
 */
export class PageData {
  /** @type {Map<string, Promise<any>>} */
  cache = new Map();

  /**
   * @param {Document} viewDocument
   * @param {string | Uint8Array} data base64, or bytes
   */
  constructor(viewDocument, data) {
    this.viewDocument = viewDocument;
    this.data = data;
  }

  /** @param {ByteRange | [start: number, length: number, poolSize: number]} piece */
  slice([start, length]) {
    if (typeof this.data !== "string") return this.data.subarray(start, start + length);
    // every piece begins at a multiple of three bytes, which is a multiple of four letters of base64
    return bytesOf(this.data.slice((start / 3) * 4, Math.ceil((start + length) / 3) * 4)).subarray(0, length);
  }

  /** @param {ByteRange} piece float32 */
  numbers(piece) {
    return new Float32Array(this.slice(piece).slice().buffer);
  }

  /**
   * Return the state of each cell under a mask of the document; without a mask, all are allowed.
   * @param {number | null} index
   * @param {number} cells
   * @returns {Promise<Uint8Array>}
   */
  mask(index, cells) {
    return this.cached(`${index} ${cells}`, async () => {
      const state = new Uint8Array(cells);
      if (index === null) return state;
      const { masks } = /** @type {MasksDocument | HeadsDocument} */ (/** @type {ViewDocument} */ (this.viewDocument));
      const bits = await inflated(this.slice(masks[index]));
      for (let i = 0; i < cells; i++) if (!(bits[i >> 3] & (128 >> (i & 7)))) state[i] = FORBIDDEN;
      return state;
    });
  }

  /**
   * Return the value cached under a key, made at the first call.
   * @template Value
   * @param {string} key
   * @param {() => Promise<Value>} make
   * @returns {Promise<Value>}
   */
  cached(key, make) {
    const known = this.cache.get(key) ?? make();
    this.cache.set(key, known);
    return known;
  }
}

/** Decode base64. @param {string} base64 */
export function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/**
 * Decompress bytes. Writing and reading by hand takes a seventh of the time of a piped stream.
 * @param {Uint8Array} bytes
 */
export async function inflated(bytes) {
  const { writable, readable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  const reader = readable.getReader();
  writer
    .write(/** @type {Uint8Array<ArrayBuffer>} */ (bytes))
    .then(() => writer.close())
    .catch(() => {}); // the reader reports bad bytes as an error
  /** @type {Uint8Array[]} */
  const pieces = [];
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
  return pieces.length === 1 ? pieces[0] : concatenated(pieces);
}

/** Join arrays of bytes. @param {Uint8Array[]} pieces */
export function concatenated(pieces) {
  const bytes = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  pieces.reduce((at, piece) => (bytes.set(piece, at), at + piece.length), 0);
  return bytes;
}

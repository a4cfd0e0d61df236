// An instrument without a function: it shows the last results that the kernel computed, and its controls are disabled.

import { ARRAY_TYPES } from "../engine/tensors.js";
import { Instrument } from "./instrument.js";

/** @import { InteractState, ByteRange, StoredResult } from "../documents.js" */
/** @import { Choices, Tensor, ViewOptions } from "../types.js" */
/** @import { Data } from "./instrument.js" */

/** An instrument that shows stored results. */
export class StoredInstrument extends Instrument {
  /**
   * @param {HTMLElement} host
   * @param {Data} source
   * @param {Choices<InteractState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    super(host, source, store, options);
    this.argumentPane.inert = true;
    this.begin();
  }

  async evaluate() {
    return unpacked(this.source.viewDocument.results ?? {}, (piece) => this.source.slice(piece));
  }
}

/**
 * Read results by name from their bytes.
 * @param {Record<string, StoredResult>} results
 * @param {(piece: ByteRange) => Uint8Array} slice gives its bytes
 * @returns {Record<string, Tensor>}
 */
export function unpacked(results, slice) {
  /** @type {(stored: StoredResult) => any} */
  const tensor = ({ shape, dtype, byte_range }) => ({
    shape,
    dtype,
    data: new ARRAY_TYPES[dtype](slice(byte_range).slice().buffer),
  });
  return Object.fromEntries(Object.entries(results).map(([name, result]) => [name, tensor(result)]));
}

// Views of heads whose maps are stored in the page, or computed there from queries and keys when a head is opened.

import { HeadSource } from "../base/head-source.js";
import { inflated, concatenated } from "../base/page-data.js";
import { Engine } from "../engine/client.js";
import { HeadsView } from "./heads-view.js";

/** @import { HeadsDocument, HeadsState, ByteRange, QueriesAndKeys, StoredWeight } from "../documents.js" */
/** @import { Choices, ViewOptions } from "../types.js" */
/** @typedef {import("../base/page-data.js").PageData<HeadsDocument>} Page */

/** A view of heads whose maps are stored in the page. */
export class PageHeads extends HeadsView {
  /** @param {HTMLElement} host @param {Page} page @param {Choices<HeadsState>} store @param {ViewOptions} options */
  constructor(host, { viewDocument, data }, store, options) {
    super(host, new HeadSource(viewDocument, data), store, options);
  }
}

/** A view of heads whose maps the page's engine computes from queries and keys. */
export class LazyHeads extends HeadsView {
  /** @param {HTMLElement} host @param {Page} page @param {Choices<HeadsState>} store @param {ViewOptions} options */
  constructor(host, { viewDocument, data }, store, options) {
    const source = new HeadSource(viewDocument, data);
    const loader = new HeadLoader(source, new Engine(options.worker ?? null));
    source.ask = (...head) => loader.codes(...head);
    super(host, source, store, options);
  }
}

/** A loader that sends queries and keys to the engine and requests the codes of a head. */
class HeadLoader {
  /** @param {HeadSource} source @param {Engine} engine */
  constructor(source, engine) {
    this.source = source;
    this.engine = engine;
  }

  /** @type {import("../base/head-source.js").AskCodes} */
  async codes(part, layer, head, where) {
    const name = `${part}.${layer}.${head}`;
    const codes = await this.engine.run(name, where);
    if (codes) return codes;
    await this.load(name, part, layer, head);
    return this.engine.run(name, where);
  }

  /** @param {string} name @param {number} part @param {number} layer @param {number} head */
  async load(name, part, layer, head) {
    const { computed, key_ranges, heads } = this.source.parts[part];
    const { scale, query, key } = /** @type {QueriesAndKeys[]} */ (computed)[layer];
    const index = key_ranges?.[layer * heads + head] ?? null;
    /** @type {Uint8Array[]} */
    const bytes = [];
    const [left, right] = [query[head], key[Math.floor((head * key.length) / heads)]];
    const keyRanges = index === null ? null : await this.source.keyRanges(index);
    const inputs = { query: await this.pack(left, bytes), key: await this.pack(right, bytes), scale, keyRanges };
    return this.engine.load({ [name]: inputs }, concatenated(bytes));
  }

  /**
   * Describe a head's numbers for the engine, and add their bytes to the others.
   * @param {StoredWeight} weight
   * @param {Uint8Array[]} bytes
   */
  async pack({ byte_range, scale, ...stored }, bytes) {
    /** @param {ByteRange} where */
    const store = async (where) => {
      const piece = await inflated(this.source.slice(where));
      const start = bytes.reduce((size, other) => size + other.length, 0);
      bytes.push(piece);
      return [start, piece.length];
    };
    return { ...stored, byte_range: await store(byte_range), scale: scale && (await store(scale)) };
  }
}

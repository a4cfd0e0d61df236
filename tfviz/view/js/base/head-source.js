// A data source that decodes the maps of heads from a page's data: stored bytes -> colour codes -> grid.

import { TiledGrid } from "./tiled-grid.js";
import { ABSENT, FORBIDDEN, Grid, ALLOWED } from "./grid.js";
import { LruCache } from "./lru-cache.js";
import { PageData, inflated } from "./page-data.js";
import { TopKeys } from "./top-keys.js";

/** @import { HeadsDocument, HeadCodes } from "../documents.js" */
/** @import { AnyGrid, Range } from "../types.js" */
/**
 * @typedef {(part: number, layer: number, head: number, where: { poolSize: number } | Range) => Promise<Uint8Array>} AskCodes
 *   returns the codes of a head that the page does not contain in full: those of its allowed cells or, if parts have key ranges, of all cells in a
 *   range
 */

const MAX_CACHED_CELLS = 64e6; // cells of all heads that are cached in full
const MAX_HEAD_CELLS = 20e6; // a larger head is held in blocks only

/**
 * A source of the heads of a page as grids, which requests from the kernel or the engine what the page does not
 * contain.
 * @extends {PageData<HeadsDocument>}
 */
export class HeadSource extends PageData {
  /** @type {Map<string, Promise<Grid>>} */
  heads = new Map();
  /** @type {LruCache<Promise<AnyGrid>>} */
  fullHeads = new LruCache(2);
  /** @type {(TopKeys | null)[] | undefined} by part */
  topKeys;

  /**
   * @param {HeadsDocument} viewDocument
   * @param {string | Uint8Array} data
   * @param {AskCodes | null} ask null if the page contains everything
   */
  constructor(viewDocument, data, ask = null) {
    super(viewDocument, data);
    this.ask = ask;
  }

  get parts() {
    return this.viewDocument.parts;
  }

  /**
   * Return a head as the page has it, possibly in blocks.
   * @param {number} part
   * @param {number} layer
   * @param {number} head
   * @returns {Promise<Grid>}
   */
  head(part, layer, head) {
    const { head_codes, heads } = this.parts[part];
    const headIndex = layer * heads + head;
    const key = `${part}.${headIndex}`;
    const grid =
      this.heads.get(key) ??
      (this.topKeysOf(part)
        ? this.topKeysGrid(part, headIndex)
        : this.unpackedHead(part, headIndex, head_codes[headIndex]));
    this.heads.set(key, grid);
    return grid;
  }

  /** Return the strongest keys of a part that has only those; else null. @param {number} part */
  topKeysOf(part) {
    this.topKeys ??= this.parts.map((spec) =>
      spec.top ? new TopKeys(spec, ({ offset, length }) => inflated(this.slice([offset, length]))) : null,
    );
    return this.topKeys[part];
  }

  /**
   * Return a head of which only the strongest keys are known, as a sheet shows it.
   * @param {number} part
   * @param {number} headIndex the head, counted through all layers
   */
  topKeysGrid(part, headIndex) {
    const { rows, columns } = this.parts[part];
    return this.rangeGrid(part, headIndex, [0, rows.length], [0, columns.length], this.topKeysOf(part)?.poolSize ?? 1);
  }

  /**
   * Return a range of a head in blocks, from the kernel, the engine, or the strongest keys that are known.
   * @param {number} part
   * @param {number} headIndex
   * @param {[from: number, to: number]} down
   * @param {[from: number, to: number]} across
   * @param {number} poolSize
   */
  async rangeGrid(part, headIndex, down, across, poolSize) {
    const { rows, columns, key_ranges, heads } = this.parts[part];
    const range = { rows: down, columns: across, poolSize };
    const top = this.topKeysOf(part);
    const codes = await (top
      ? top.codes(headIndex, range)
      : this.requestCodes(part, Math.floor(headIndex / heads), headIndex % heads, range));
    const state = await this.rangeStates(key_ranges?.[headIndex] ?? null, down, across, poolSize);
    const grid = this.gridOfBlocks(rows.slice(...down), columns.slice(...across), codes, poolSize, state);
    if (!top) return grid;
    for (let i = 0; i < codes.length; i++) if (!codes[i] && state[i] === ALLOWED) state[i] = ABSENT;
    return Object.assign(grid, { rest: poolSize === 1 ? (await top.head(headIndex)).rest.subarray(...down) : null });
  }

  /** @param {number} part @param {number} at @param {HeadCodes} stored */
  async unpackedHead(part, at, { offset, length, pool_size }) {
    return this.decodedHead(part, at, await inflated(this.slice([offset, length])), pool_size);
  }

  /**
   * Tell whether a head has more cells than the page shows at once.
   * @param {number} part
   * @param {number} layer
   * @param {number} head
   */
  isPartial(part, layer, head) {
    const top = this.topKeysOf(part);
    if (top) return top.poolSize > 1;
    return Boolean(this.ask) && this.parts[part].head_codes[layer * this.parts[part].heads + head].pool_size > 1;
  }

  /**
   * Return a head in full, requesting it if the page has it only in blocks. The last few are cached.
   * @param {number} part
   * @param {number} layer
   * @param {number} head
   * @returns {Promise<AnyGrid>}
   */
  fullHead(part, layer, head) {
    if (!this.isPartial(part, layer, head)) return this.head(part, layer, head);
    const { rows, columns, heads } = this.parts[part];
    const key = `${part}.${layer * heads + head}`;
    this.fullHeads.capacity = Math.max(2, Math.floor(MAX_CACHED_CELLS / (rows.length * columns.length)));
    const grid = this.fullHeads.getOrMake(key, () => this.loadFull(part, layer, head));
    grid.catch(() => this.fullHeads.entries.delete(key));
    return grid;
  }

  /** @param {number} part @param {number} layer @param {number} head @param {{ poolSize: number } | Range} range */
  requestCodes(part, layer, head, range) {
    if (!this.ask) throw new Error("the page has no more of this head");
    return this.ask(part, layer, head, range);
  }

  /** @param {number} part @param {number} layer @param {number} head @returns {Promise<AnyGrid>} */
  async loadFull(part, layer, head) {
    const { rows, columns, key_ranges, heads } = this.parts[part];
    const at = layer * heads + head;
    if (!key_ranges) return this.decodedHead(part, at, await this.requestCodes(part, layer, head, { poolSize: 1 }), 1);
    let poolSize = 1;
    while ((rows.length * columns.length) / poolSize ** 2 > MAX_HEAD_CELLS) poolSize *= 2;
    const overview = await this.rangeGrid(part, at, [0, rows.length], [0, columns.length], poolSize);
    if (poolSize === 1) return overview;
    const tiled = new TiledGrid(rows, columns, overview, (...range) => this.rangeGrid(part, at, ...range));
    return Object.assign(tiled, { rest: (await this.topKeysOf(part)?.head(at))?.rest ?? null });
  }

  /** @param {number} part @param {number} at @param {Uint8Array} packed @param {number} poolSize */
  async decodedHead(part, at, packed, poolSize) {
    const { rows, columns, masks, key_ranges } = this.parts[part];
    if (key_ranges) {
      const state = await this.rangeStates(key_ranges[at], [0, rows.length], [0, columns.length], poolSize);
      return this.gridOfBlocks(rows, columns, packed, poolSize, state);
    }
    if (poolSize > 1) return this.coarseHead(part, packed, poolSize, masks ? masks[at] : null);
    const state = await this.mask(masks ? masks[at] : null, rows.length * columns.length);
    const codes = new Uint8Array(rows.length * columns.length);
    for (let i = 0, next = 0; i < codes.length; i++) if (state[i] === ALLOWED) codes[i] = packed[next++];
    return new Grid(rows, columns, codes, state, { values: await this.valuesOf(part, at) });
  }

  /** Return the weights of a head, where they are stored beside its codes. @param {number} part @param {number} at */
  async valuesOf(part, at) {
    const { rows, columns, values } = this.parts[part];
    if (!values) return null;
    const all = await this.cached(`values ${part}`, async () => {
      const bytes = await inflated(this.slice(values));
      return new Float32Array(bytes.slice().buffer); // a copy is aligned
    });
    const cells = rows.length * columns.length;
    return all.subarray(at * cells, (at + 1) * cells);
  }

  /** @param {number} part @param {Uint8Array} codes @param {number} poolSize @param {number | null} mask */
  async coarseHead(part, codes, poolSize, mask) {
    const { rows, columns } = this.parts[part];
    const state = await this.cached(`${mask} ${rows.length} ${columns.length} ${poolSize}`, () =>
      this.blockStates(part, poolSize, mask),
    );
    return this.gridOfBlocks(rows, columns, codes, poolSize, state);
  }

  /**
   * @param {string[]} rows
   * @param {string[]} columns
   * @param {Uint8Array} codes
   * @param {number} poolSize
   * @param {Uint8Array} state
   */
  gridOfBlocks(rows, columns, codes, poolSize, state) {
    if (poolSize === 1) return new Grid(rows, columns, codes, state);
    /** @param {string[]} words */
    const blockNames = (words) =>
      words.flatMap((word, i) => (i % poolSize ? [] : [`${word}…${words[Math.min(i + poolSize, words.length) - 1]}`]));
    return new Grid(blockNames(rows), blockNames(columns), codes, state, { poolSize });
  }

  /**
   * Return the state of each block under a mask: allowed if any of its cells is.
   * @param {number} part
   * @param {number} poolSize
   * @param {number | null} mask
   */
  async blockStates(part, poolSize, mask) {
    const { rows, columns } = this.parts[part];
    const colCount = Math.ceil(columns.length / poolSize);
    const fine = await this.mask(mask, rows.length * columns.length);
    const state = new Uint8Array(Math.ceil(rows.length / poolSize) * colCount).fill(FORBIDDEN);
    for (let row = 0, i = 0; row < rows.length; row++) {
      const start = Math.floor(row / poolSize) * colCount;
      for (let col = 0; col < columns.length; col++, i++)
        if (fine[i] === ALLOWED) state[start + Math.floor(col / poolSize)] = ALLOWED;
    }
    return state;
  }

  /**
   * Return the first key of each query, then for each query one past its last key.
   * @param {number} index
   * @returns {Promise<Int32Array>}
   */
  keyRanges(index) {
    return this.cached(
      `key ranges ${index}`,
      async () => new Int32Array((await inflated(this.slice(this.viewDocument.key_ranges[index]))).slice().buffer),
    );
  }

  /**
   * Return the state of each block in a range: allowed if any of its rows may see any of its keys.
   * @param {number | null} index
   * @param {[from: number, to: number]} rows
   * @param {[from: number, to: number]} columns
   * @param {number} poolSize
   */
  async rangeStates(index, [top, bottom], [left, right], poolSize) {
    const colCount = Math.ceil((right - left) / poolSize);
    const state = new Uint8Array(Math.ceil((bottom - top) / poolSize) * colCount);
    if (index === null) return state;
    const ranges = await this.keyRanges(index);
    state.fill(FORBIDDEN);
    for (let row = top; row < bottom; row++) {
      const first = Math.max(0, ranges[row] - left);
      const stop = Math.min(right, ranges[ranges.length / 2 + row]) - left;
      const start = Math.floor((row - top) / poolSize) * colCount;
      if (stop > first) state.fill(ALLOWED, start + Math.floor(first / poolSize), start + Math.ceil(stop / poolSize));
    }
    return state;
  }
}

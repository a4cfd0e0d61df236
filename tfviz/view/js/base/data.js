// Heads out of the page's data: base64 -> zlib -> the cells that the mask allows -> a grid.

import { TiledGrid } from "./tiled-grid.js";
import { ABSENT, FORBIDDEN, Grid, OPEN } from "./grid.js";
import { TopKeys } from "./top-keys.js";

const KEPT = 64e6; // cells of heads that are kept at hand
const WHOLE = 20e6; // cells of a head that is held whole

export class Source {
  heads = new Map();
  wholes = new Map();
  masks = new Map();
  /** @type {(TopKeys | null)[] | undefined} by part */
  tops;

  // document: what `tfviz.view.packed` describes; data: base64 text or bytes;
  // ask: where the page has not all, (part, layer, head, { rows, cols, block }) -> promise of the codes of a head: of
  // its open cells, or where parts have rules of all in a range of rows and columns, in blocks
  constructor(document, data, ask = null) {
    this.document = document;
    this.data = data;
    this.ask = ask;
  }

  get parts() {
    return this.document.parts;
  }

  // A head as it is in the page, possibly in blocks.
  head(part, layer, head) {
    const { blobs, heads } = this.parts[part];
    const at = layer * heads + head;
    const key = `${part}.${at}`;
    const made = () => (this.strongest(part) ? this.topped(part, at) : this.unpacked(part, at, blobs[at]));
    if (!this.heads.has(key)) this.heads.set(key, made());
    return this.heads.get(key);
  }

  // Of a part that has each query's strongest keys only, those; else null.
  strongest(part) {
    this.tops ??= this.parts.map((one) => (one.top ? new TopKeys(one, (blob) => inflated(this.slice(blob))) : null));
    return this.tops[part];
  }

  // A head of strongest keys as a sheet shows it.
  topped(part, at) {
    const { rows, cols } = this.parts[part];
    return this.ranged(part, at, [0, rows.length], [0, cols.length], this.strongest(part).block);
  }

  // A part of a head in blocks, from the kernel, the engine, or what is known of its strongest keys.
  async ranged(part, at, down, across, block) {
    const { rows, cols, rules, heads } = this.parts[part];
    const where = { rows: down, cols: across, block };
    const top = this.strongest(part);
    const codes = await (top ? top.codes(at, where) : this.ask(part, Math.floor(at / heads), at % heads, where));
    const state = await this.ruled(rules[at], down, across, block);
    const grid = this.blocked(rows.slice(...down), cols.slice(...across), codes, block, state);
    if (!top) return grid;
    for (let i = 0; i < codes.length; i++) if (!codes[i] && state[i] === OPEN) state[i] = ABSENT;
    return Object.assign(grid, { rest: block === 1 ? (await top.head(at)).rest.subarray(...down) : null });
  }

  async unpacked(part, at, blob) {
    return this.decoded(part, at, await inflated(this.slice(blob)), blob[2]);
  }

  // Whether there is more of a head than the page shows at once.
  partly(part, layer, head) {
    if (this.strongest(part)) return this.strongest(part).block > 1;
    return Boolean(this.ask) && this.parts[part].blobs[layer * this.parts[part].heads + head][2] > 1;
  }

  // A head in full, where the page has it in blocks only; the last few are kept.
  whole(part, layer, head) {
    if (!this.partly(part, layer, head)) return this.head(part, layer, head);
    const { rows, cols, heads } = this.parts[part];
    const key = `${part}.${layer * heads + head}`;
    const made = this.wholes.get(key) ?? this.asked(part, layer, head);
    this.wholes.delete(key); // to the end: the first is the one longest unused
    this.wholes.set(key, made);
    made.catch(() => this.wholes.delete(key));
    const most = Math.max(2, Math.floor(KEPT / (rows.length * cols.length)));
    while (this.wholes.size > most) this.wholes.delete(this.wholes.keys().next().value);
    return made;
  }

  async asked(part, layer, head) {
    const { rows, cols, rules, heads } = this.parts[part];
    const at = layer * heads + head;
    if (!rules) return this.decoded(part, at, await this.ask(part, layer, head, { block: 1 }), 1);
    let block = 1;
    while ((rows.length * cols.length) / block ** 2 > WHOLE) block *= 2;
    const whole = await this.ranged(part, at, [0, rows.length], [0, cols.length], block);
    if (block === 1) return whole;
    const deep = new TiledGrid(rows, cols, whole, (...range) => this.ranged(part, at, ...range));
    return Object.assign(deep, { rest: this.strongest(part) && (await this.strongest(part).head(at)).rest });
  }

  async decoded(part, at, packed, block) {
    const { rows, cols, masks, rules } = this.parts[part];
    if (rules) {
      const state = await this.ruled(rules[at], [0, rows.length], [0, cols.length], block);
      return this.blocked(rows, cols, packed, block, state);
    }
    if (block > 1) return this.blocks(part, packed, block, masks ? masks[at] : null);
    const state = await this.mask(masks ? masks[at] : null, rows.length * cols.length);
    const codes = new Uint8Array(rows.length * cols.length);
    for (let i = 0, next = 0; i < codes.length; i++) if (state[i] === OPEN) codes[i] = packed[next++];
    return new Grid(rows, cols, codes, state);
  }

  async blocks(part, codes, block, mask) {
    const { rows, cols } = this.parts[part];
    const state = await this.remembered(`${mask} ${rows.length} ${cols.length} ${block}`, () =>
      this.coarse(part, block, mask),
    );
    return this.blocked(rows, cols, codes, block, state);
  }

  blocked(rows, cols, codes, block, state) {
    if (block === 1) return new Grid(rows, cols, codes, state);
    const named = (words) => {
      const last = (i) => words[Math.min(i + block, words.length) - 1];
      return words.flatMap((word, i) => (i % block ? [] : [`${word}…${last(i)}`]));
    };
    return new Grid(named(rows), named(cols), codes, state, { block });
  }

  // A block is open where any of its cells is.
  async coarse(part, block, mask) {
    const { rows, cols } = this.parts[part];
    const wide = Math.ceil(cols.length / block);
    const fine = await this.mask(mask, rows.length * cols.length);
    const state = new Uint8Array(Math.ceil(rows.length / block) * wide).fill(FORBIDDEN);
    for (let row = 0, i = 0; row < rows.length; row++) {
      const start = Math.floor(row / block) * wide;
      for (let col = 0; col < cols.length; col++, i++)
        if (fine[i] === OPEN) state[start + Math.floor(col / block)] = OPEN;
    }
    return state;
  }

  mask(index, cells) {
    return this.remembered(`${index} ${cells}`, () => this.states(index, cells));
  }

  // A rule: each query's first key, then one past its last; null where all may look everywhere.
  rule(index) {
    return this.remembered(
      `rule ${index}`,
      async () => new Int32Array((await inflated(this.slice(this.document.rules[index]))).slice().buffer),
    );
  }

  // Of a range of rows and columns: a block is open where any of its rows may see any of its keys.
  async ruled(index, [top, bottom], [left, right], block) {
    const wide = Math.ceil((right - left) / block);
    const state = new Uint8Array(Math.ceil((bottom - top) / block) * wide);
    if (index === null) return state;
    const rule = await this.rule(index);
    state.fill(FORBIDDEN);
    for (let row = top; row < bottom; row++) {
      const first = Math.max(0, rule[row] - left);
      const stop = Math.min(right, rule[rule.length / 2 + row]) - left;
      const start = Math.floor((row - top) / block) * wide;
      if (stop > first) state.fill(OPEN, start + Math.floor(first / block), start + Math.ceil(stop / block));
    }
    return state;
  }

  remembered(key, make) {
    if (!this.masks.has(key)) this.masks.set(key, make());
    return this.masks.get(key);
  }

  async states(index, cells) {
    const state = new Uint8Array(cells); // OPEN, where nothing is forbidden
    if (index === null) return state;
    const bits = await inflated(this.slice(this.document.masks[index]));
    for (let i = 0; i < cells; i++) if (!(bits[i >> 3] & (128 >> (i & 7)))) state[i] = FORBIDDEN;
    return state;
  }

  slice([start, length]) {
    if (typeof this.data !== "string") return this.data.subarray(start, start + length);
    // every piece begins at a multiple of three bytes, which is a multiple of four letters of base64
    const text = atob(this.data.slice((start / 3) * 4, Math.ceil((start + length) / 3) * 4));
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }
}

// Written and read by hand, which takes a seventh of the time of a stream piped through.
export async function inflated(bytes) {
  const { writable, readable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  const reader = readable.getReader();
  writer
    .write(bytes)
    .then(() => writer.close())
    .catch(() => {}); // bad bytes are an error where they are read
  const pieces = [];
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value);
  if (pieces.length === 1) return pieces[0];
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  pieces.reduce((at, piece) => {
    whole.set(piece, at);
    return at + piece.length;
  }, 0);
  return whole;
}

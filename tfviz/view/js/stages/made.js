// Heads that the page computes from their queries and keys when they are opened.

import { inflated } from "../base/data.js";
import { Grid } from "../base/grid.js";
import { Engine } from "../engine/client.js";
import { Explorer } from "./explorer.js";

const LARGEST_HEAD = 64e6; // cells of a head that is computed whole

export class Made {
  constructor(host, source, store, takes) {
    const maker = new Maker(source, takes.engine ?? new Engine(ENGINE));
    source.ask = (...head) => maker.head(...head);
    return new Explorer(host, source, store, takes);
  }
}

class Maker {
  constructor(source, engine) {
    Object.assign(this, { source, engine });
  }

  async head(at, layer, head) {
    const { rows, cols, made, rules, heads } = this.source.parts[at];
    if (rows.length * cols.length > LARGEST_HEAD) return this.source.head(at, layer, head);
    const { scale, query, key } = made[layer];
    const index = rules[layer * heads + head];
    const bytes = [];
    const [left, right] = [query[head], key[Math.floor((head * key.length) / heads)]];
    const told = { query: await this.sent(left, bytes), key: await this.sent(right, bytes), scale };
    told.rule = index === null ? null : await this.source.rule(index);
    const name = `${at}.${layer}.${head}`;
    await this.engine.load({ [name]: told }, together(bytes));
    const codes = await this.engine.run(name);
    return new Grid(rows, cols, codes, await this.source.ruled(index, rows.length, cols.length, 1));
  }

  // A head's numbers as the engine takes them; their bytes go where the others are.
  async sent({ at, scale, ...told }, bytes) {
    const put = async (where) => {
      const piece = await inflated(this.source.slice(where));
      const start = bytes.reduce((size, other) => size + other.length, 0);
      bytes.push(piece);
      return [start, piece.length];
    };
    return { ...told, at: await put(at), scale: scale && (await put(scale)) };
  }
}

function together(pieces) {
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  pieces.reduce((at, piece) => (whole.set(piece, at), at + piece.length), 0);
  return whole;
}

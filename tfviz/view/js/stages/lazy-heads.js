// Heads that the page computes from their queries and keys when they are opened.

import { inflated } from "../base/data.js";
import { Engine } from "../engine/client.js";
import { Explorer } from "./explorer.js";

export class LazyHeads {
  constructor(host, source, store, options) {
    const maker = new HeadLoader(source, new Engine(options.worker));
    source.ask = (...head) => maker.codes(...head);
    return new Explorer(host, source, store, options);
  }
}

class HeadLoader {
  constructor(source, engine) {
    this.source = source;
    this.engine = engine;
  }

  async codes(part, layer, head, where) {
    const name = `${part}.${layer}.${head}`;
    const found = await this.engine.run(name, where);
    if (found) return found;
    await this.load(name, part, layer, head);
    return this.engine.run(name, where);
  }

  async load(name, part, layer, head) {
    const { made, rules, heads } = this.source.parts[part];
    const { scale, query, key } = made[layer];
    const index = rules[layer * heads + head];
    const bytes = [];
    const [left, right] = [query[head], key[Math.floor((head * key.length) / heads)]];
    const told = { query: await this.sent(left, bytes), key: await this.sent(right, bytes), scale };
    told.rule = index === null ? null : await this.source.rule(index);
    return this.engine.load({ [name]: told }, together(bytes));
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

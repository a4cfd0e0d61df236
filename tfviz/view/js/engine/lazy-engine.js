// The engine of a view, which starts with the first run, closes with the view, and starts again if it is needed
// later.

/** @import { RunOptions } from "../types.js" */
/** @import { Engine } from "./client.js" */

/** An engine that is opened and loaded when it is needed. */
export class LazyEngine {
  /** @type {Engine | null} */
  engine = null;
  /** Resolves once the engine has the programs. @type {Promise<void>} */
  ready = Promise.resolve();
  /** @type {Promise<null>} resolves when the engine is closed */
  closed = Promise.resolve(null);
  /** @type {(value: null) => void} */
  resolveClosed = () => {};

  /** @param {() => Engine} open @param {(engine: Engine) => Promise<void>} load gives it the programs */
  constructor(open, load) {
    this.open = open;
    this.load = load;
  }

  start() {
    const engine = this.open();
    this.engine = engine;
    this.ready = this.load(engine);
    this.ready.catch(() => {}); // an error is reported where the answer is awaited
    this.closed = new Promise((resolve) => {
      this.resolveClosed = resolve;
    });
    return engine;
  }

  close() {
    this.engine?.close();
    this.engine = null;
    this.resolveClosed(null);
  }

  /**
   * Run a program; null if a newer request on this channel replaced it, or if the engine is closed meanwhile.
   * @param {string} channel
   * @param {string} program
   * @param {Record<string, any>} inputs
   * @param {RunOptions} [options]
   */
  async request(channel, program, inputs, options) {
    const engine = this.engine ?? this.start();
    const { closed } = this;
    await Promise.race([this.ready, closed]);
    return Promise.race([engine.runLatest(channel, program, inputs, options), closed]);
  }
}

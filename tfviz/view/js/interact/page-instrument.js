// An instrument whose function runs in the page, as programs in the engine.

import { Engine } from "../engine/client.js";
import { Instrument } from "./instrument.js";

/** @import { InteractState, ByteRange } from "../documents.js" */
/** @import { Choices, ViewOptions } from "../types.js" */
/** @import { Data } from "./instrument.js" */

/** An instrument that evaluates its function in an engine of its own. */
export class PageInstrument extends Instrument {
  /** @type {Engine | null} null while the view is off the page */
  engine = null;
  /** @type {Promise<any> | null} */
  loaded = null;

  /**
   * @param {HTMLElement} host
   * @param {Data} source
   * @param {Choices<InteractState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    super(host, source, store, options);
    this.worker = options.worker ?? null;
    // A worker runs until it is terminated, so a view that is off the page has none.
    this.watcher = new ResizeObserver(() => host.isConnected || this.suspend());
    this.watcher.observe(host);
    this.begin();
  }

  start() {
    const { programs = {}, data } = this.source.viewDocument;
    const engine = new Engine(this.worker);
    this.loaded = engine.load(programs, this.source.slice(/** @type {ByteRange} */ (data)));
    this.loaded.catch(() => {}); // the error is reported where the answer is awaited
    return (this.engine = engine);
  }

  suspend() {
    this.engine?.close();
    this.engine = null;
    this.requested = this.computed; // request the last unanswered values again
  }

  /**
   * Run the programs for a change of the controls. Of the changes during a run, only the last is answered.
   * @param {InteractState["values"]} values
   */
  async evaluate(values) {
    const { discrete } = this.source.viewDocument;
    const key = discrete.map((name) => this.controls[name].choice(values[name])).join(".");
    /** @type {Record<string, { shape: number[], data: ArrayLike<number> }>} */
    const inputs = { nothing: { shape: [], data: [0] } }; // if the program has menus and switches only
    for (const [name, control] of Object.entries(this.controls))
      if (!discrete.includes(name)) inputs[name] = control.input(values[name]);
    const engine = this.engine ?? this.start();
    await this.loaded;
    return (await engine.runLatest("values", key, inputs))?.outputs ?? null;
  }

  end() {
    super.end();
    this.watcher.disconnect();
    this.suspend();
  }
}

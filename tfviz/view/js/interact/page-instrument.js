// An instrument whose function runs in the page, as programs in the engine.

import { whenRemoved } from "../base/elements.js";
import { Engine } from "../engine/client.js";
import { LazyEngine } from "../engine/lazy-engine.js";
import { Instrument } from "./instrument.js";

/** @import { InteractState, ByteRange } from "../documents.js" */
/** @import { Choices, ViewOptions } from "../types.js" */
/** @import { Data } from "./instrument.js" */

/** An instrument that evaluates its function in an engine of its own. */
export class PageInstrument extends Instrument {
  /**
   * @param {HTMLElement} host
   * @param {Data} source
   * @param {Choices<InteractState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    super(host, source, store, options);
    const { programs = {}, data } = source.viewDocument;
    this.engine = new LazyEngine(
      () => new Engine(options.worker ?? null),
      (engine) => engine.load(programs, source.slice(/** @type {ByteRange} */ (data))),
    );
    this.unwatch = whenRemoved(host, () => this.suspend());
    this.begin();
  }

  suspend() {
    this.engine.close();
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
    return (await this.engine.request("values", key, inputs))?.outputs ?? null;
  }

  end() {
    super.end();
    this.unwatch();
    this.suspend();
  }
}

// A function that answers in the page itself, with no kernel: its programs run in the engine.

import { Engine } from "../engine/client.js";
import { Instrument } from "./instrument.js";

export class Standalone extends Instrument {
  constructor(host, source, store, options) {
    super(host, source, store, options);
    this.worker = options.worker;
    // A worker lives until it is told to stop, whatever becomes of its view: one that is off the page has none.
    this.watcher = new ResizeObserver(() => host.isConnected || this.rest());
    this.watcher.observe(host);
    this.begin();
  }

  start() {
    const { programs, data } = this.source.document;
    this.engine = new Engine(this.worker);
    this.loaded = this.engine.load(programs, this.source.slice(data));
    this.loaded.catch(() => {}); // told where it is waited for
  }

  rest() {
    this.engine?.close();
    this.engine = null;
    this.asked = this.answered; // what was asked last and not answered is asked again
  }

  // One run for each change; of what is asked while one runs, only the last is answered.
  async answer(values) {
    const { chosen } = this.source.document;
    const key = chosen.map((name) => this.controls[name].choice(values[name])).join(".");
    const inputs = { nothing: { shape: [], data: [0] } }; // of a program that has choices only
    for (const [name, control] of Object.entries(this.controls))
      if (!chosen.includes(name)) inputs[name] = control.input(values[name]);
    if (!this.engine) this.start();
    const { engine } = this;
    await this.loaded;
    return (await engine.latest("values", key, inputs))?.outputs ?? null;
  }

  end() {
    super.end();
    this.watcher.disconnect();
    this.rest();
  }
}

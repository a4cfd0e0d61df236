// An instrument whose function runs in the kernel.

import { LatestCallQueue } from "../engine/latest-call-queue.js";
import { Instrument } from "./instrument.js";
import { unpacked } from "./stored-instrument.js";

/** @import { InteractState } from "../documents.js" */
/** @import { Choices } from "../types.js" */
/** @import { Data } from "./instrument.js" */

/** An instrument that sends each change of its controls to the kernel. */
export class KernelInstrument extends Instrument {
  channel = new LatestCallQueue();

  /**
   * @param {HTMLElement} host
   * @param {Data} source
   * @param {Choices<InteractState>} store
   * @param {import("../base/kernel-client.js").KernelClient} kernel
   */
  constructor(host, source, store, kernel) {
    super(host, source, store, { page: () => kernel.page() });
    this.kernel = kernel;
    this.begin();
  }

  /** @param {InteractState["values"]} values */
  async evaluate(values) {
    for (const control of Object.values(this.controls))
      if (control.spec.kind === "text") control.input(values[control.spec.name]);
    return this.channel.run(async () => {
      const { content, buffers: pieces } = await this.kernel.ask({ values });
      return unpacked(content.results, ([start, length]) => pieces[0].slice(start, start + length));
    });
  }
}

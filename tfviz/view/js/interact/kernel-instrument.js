// A function that a kernel answers.

import { Instrument } from "./instrument.js";
import { unpacked } from "./snapshot.js";

/** @import { InteractState } from "../documents.d.ts" */
/** @import { Choices } from "../types.d.ts" */
/** @import { Data } from "./instrument.js" */

export class KernelInstrument extends Instrument {
  /** @type {((turn: boolean | null) => void) | null} tells a question that waits that it is its turn, or too late */
  next = null;
  busy = false;

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
  async answer(values) {
    for (const control of Object.values(this.controls))
      if (control.spec.kind === "text") control.input(values[control.name]);
    return this.latest(values);
  }

  /**
   * Ask one question at a time: of those that come meanwhile, only the last is asked.
   * @param {InteractState["values"]} values
   */
  async latest(values) {
    this.next?.(null);
    if (this.busy) {
      const turn = await new Promise((resolve) => (this.next = resolve));
      if (!turn) return null;
    }
    this.next = null;
    this.busy = true;
    try {
      const { content, pieces } = await this.kernel.ask({ values });
      return unpacked(content.results, ([start, length]) => pieces[0].slice(start, start + length));
    } finally {
      this.busy = false;
      /** @type {((turn: boolean) => void) | null} */ (this.next)?.(true);
    }
  }
}

// A function that a kernel answers.

import { Instrument } from "./instrument.js";
import { unpacked } from "./snapshot.js";

export class KernelInstrument extends Instrument {
  constructor(host, source, store, kernel) {
    super(host, source, store, { page: () => kernel.page() });
    this.kernel = kernel;
    this.begin();
  }

  async answer(values) {
    for (const control of Object.values(this.controls))
      if (control.spec.kind === "text") control.input(values[control.name]);
    return this.latest(values);
  }

  // One question at a time; of what is asked meanwhile only the last is put.
  async latest(values) {
    this.next?.(null);
    if (this.busy) {
      const turn = await new Promise((resolve) => (this.next = resolve));
      if (!turn) return null;
    }
    this.next = null;
    this.busy = true;
    try {
      const { told, pieces } = await this.kernel.ask({ values });
      return unpacked(told.results, ([start, length]) => pieces[0].slice(start, start + length));
    } finally {
      this.busy = false;
      this.next?.(true);
    }
  }
}

// A function that a kernel answers.

import { Instrument } from "./instrument.js";
import { unpacked } from "./left.js";

export class Answered extends Instrument {
  constructor(host, source, store, questions) {
    super(host, source, store, { page: () => questions.page() });
    this.questions = questions;
    this.begin();
  }

  async answer(values) {
    for (const gear of Object.values(this.gears)) if (gear.control.kind === "text") gear.input(values[gear.name]);
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
      const { told, pieces } = await this.questions.ask({ values });
      return unpacked(told.results, ([start, length]) => pieces[0].slice(start, start + length));
    } finally {
      this.busy = false;
      this.next?.(true);
    }
  }
}

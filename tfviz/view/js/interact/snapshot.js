// What a kernel left behind: the last that it answered, with controls that say where they stood and turn no more.

import { Instrument } from "./instrument.js";

const KINDS_OF_NUMBERS = { float32: Float32Array, int64: Int32Array, bool: Uint8Array };

export class Snapshot extends Instrument {
  constructor(host, source, store, options) {
    super(host, source, store, options);
    this.knobs.inert = true;
    this.begin();
  }

  async answer() {
    return unpacked(this.source.document.answer, (piece) => this.source.slice(piece));
  }
}

// answer: name -> { shape, dtype, at }; slice(at): its bytes
export function unpacked(answer, slice) {
  const tensor = ({ shape, dtype, at }) => ({
    shape,
    dtype,
    data: new KINDS_OF_NUMBERS[dtype](slice(at).slice().buffer),
  });
  return Object.fromEntries(Object.entries(answer).map(([name, one]) => [name, tensor(one)]));
}

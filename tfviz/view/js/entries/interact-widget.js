// The entry point for instruments that a kernel answers.

import { PageData } from "../base/page-data.js";
import { TraitStore, widget } from "../base/widget.js";
import { KernelInstrument } from "../interact/kernel-instrument.js";

export default widget((host, model, kernel) => {
  const source = new PageData(model.get("document"), new Uint8Array());
  return new KernelInstrument(host, source, new TraitStore(model, ["values"]), kernel);
});

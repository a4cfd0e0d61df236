// Functions with controls, answered by a kernel.

import { Source } from "../base/data.js";
import { TraitStore, widget } from "../base/widget.js";
import { Answered } from "../interact/answered.js";

export default widget((host, model, questions) => {
  const source = new Source(model.get("document"), new Uint8Array());
  return new Answered(host, source, new TraitStore(model, ["values"]), questions);
});

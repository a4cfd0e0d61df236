// The entry point for studios in a widget, whose models stay in Python.

import { TraitStore, widget } from "../base/widget.js";
import { kernelEngine, kernelTokenizer } from "../studios/kernel-adapters.js";
import { STUDIOS } from "../studios/kinds.js";

/** A store whose choices are the members of a single trait, `state`. */
class StateStore extends TraitStore {
  /** @param {any} name @returns {any} */
  get(name) {
    return super.get("state")[name];
  }

  /** @param {Record<string, any>} changes */
  set(changes) {
    super.set({ state: { ...super.get("state"), ...changes } });
  }
}

export default widget((host, model, kernel) => {
  const described = model.get("document");
  const store = new StateStore(model, ["state"]);
  return new STUDIOS[described.kind](host, { document: described, data: "" }, store, {
    page: () => kernel.page(),
    engine: () => kernelEngine(kernel),
    tokenizer: kernelTokenizer(kernel),
  });
});

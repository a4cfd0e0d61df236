// Studios in a widget, whose models stay in Python.

import { TraitStore, widget } from "../base/widget.js";
import { kernelEngine, kernelTokenizer } from "./kernel-adapters.js";

/** @import { Studio, StudioArguments } from "./studio.js" */

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

/** Make a widget of studio classes, by the kind of their document. @param {Record<string, new (...args: StudioArguments<any>) => Studio<any>>} studios */
export const studioWidget = (studios) =>
  widget((host, model, kernel) => {
    const viewDocument = model.get("document");
    const store = new StateStore(model, ["state"]);
    return new studios[viewDocument.kind](host, { viewDocument, data: "" }, store, {
      page: () => kernel.page(),
      engine: () => kernelEngine(kernel),
      tokenizer: kernelTokenizer(kernel),
    });
  });

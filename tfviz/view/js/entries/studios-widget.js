// Models to question, which stay in Python.

import { TraitStore, widget } from "../base/widget.js";
import { Classifier } from "../studios/classifier.js";
import { Filler } from "../studios/filler.js";
import { ImageClassifier } from "../studios/image-classifier.js";
import { kernelEngine, kernelVocabulary } from "../studios/kernel.js";
import { Translator } from "../studios/translator.js";
import { Writer } from "../studios/writer.js";

/** @import { Studio, StudioOptions } from "../studios/studio.js" */

/**
 * @type {Record<string, new (host: HTMLElement, source: any, store: StateStore, options: StudioOptions) => Studio<any>>}
 */
const STUDIOS = {
  write: Writer,
  classify: Classifier,
  "classify-image": ImageClassifier,
  fill: Filler,
  translate: Translator,
};

/** A store whose choices are the members of one trait. */
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
    vocabulary: kernelVocabulary(kernel),
  });
});

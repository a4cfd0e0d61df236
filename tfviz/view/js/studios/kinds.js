// The studio classes by the kind of their document.

import { Classifier } from "./classifier.js";
import { Filler } from "./filler.js";
import { ImageClassifier } from "./image-classifier.js";
import { Translator } from "./translator.js";
import { Writer } from "./writer.js";

/** @import { Studio, StudioArguments } from "./studio.js" */

/** @type {Record<string, new (...args: StudioArguments<any>) => Studio<any>>} */
export const STUDIOS = {
  write: Writer,
  translate: Translator,
  classify: Classifier,
  "classify-image": ImageClassifier,
  fill: Filler,
};

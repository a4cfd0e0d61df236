// Models to question, in a page.

import { viewMounter } from "../base/page.js";
import { Classifier } from "../studios/classifier.js";
import { Filler } from "../studios/filler.js";
import { ImageClassifier } from "../studios/image-classifier.js";
import { Translator } from "../studios/translator.js";
import { Writer } from "../studios/writer.js";

export const mount = viewMounter({
  write: Writer,
  translate: Translator,
  classify: Classifier,
  "classify-image": ImageClassifier,
  fill: Filler,
});

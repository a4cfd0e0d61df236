// The studio classes by the kind of their document; that of patching has a bundle of its own.

import { ClassifyStudio } from "./classify/classify-studio.js";
import { FillStudio } from "./fill/fill-studio.js";
import { ClassifyImageStudio } from "./image/classify-image-studio.js";
import { TranslateStudio } from "./translate/translate-studio.js";
import { WriteStudio } from "./write/write-studio.js";

/** @import { Studio, StudioArguments } from "./studio.js" */

/** @type {Record<string, new (...args: StudioArguments<any>) => Studio<any>>} */
export const STUDIOS = {
  write: WriteStudio,
  translate: TranslateStudio,
  classify: ClassifyStudio,
  "classify-image": ClassifyImageStudio,
  fill: FillStudio,
};

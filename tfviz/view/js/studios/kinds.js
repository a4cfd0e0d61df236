// The studio classes by the kind of their document.

import { ClassifyStudio } from "./classify-studio.js";
import { FillStudio } from "./fill-studio.js";
import { ClassifyImageStudio } from "./classify-image-studio.js";
import { TranslateStudio } from "./translate-studio.js";
import { WriteStudio } from "./write-studio.js";

/** @import { Studio, StudioArguments } from "./studio.js" */

/** @type {Record<string, new (...args: StudioArguments<any>) => Studio<any>>} */
export const STUDIOS = {
  write: WriteStudio,
  translate: TranslateStudio,
  classify: ClassifyStudio,
  "classify-image": ClassifyImageStudio,
  fill: FillStudio,
};

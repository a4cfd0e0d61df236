// The same with text to type, which needs vocabularies.

import { Alone } from "./alone.js";
import { GEARS } from "./gears.js";
import { TextGear } from "./typing.js";

export class Reading extends Alone {
  constructor(host, source, store, takes) {
    super(host, source, store, takes, { ...GEARS, text: TextGear });
  }
}

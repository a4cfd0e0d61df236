// The same with text to type, which needs vocabularies.

import { Alone } from "./alone.js";
import { ALL_GEARS } from "./allgears.js";
import { TextGear } from "./typing.js";

export class Reading extends Alone {
  constructor(host, source, store, takes) {
    super(host, source, store, takes, { ...ALL_GEARS, text: TextGear });
  }
}

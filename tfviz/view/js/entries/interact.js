// The entry point for instruments in a page.

import { viewMounter } from "../base/page.js";
import { PageInstrument } from "../interact/page-instrument.js";
import { StoredInstrument } from "../interact/stored-instrument.js";

export const mount = viewMounter({ interact: PageInstrument, "interact-snapshot": StoredInstrument });

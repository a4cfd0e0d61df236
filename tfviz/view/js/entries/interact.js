// The entry point for instruments in a page.

import { viewMounter } from "../base/page.js";
import { Standalone } from "../interact/standalone.js";
import { Snapshot } from "../interact/snapshot.js";

export const mount = viewMounter({ interact: Standalone, "interact-snapshot": Snapshot });

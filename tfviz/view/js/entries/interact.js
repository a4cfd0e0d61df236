// Functions with controls, in a page.

import { waking } from "../base/page.js";
import { Standalone } from "../interact/standalone.js";
import { Snapshot } from "../interact/snapshot.js";

export const wake = waking({ interact: Standalone, "interact-snapshot": Snapshot });

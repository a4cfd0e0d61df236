// Heads of attention, in a page.

import { waking } from "../base/page.js";
import { Explorer } from "../stages/explorer.js";
import { LazyHeads } from "../stages/lazy-heads.js";

export const wake = waking({ heads: Explorer, "heads-made": LazyHeads });

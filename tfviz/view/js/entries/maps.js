// Heads of attention, in a page.

import { waking } from "../base/page.js";
import { LazyHeads, PageHeads } from "../stages/lazy-heads.js";

export const wake = waking({ heads: PageHeads, "heads-computed": LazyHeads });

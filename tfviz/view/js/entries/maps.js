// The entry point for views of heads in a page.

import { viewMounter } from "../base/page.js";
import { LazyHeads, PageHeads } from "../views/lazy-heads.js";

export const mount = viewMounter({ heads: PageHeads, "heads-computed": LazyHeads });

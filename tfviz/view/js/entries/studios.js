// The entry point for studios in a page.

import { viewMounter } from "../base/page.js";
import { STUDIOS } from "../studios/kinds.js";

export const mount = viewMounter(STUDIOS);

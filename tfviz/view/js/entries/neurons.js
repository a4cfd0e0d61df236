// The entry point for views of queries and keys in a page.

import { viewMounter } from "../base/page.js";
import { Neurons } from "../views/neurons.js";

export const mount = viewMounter({ neurons: Neurons });

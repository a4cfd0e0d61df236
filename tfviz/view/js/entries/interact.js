// Functions with controls, in a page.

import { waking } from "../base/page.js";
import { Alone } from "../interact/alone.js";
import { Left } from "../interact/left.js";

export const wake = waking({ interact: Alone, "interact-left": Left });

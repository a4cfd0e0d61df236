// The entry point for views of masks, tables, tokens with numbers, and points in a page.

import { viewMounter } from "../base/page.js";
import { MaskLab } from "../stages/mask-lab.js";
import { Points } from "../stages/points.js";
import { Tables } from "../stages/tables.js";
import { Tokens } from "../stages/tokens.js";

export const mount = viewMounter({ masks: MaskLab, tables: Tables, tokens: Tokens, points: Points });

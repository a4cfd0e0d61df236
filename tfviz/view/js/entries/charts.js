// The entry point for views of masks, tables, tokens with numbers, and points in a page.

import { viewMounter } from "../base/page.js";
import { MaskLab } from "../views/mask-lab.js";
import { ScatterPlot } from "../views/scatter-plot.js";
import { Tables } from "../views/tables.js";
import { Tokens } from "../views/tokens.js";

export const mount = viewMounter({ masks: MaskLab, tables: Tables, tokens: Tokens, points: ScatterPlot });

// The ways to draw a result, by name.

import { BarPanel, GridPanel, NumberPanel } from "./tablepanels.js";

export const PANELS = { grid: GridPanel, bars: BarPanel, number: NumberPanel };

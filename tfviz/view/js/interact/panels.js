// The ways to draw a result, by name.

import { ArrowPanel, DotPanel, GraphPanel } from "./planepanels.js";
import { BarPanel, GridPanel, NumberPanel } from "./tablepanels.js";
import { LinePanel, WordPanel } from "./textpanels.js";

export const PANELS = {
  grid: GridPanel,
  bars: BarPanel,
  number: NumberPanel,
  lines: LinePanel,
  words: WordPanel,
  arrows: ArrowPanel,
  dots: DotPanel,
  graph: GraphPanel,
};

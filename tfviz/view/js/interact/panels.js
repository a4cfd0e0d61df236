// The ways to draw a result, by name.

import { ArrowPanel, DotPanel, GraphPanel } from "./planepanels.js";
import { BarPanel, GridPanel, NumberPanel } from "./tablepanels.js";
import { LinePanel, WordPanel } from "./textpanels.js";

/** @type {Record<import("../documents.d.ts").DrawingKind, new (theme: import("../base/theme.js").Theme, announce: (text: string) => void) => import("./panel.js").Panel>} */
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

// The panel classes by the name of the way to draw a result.

import { ArrowPanel, DotPanel, GraphPanel } from "./plane-panels.js";
import { BarPanel, GridPanel, NumberPanel } from "./table-panels.js";
import { StackPanel } from "./stack-panel.js";
import { LinePanel, WordPanel } from "./text-panels.js";

/**
 * @type {Record<import("../documents.js").DrawingKind, new (theme: import("../base/theme.js").Theme, announce: (text: string) => void) => import("./panel.js").Panel>}
 */
export const PANELS = {
  grid: GridPanel,
  bars: BarPanel,
  number: NumberPanel,
  lines: LinePanel,
  words: WordPanel,
  arrows: ArrowPanel,
  dots: DotPanel,
  graph: GraphPanel,
  stack: StackPanel,
};

// The classes of controls and panels by the kinds in their specifications.

import { AngleControl } from "./angle-control.js";
import { CellsControl } from "./cells-control.js";
import { SIMPLE_CONTROLS } from "./control.js";
import { OrderControl } from "./order-control.js";
import { ArrowPanel, DotPanel, GraphPanel } from "./plane-panels.js";
import { PointsControl } from "./points-control.js";
import { StackPanel } from "./stack-panel.js";
import { SwitchesControl } from "./switches-control.js";
import { BarPanel, GridPanel, NumberPanel } from "./table-panels.js";
import { TextControl } from "./text-control.js";
import { LinePanel, WordPanel } from "./text-panels.js";

/** @import { ControlSpec, DrawingKind } from "../documents.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Control } from "./control.js" */
/** @import { Panel } from "./panel.js" */
/**
 * @typedef {new (spec: any, set: (value: any) => void, theme: Theme, announce: (text: string) => void) => Control<any>}
 *   ControlClass of the specification's kind
 */

/** @type {Record<ControlSpec["kind"], ControlClass>} */
export const CONTROLS = {
  ...SIMPLE_CONTROLS,
  points: PointsControl,
  cells: CellsControl,
  switches: SwitchesControl,
  order: OrderControl,
  angle: AngleControl,
  text: TextControl,
};

/** By the name of the way to draw a result. @type {Record<DrawingKind, new (theme: Theme, announce: (text: string) => void) => Panel>} */
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

// The control classes by the kind in their specification.

import { AngleControl } from "./angle-control.js";
import { CellsControl } from "./cells-control.js";
import { SIMPLE_CONTROLS } from "./control.js";
import { OrderControl } from "./order-control.js";
import { PointsControl } from "./points-control.js";
import { SwitchesControl } from "./switches-control.js";
import { TextControl } from "./text-control.js";

/** @import { ControlSpec } from "../documents.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Control } from "./control.js" */
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

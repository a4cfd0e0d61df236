// The controls by kind.

import { AngleGear } from "./dialing.js";
import { CellsGear } from "./filling.js";
import { GEARS } from "./gears.js";
import { OrderGear } from "./ordering.js";
import { PointsGear } from "./placing.js";
import { SwitchesGear } from "./painting.js";
import { TextGear } from "./typing.js";

export const ALL_GEARS = {
  ...GEARS,
  points: PointsGear,
  cells: CellsGear,
  switches: SwitchesGear,
  order: OrderGear,
  angle: AngleGear,
  text: TextGear,
};

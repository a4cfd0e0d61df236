// The entry point for studios in a widget, whose models stay in Python.

import { STUDIOS } from "../studios/kinds.js";
import { studioWidget } from "../studios/studio-widget.js";

export default studioWidget(STUDIOS);

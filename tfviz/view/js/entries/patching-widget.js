// The entry point for the studio of activation patching in a widget, whose model stays in Python.

import { PatchingStudio } from "../studios/patching/patching-studio.js";
import { studioWidget } from "../studios/studio-widget.js";

export default studioWidget({ patch: PatchingStudio });

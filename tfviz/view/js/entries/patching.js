// The entry point for the studio of activation patching in a page: a bundle of its own, so that the others stay small.

import { viewMounter } from "../base/page.js";
import { PatchingStudio } from "../studios/patching/patching-studio.js";

export const mount = viewMounter({ patch: PatchingStudio });

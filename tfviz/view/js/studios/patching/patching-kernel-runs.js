// Runs of patching whose model stays in Python, which takes both texts and the target: no activation leaves the kernel.

import { KINDS, PatchingRuns, textsTensor } from "./patching-runs.js";

/** @import { Pair, PatchTarget, Request } from "./patching-runs.js" */

/** A component that has the kernel run a studio's model on two texts, patched or not. */
export class PatchingKernelRuns extends PatchingRuns {
  /** @param {number[]} ids @returns {Request} */
  unpatchedRequest(ids) {
    return ["read", { ids: textsTensor([ids]) }];
  }

  /** @param {Pair} pair @param {PatchTarget} target @returns {Request} */
  patchedRequest({ ids }, [kind, layer, at]) {
    return ["patch", { texts: textsTensor(ids), target: { shape: [3], data: [KINDS.indexOf(kind), layer, at] } }];
  }
}

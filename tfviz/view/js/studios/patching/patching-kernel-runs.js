// Runs of patching whose model stays in Python, which takes both texts and the place: no activation leaves the kernel.

import { PatchingRuns, textsTensor } from "./patching-runs.js";

/** @import { Kind, Pair, PatchTarget, Request } from "./patching-runs.js" */

/** @type {Kind[]} the kinds of places, as Python numbers them */
const TABLES = ["streams", "heads"];

/** A component that has the kernel run a studio's model on two texts, patched or not. */
export class PatchingKernelRuns extends PatchingRuns {
  /** @param {number[]} ids @returns {Request} */
  unpatchedRequest(ids) {
    return ["read", { ids: textsTensor([ids]) }];
  }

  /** @param {Pair} pair @param {PatchTarget} place @returns {Request} */
  patchedRequest({ ids }, [kind, layer, at]) {
    return ["patch", { texts: textsTensor(ids), place: { shape: [3], data: [TABLES.indexOf(kind), layer, at] } }];
  }
}

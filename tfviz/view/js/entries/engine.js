// The entry point of the worker that runs programs.

export { Machine } from "../engine/machine.js";
export { Products } from "../engine/products.js";
export { serve } from "../engine/worker.js";

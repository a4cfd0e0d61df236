// The engine, in a worker of its own.

export { Machine } from "../engine/machine.js";
export { Products } from "../engine/products.js";
export { serve } from "../engine/worker.js";

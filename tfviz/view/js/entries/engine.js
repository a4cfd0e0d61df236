// The entry point of the worker that runs programs.

export { Interpreter } from "../engine/interpreter.js";
export { MatmulKernel } from "../engine/products.js";
export { serve } from "../engine/worker.js";

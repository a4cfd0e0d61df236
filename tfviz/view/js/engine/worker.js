// The server of an engine, which runs in a worker, or in the page itself where the browser refuses workers.

/** @import { Endpoint } from "../types.js" */

import { Interpreter } from "./interpreter.js";
import { MatmulKernel } from "./products.js";
import { answerRequests } from "./rpc.js";

/** Answer the requests of a page with a interpreter. @type {(endpoint: Endpoint) => void} */
export function serve(endpoint) {
  const loading = MatmulKernel.make().then((kernel) => new Interpreter(kernel));
  answerRequests(endpoint, async ({ load, bytes, run, inputs, options }) => {
    const interpreter = await loading;
    if (load) return { result: interpreter.load(load, bytes) };
    const result = interpreter.run(run, inputs, options);
    const patterns = Object.values(result.patterns).flat();
    const arrays = [...Object.values(result.outputs), ...patterns].map(({ data }) => data);
    return { result, transfer: [...arrays, ...patterns.map(({ allowed }) => allowed)].map(({ buffer }) => buffer) };
  });
}

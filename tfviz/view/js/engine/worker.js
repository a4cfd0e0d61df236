// The server of an engine, which runs in a worker, or in the page itself where the browser refuses workers.

/** @import { Endpoint } from "../types.js" */

import { Machine } from "./machine.js";
import { Products } from "./products.js";
import { answerRequests } from "./rpc.js";

/** Answer the requests of a page with a machine. @type {(endpoint: Endpoint) => void} */
export function serve(endpoint) {
  const loading = Products.make().then((products) => new Machine(products));
  answerRequests(endpoint, async ({ load, bytes, run, inputs, options }) => {
    const machine = await loading;
    if (load) return { result: machine.load(load, bytes) };
    const result = machine.run(run, inputs, options);
    const patterns = Object.values(result.patterns).flat();
    const arrays = [...Object.values(result.outputs), ...patterns].map(({ data }) => data);
    return { result, transfer: [...arrays, ...patterns.map(({ allowed }) => allowed)].map(({ buffer }) => buffer) };
  });
}

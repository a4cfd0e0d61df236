// The server side of the protocol between a page and its engines. A request is { id, load, bytes } or { id, run,
// inputs, options }; its reply is { id, result } or { id, error }.

/** @import { Endpoint } from "../types.js" */
/** @typedef {{ load?: any, bytes: Uint8Array, run: string, inputs: any, options: any }} Request */

/**
 * Answer the requests of an endpoint. `respond` returns a result and those of its buffers that are transferred instead
 * of copied.
 * @param {Endpoint} endpoint
 * @param {(request: Request) => Promise<{ result?: any, transfer?: ArrayBufferLike[] }>} respond
 */
export function answerRequests(endpoint, respond) {
  endpoint.onmessage = async ({ data: { id, ...request } }) => {
    try {
      const { result = null, transfer = [] } = await respond(request);
      endpoint.postMessage({ id, result }, /** @type {ArrayBuffer[]} */ (transfer));
    } catch (error) {
      endpoint.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
    }
  };
}

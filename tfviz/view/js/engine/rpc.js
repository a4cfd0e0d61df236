// The protocol between a page and its engines: { id, load, bytes } or { id, run, inputs, options } one way,
// { id, result } or { id, error } the other.

/** @import { Endpoint } from "../types.d.ts" */
/** @typedef {{ load?: any, bytes: Uint8Array, run: string, inputs: any, options: any }} Request */

/**
 * Answer requests; `respond` returns a result and the buffers of it that are handed over uncopied.
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

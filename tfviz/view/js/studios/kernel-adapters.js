// Adapters that give a studio whose model stays in Python the interfaces of an engine and of a tokenizer.

import { Engine } from "../engine/client.js";
import { ARRAY_TYPES } from "../engine/tensors.js";
import { KernelTokenizer } from "../text/kernel-tokenizer.js";
import { makeTokenizer } from "../text/make-tokenizer.js";

/** @import { KernelClient } from "../base/kernel-client.js" */

/** @param {KernelClient} kernel */
export const kernelEngine = (kernel) => new Engine(null, () => kernelPort(kernel));

/**
 * Return a function that makes tokenizers; those that the page cannot encode ask the kernel.
 * @param {KernelClient} kernel
 * @returns {(one: any, number: number) => any}
 */
export const kernelTokenizer = (kernel) => (one, number) =>
  one.kind === "kernel" ? new KernelTokenizer(one, encoder(kernel, number)) : makeTokenizer(one);

/**
 * Make a port that sends an engine's requests { id, run, inputs, options } to the kernel.
 * @param {KernelClient} kernel
 * @returns {import("../types.js").Port}
 */
function kernelPort(kernel) {
  /** @type {(message: any) => void} */
  let listener = () => {};
  return {
    post({ id, run, inputs, options }) {
      /** @type {[string, { shape: number[], data: Iterable<number> }][]} */
      const tensors = Object.entries(inputs);
      const sent = tensors.map(([name, { shape, data }]) => [name, shape, [...data]]);
      const { edits = [], capture } = options;
      const reply = kernel.ask({ run, inputs: sent, ablated_heads: edits, capture: capture === true }).then(resultOf);
      reply.then(
        (result) => listener({ id, result }),
        ({ message }) => listener({ id, error: message }),
      );
    },
    listen: (callback) => (listener = callback),
    close: () => {},
  };
}

/**
 * Encode texts by the tokenizer of this number in Python.
 * @param {KernelClient} kernel
 * @param {number} number
 * @returns {(texts: string[]) => Promise<number[][]>}
 */
const encoder = (kernel, number) => async (texts) =>
  (await kernel.ask({ encode: texts, tokenizer: number })).content.ids;

/**
 * Read a kernel's reply: { outputs: [[name, shape, dtype]], masks, patterns: [[site, shape, number of its mask]] },
 * and the bytes of outputs, masks and maps in turn. A mask has a byte for each cell, of one head for all or of each
 * head.
 * @param {import("../base/kernel-client.js").Reply} reply
 */
function resultOf({ content: { outputs, masks, patterns }, buffers: pieces }) {
  /** @type {[string, any][]} */
  const tensors = outputs.map(
    (/** @type {[string, number[], string]} */ [name, shape, dtype], /** @type {number} */ i) => [
      name,
      { shape, dtype, data: new /** @type {Record<string, any>} */ (ARRAY_TYPES)[dtype](pieces[i].slice().buffer) },
    ],
  );
  const storedMasks = pieces.slice(outputs.length, outputs.length + masks);
  /** @type {[string, any][]} */
  const maps = patterns.map(
    (/** @type {[string, number[], number]} */ [site, shape, mask], /** @type {number} */ i) => {
      const data = weightsOf(pieces[outputs.length + masks + i], shape);
      const cells = shape[shape.length - 2] * shape[shape.length - 1];
      const heads = shape.length > 3 ? shape[1] : 1;
      const allowed = new Uint8Array(data.length);
      for (let at = 0; at < heads * cells; at += storedMasks[mask].length) allowed.set(storedMasks[mask], at); // once, or for each head
      return [site, [{ shape, data, allowed }]];
    },
  );
  return { outputs: Object.fromEntries(tensors), patterns: Object.fromEntries(maps) };
}

/**
 * Decode weights, stored as float32 or as 255 times their square roots in a byte each.
 * @param {Uint8Array} piece
 * @param {number[]} shape
 */
function weightsOf(piece, shape) {
  if (piece.length > shape.reduce((a, b) => a * b, 1)) return new Float32Array(piece.slice().buffer);
  return Float32Array.from(piece, (code) => (code / 255) ** 2);
}

// A model that stays in Python, as a studio takes it: the kernel at the other end of an engine.

import { Engine } from "../engine/client.js";
import { KernelVocabulary } from "../text/kernel-vocabulary.js";
import { vocabulary } from "../text/vocabulary.js";

export const kernelEngine = (kernel) => new Engine(null, () => kernelPort(kernel));

// A vocabulary that the page cannot read encodes in Python.
export const kernelVocabulary = (kernel) => (one, number) =>
  one.kind === "asked" ? new KernelVocabulary(one, encoder(kernel, number)) : vocabulary(one);

// The kernel as the other end of an engine: { id, run, inputs, options } there, outputs and maps back.
function kernelPort(kernel) {
  /** @type {(message: any) => void} */
  let listener = () => {};
  return {
    post({ id, run, inputs, options }) {
      const given = Object.entries(inputs).map(([name, { shape, data }]) => [name, shape, [...data]]);
      const { edits = [], watch } = options;
      const answered = kernel.ask({ run, inputs: given, edits, watch: watch === true }).then(resultOf);
      answered.then(
        (result) => listener({ id, result }),
        ({ message }) => listener({ id, error: message }),
      );
    },
    hear: (given) => (listener = given),
    close: () => {},
  };
}

// texts -> their ids, by the vocabulary of this number in Python
const encoder = (kernel, number) => async (texts) => (await kernel.ask({ encode: texts, vocabulary: number })).told.ids;

const NUMBERS = { float32: Float32Array, int64: Int32Array, bool: Uint8Array };

// told: { outputs: [[name, shape, dtype]], masks, patterns: [[site, shape, number of its mask]] }, and the bytes of outputs,
// masks and maps in turn. Masks come as a byte for each cell,
// of all heads or of one after the other.
function resultOf({ told: { outputs, masks, patterns }, pieces }) {
  const tensors = outputs.map(([name, shape, dtype], i) => [
    name,
    { shape, dtype, data: new NUMBERS[dtype](pieces[i].slice().buffer) },
  ]);
  const opens = pieces.slice(outputs.length, outputs.length + masks);
  const seen = patterns.map(([site, shape, mask], i) => {
    const data = weightsOf(pieces[outputs.length + masks + i], shape);
    const cells = shape[shape.length - 2] * shape[shape.length - 1];
    const heads = shape.length > 3 ? shape[1] : 1;
    const open = new Uint8Array(data.length);
    for (let at = 0; at < heads * cells; at += opens[mask].length) open.set(opens[mask], at); // once, or for each head
    return [site, [{ shape, data, open }]];
  });
  return { outputs: Object.fromEntries(tensors), patterns: Object.fromEntries(seen) };
}

// As they are, or as 255 times their square roots in a byte each.
function weightsOf(piece, shape) {
  if (piece.length > shape.reduce((a, b) => a * b, 1)) return new Float32Array(piece.slice().buffer);
  return Float32Array.from(piece, (code) => (code / 255) ** 2);
}

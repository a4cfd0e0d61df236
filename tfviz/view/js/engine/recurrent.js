// The recurrent layers of PyTorch: RNN, GRU and LSTM.

/** @import { Operation } from "../types.js" */
/** @typedef {Float32Array} Row */
/**
 * One step of one hidden unit: from the gates of the input and of the last state, [gates * hidden] each, and the last
 * states.
 * @typedef {(input: Row, recurrent: Row, last: Row[], next: Row[], i: number, hidden: number) => void} Step
 */
/** @typedef {{ gates: number, step: Step }} Cell */

import { asArray, formatShape } from "./shape-utils.js";
import { linear } from "./matmul.js";
import { RESHAPING } from "./reshaping.js";
import { SLICING } from "./slicing.js";
import { sigmoid } from "./unary.js";

/** @type {(activation: (x: number) => number) => Cell} */
const elman = (activation) => ({
  gates: 1,
  step: (input, recurrent, _last, [next], i) => (next[i] = activation(input[i] + recurrent[i])),
});
/** @type {Cell} */
const GRU = {
  gates: 3,
  step(input, recurrent, [last], [next], i, hidden) {
    const reset = sigmoid(input[i] + recurrent[i]);
    const update = sigmoid(input[hidden + i] + recurrent[hidden + i]);
    const candidate = Math.tanh(input[2 * hidden + i] + reset * recurrent[2 * hidden + i]);
    next[i] = candidate + update * (last[i] - candidate);
  },
};
/** @type {Cell} */
const LSTM = {
  gates: 4,
  step(input, recurrent, [, lastCell], [next, cell], i, hidden) {
    const gate = (/** @type {number} */ k) => input[k * hidden + i] + recurrent[k * hidden + i];
    cell[i] = sigmoid(gate(1)) * lastCell[i] + sigmoid(gate(0)) * Math.tanh(gate(2));
    next[i] = sigmoid(gate(3)) * Math.tanh(cell[i]);
  },
};

/** @type {Operation} One layer in one direction: [time, batch, dim] to [time, batch, hidden], and the last states. */
function runLayer(interpreter, cell, inputs, states, weights, backwards) {
  const [time, batch] = inputs.shape;
  const hidden = states[0].shape[1];
  const [weightInput, weightHidden, biasInput = null, biasHidden = null] = weights;
  const width = cell.gates * hidden;
  if (weightInput.shape[0] !== width)
    throw new Error(`the weight ${formatShape(weightInput.shape)} is not that of ${cell.gates} gates of ${hidden}`);
  /** @type {(tensor: any, index: number, width: number) => Float32Array} */
  const row = ({ data }, index, width) => data.subarray(index * width, (index + 1) * width);
  const fromInputs = linear(interpreter, inputs, weightInput, biasInput);
  const out = interpreter.empty([time, batch, hidden]);
  let last = states;
  for (let step = 0; step < time; step++) {
    const at = backwards ? time - 1 - step : step;
    const fromState = linear(interpreter, last[0], weightHidden, biasHidden);
    /** @type {any[]} */
    const next = states.map((/** @type {any} */ state) => ({ ...state, data: new Float32Array(batch * hidden) }));
    for (let text = 0; text < batch; text++) {
      const [input, recurrent] = [row(fromInputs, at * batch + text, width), row(fromState, text, width)];
      const [from, to] = [last, next].map((list) => list.map((/** @type {any} */ state) => row(state, text, hidden)));
      for (let i = 0; i < hidden; i++) cell.step(input, recurrent, from, to, i, hidden);
    }
    out.data.set(next[0].data, at * batch * hidden);
    last = next;
  }
  return { out, states: last };
}

/**
 * Make an operation like torch.nn.LSTM: it returns the output, then each state, [layer * direction, batch, hidden].
 * @type {(cell: Cell) => Operation}
 */
const layersOf =
  (cell) => (interpreter, tensor, starts, weights, hasBias, layers, dropout, training, bidirectional, batchFirst) => {
    const [directions, count] = [bidirectional ? 2 : 1, hasBias ? 4 : 2];
    if (weights.length !== layers * directions * count)
      throw new Error("layers that project their states are not supported");
    const initial = asArray(starts);
    let inputs = batchFirst ? RESHAPING["transpose.int"](interpreter, tensor, 0, 1) : tensor;
    /** @type {any[][]} */
    const finals = initial.map(() => []); // for each state, the tensors of all layers and directions
    for (let layer = 0; layer < layers; layer++) {
      const outs = [];
      for (let direction = 0; direction < directions; direction++) {
        const i = layer * directions + direction;
        const states = initial.map((state) => SLICING["select.int"](interpreter, state, 0, i));
        const parameters = weights.slice(i * count, (i + 1) * count);
        const result = runLayer(interpreter, cell, inputs, states, parameters, direction === 1);
        outs.push(result.out);
        finals.forEach((list, k) => list.push(result.states[k]));
      }
      inputs = outs.length > 1 ? SLICING.cat(interpreter, outs, 2) : outs[0];
    }
    const outputs = batchFirst ? RESHAPING["transpose.int"](interpreter, inputs, 0, 1) : inputs;
    return [outputs, ...finals.map((list) => SLICING.stack(interpreter, list, 0))];
  };

/** @type {Record<string, Operation>} */
export const RECURRENT = {
  "lstm.input": layersOf(LSTM),
  "gru.input": layersOf(GRU),
  "rnn_tanh.input": layersOf(elman(Math.tanh)),
  "rnn_relu.input": layersOf(elman((x) => Math.max(0, x))),
};

// torch's own recurrent layers.

/** @import { Operation } from "../types.d.ts" */

import { formatShape } from "./tensors.js";
import { PIECES } from "./slicing.js";
import { SHAPING } from "./shaping.js";
import { linear } from "./matmul.js";

const squash = (x) => 1 / (1 + Math.exp(-x));

// One step of a text: from what the word brings, what the last state brings and the last states to the new states.
// Gates lie in a row [gates * hidden] as torch has them.
const RECURRENT_CELLS = {
  tanh: {
    gates: 1,
    step: (word, past, states, to, hidden) => each(hidden, (i) => (to[0][i] = Math.tanh(word[i] + past[i]))),
  },
  relu: {
    gates: 1,
    step: (word, past, states, to, hidden) => each(hidden, (i) => (to[0][i] = Math.max(0, word[i] + past[i]))),
  },
  gru: {
    gates: 3,
    step: (word, past, [state], [next], hidden) =>
      each(hidden, (i) => {
        const reset = squash(word[i] + past[i]);
        const keep = squash(word[hidden + i] + past[hidden + i]);
        const fresh = Math.tanh(word[2 * hidden + i] + reset * past[2 * hidden + i]);
        next[i] = fresh + keep * (state[i] - fresh);
      }),
  },
  lstm: {
    gates: 4,
    step: (word, past, [, memory], [next, kept], hidden) =>
      each(hidden, (i) => {
        const gate = (which) => word[which * hidden + i] + past[which * hidden + i];
        kept[i] = squash(gate(1)) * memory[i] + squash(gate(0)) * Math.tanh(gate(2));
        next[i] = squash(gate(3)) * Math.tanh(kept[i]);
      }),
  },
};

function each(count, work) {
  for (let i = 0; i < count; i++) work(i);
}

/** @type {Operation} One layer in one direction: [time, batch, dim] -> [time, batch, hidden] and the last states. */
function passed(machine, cell, words, states, weights, backwards) {
  const [time, batch] = words.shape;
  const hidden = states[0].shape[1];
  if (weights[0].shape[0] !== cell.gates * hidden) {
    throw new Error(`weights ${formatShape(weights[0].shape)} are not those of ${cell.gates} gates of ${hidden}`);
  }
  const [into, again, biasInto = null, biasAgain = null] = weights;
  const brought = linear(machine, words, into, biasInto).data;
  const out = machine.empty([time, batch, hidden], "float32");
  let now = states;
  for (let i = 0; i < time; i++) {
    const at = backwards ? time - 1 - i : i;
    const past = linear(machine, now[0], again, biasAgain).data;
    const next = now.map((state) => ({ ...state, data: new Float32Array(batch * hidden) }));
    for (let text = 0; text < batch; text++) {
      const row = (data, place, width) => data.subarray(place * width, (place + 1) * width);
      const own = (tensors) => tensors.map((tensor) => row(tensor.data, text, hidden));
      const word = row(brought, at * batch + text, cell.gates * hidden);
      cell.step(word, row(past, text, cell.gates * hidden), own(now), own(next), hidden);
    }
    out.data.set(next[0].data, at * batch * hidden);
    now = next;
  }
  return { out, states: now };
}

/**
 * As torch.nn.LSTM and its kin: the output, then each state, [layers * directions, batch, hidden].
 * @type {Operation}
 */
function recurrent(machine, cell, tensor, starts, parameters, biased, layers, bothWays, batchFirst) {
  const [directions, count] = [bothWays ? 2 : 1, biased ? 4 : 2];
  if (parameters.length !== layers * directions * count) {
    throw new Error("layers that project their states are not known here");
  }
  let words = batchFirst ? SHAPING["transpose.int"](machine, tensor, 0, 1) : tensor;
  const last = [];
  for (let layer = 0; layer < layers; layer++) {
    const outs = [];
    for (let way = 0; way < directions; way++) {
      const at = layer * directions + way;
      const own = starts.map((state) => PIECES["select.int"](machine, state, 0, at));
      const made = passed(machine, cell, words, own, parameters.slice(at * count, (at + 1) * count), way === 1);
      outs.push(made.out);
      last.push(made.states);
    }
    words = outs.length > 1 ? PIECES.cat(machine, outs, 2) : outs[0];
  }
  const stacked = (i) => last.map((states) => states[i]);
  const states = starts.map((_, i) => PIECES.stack(machine, stacked(i), 0));
  return [batchFirst ? SHAPING["transpose.int"](machine, words, 0, 1) : words, ...states];
}

/** @type {(...of: any[]) => Operation} */
const layersOf =
  (cell) => (machine, tensor, start, parameters, biased, layers, dropout, training, bothWays, batchFirst) =>
    recurrent(machine, cell, tensor, [].concat(start), parameters, biased, layers, bothWays, batchFirst);

/** @type {Record<string, Operation>} */
export const RECURRENT = {
  "lstm.input": layersOf(RECURRENT_CELLS.lstm),
  "gru.input": layersOf(RECURRENT_CELLS.gru),
  "rnn_tanh.input": layersOf(RECURRENT_CELLS.tanh),
  "rnn_relu.input": layersOf(RECURRENT_CELLS.relu),
};

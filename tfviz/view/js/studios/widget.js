// The entry of a widget: the studios, with a kernel behind them where the model is.

import { Questions } from "../base/questions.js";
import { Engine } from "../engine/client.js";
import { AskedVocabulary } from "../text/asked.js";
import { vocabulary } from "../text/vocabulary.js";
import { Classifier } from "./classifier.js";
import { Filler } from "./filler.js";
import { Translator } from "./translator.js";
import { Writer } from "./writer.js";

const STUDIOS = { write: Writer, classify: Classifier, fill: Filler, translate: Translator };

// The kernel as the other end of an engine: { id, run, inputs, options } there, outputs and maps back.
function kernelPort(questions) {
  let listener = () => {};
  return {
    post({ id, run, inputs, options }) {
      const given = Object.entries(inputs).map(([name, { shape, data }]) => [name, shape, [...data]]);
      const { edits = [], watch } = options;
      const answered = questions.ask({ run, inputs: given, edits, watch: watch === true }).then(resultOf);
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
const encoder = (questions, number) => async (texts) =>
  (await questions.ask({ encode: texts, vocabulary: number })).told.ids;

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

// The choices, which Python knows too.
class Choices {
  constructor(model) {
    this.model = model;
  }

  get(name) {
    return this.model.get("state")[name];
  }

  set(changes) {
    const state = this.model.get("state");
    const changed = Object.entries(changes).some(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(state[name]),
    );
    if (!changed) return;
    this.model.set("state", { ...state, ...changes });
    this.model.save_changes();
  }

  on(listener) {
    this.model.on("change:state", listener);
    return () => this.model.off("change:state", listener);
  }
}

function renderAsked({ model, el }) {
  const host = document.createElement("div");
  host.className = "tfviz";
  el.append(host);
  let view = null;
  const questions = new Questions(model, (text) => view?.says(text));
  const engine = () => new Engine(null, () => kernelPort(questions));
  const page = () => questions.page();
  const vocabularyOf = (one, number) =>
    one.kind === "asked" ? new AskedVocabulary(one, encoder(questions, number)) : vocabulary(one);
  const described = model.get("described");
  view = new STUDIOS[described.kind](host, { document: described, data: "" }, new Choices(model), {
    page,
    engine,
    vocabulary: vocabularyOf,
  });
  return () => {
    view.close();
    questions.close();
    host.remove();
  };
}

export default { render: renderAsked };

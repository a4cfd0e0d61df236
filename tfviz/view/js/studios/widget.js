// The entry of a widget: the studio that writes, with a kernel behind it where the model is.

import { Questions } from "../base/questions.js";
import { Engine } from "../engine/client.js";
import { Writer } from "./writer.js";

// The kernel as the other end of an engine: { id, inputs, options } there, logits and maps back.
function kernelPort(questions) {
  let listener = () => {};
  return {
    post({ id, inputs, options }) {
      const { edits = [], watch } = options;
      const answered = questions.ask({ ids: [...inputs.ids.data], edits, watch: watch === true }).then(resultOf);
      answered.then(
        (result) => listener({ id, result }),
        ({ message }) => listener({ id, error: message }),
      );
    },
    hear: (given) => (listener = given),
    close: () => {},
  };
}

// told: { cost, masks, patterns: [[site, shape, number of its mask]] }. Weights come as 255 times their square roots, masks
// as a byte for each cell.
function resultOf({ told: { cost, masks, patterns }, pieces: [first, ...rest] }) {
  const logits = new Float32Array(first.slice().buffer);
  const opens = rest.slice(0, masks);
  const seen = patterns.map(([site, shape, mask], i) => {
    const data = Float32Array.from(rest[masks + i], (code) => (code / 255) ** 2);
    const [, heads, queries, keys] = shape;
    const open = new Uint8Array(data.length);
    for (let head = 0; head < heads; head++) open.set(opens[mask], head * queries * keys);
    return [site, [{ shape, data, open }]];
  });
  return { outputs: { logits: { shape: [1, 1, logits.length], data: logits }, cost }, patterns: Object.fromEntries(seen) };
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
    const changed = Object.entries(changes).some(([name, value]) => JSON.stringify(value) !== JSON.stringify(state[name]));
    if (!changed) return;
    this.model.set("state", { ...state, ...changes });
    this.model.save_changes();
  }

  on(listener) {
    this.model.on("change:state", listener);
    return () => this.model.off("change:state", listener);
  }
}

function renderWriter({ model, el }) {
  const host = document.createElement("div");
  host.className = "tfviz";
  el.append(host);
  let view = null;
  const questions = new Questions(model, (text) => view?.says(text));
  const engine = () => new Engine(null, () => kernelPort(questions));
  const page = () => questions.page();
  view = new Writer(host, { document: model.get("described"), data: "" }, new Choices(model), { page, engine });
  return () => {
    view.close();
    questions.close();
    host.remove();
  };
}

export default { render: renderWriter };

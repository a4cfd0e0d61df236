// The entry of a widget: the studio that writes, with a kernel behind it where the model is.

import { Engine } from "../engine/client.js";
import { Writer } from "./writer.js";

const SILENT = "the kernel does not answer: it may be busy, or gone";

// The kernel as the other end of an engine: { id, run, inputs, options } there, logits and maps back.
function kernelPort(model, says) {
  const own = String(Math.random()); // several views of one model hear all answers
  let listener = () => {};
  const late = new Map(); // id -> what is due if there is no answer
  const hear = ({ id, error, ...told }, buffers = []) => {
    const [whose, number] = String(id).split(" ");
    if (whose !== own) return;
    clearTimeout(late.get(number));
    listener(error ? { id: Number(number), error } : { id: Number(number), result: resultOf(told, buffers.map(bytesIn)) });
  };
  model.on("msg:custom", hear);
  return {
    post({ id, inputs, options, page }) {
      late.set(String(id), setTimeout(() => says(SILENT), 8000));
      model.send({ id: `${own} ${id}`, ...(page ? { page } : { ids: [...inputs.ids.data], edits: options.edits ?? [], watch: options.watch === true }) });
    },
    hear: (given) => (listener = given),
    close: () => model.off("msg:custom", hear),
  };
}

const bytesIn = (buffer) => new Uint8Array(buffer.buffer ?? buffer, buffer.byteOffset ?? 0, buffer.byteLength);

// told: { cost, size, masks, patterns: [[site, shape, number of its mask]] }, or a page. Weights come as 255 times their
// square roots, masks as a byte for each cell.
function resultOf({ page, cost, masks, patterns }, [first, ...rest]) {
  if (page) return first;
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
  const engine = () => new Engine(null, () => kernelPort(model, (text) => view?.says(text)));
  const page = async () => new Blob([await view.engine.send({ page: true })], { type: "text/html" });
  view = new Writer(host, { document: model.get("described"), data: "" }, new Choices(model), { page, engine });
  return () => {
    view.close();
    host.remove();
  };
}

export default { render: renderWriter };

// The entry of a widget: the same views, with a kernel behind them that knows the choices and sends what is missing.

import { Source } from "./base/data.js";
import { Explorer } from "./stages/explorer.js";

class Model {
  constructor(model) {
    this.model = model;
  }

  get(name) {
    return this.model.get(name);
  }

  set(changes) {
    let changed = false;
    for (const [name, value] of Object.entries(changes)) {
      if (JSON.stringify(value) === JSON.stringify(this.model.get(name))) continue;
      this.model.set(name, value);
      changed = true;
    }
    if (changed) this.model.save_changes();
  }

  on(listener) {
    const names = Object.keys(this.model.get("described").state).map((name) => `change:${name}`);
    names.forEach((name) => this.model.on(name, listener));
    return () => names.forEach((name) => this.model.off(name, listener));
  }
}

// Questions to the kernel, answered by number.
class Questions {
  constructor(model) {
    Object.assign(this, { model, waiting: new Map(), count: 0, hear: (answer, buffers) => this.heard(answer, buffers) });
    model.on("msg:custom", this.hear);
  }

  ask(question) {
    const id = `${this.count++}.${Math.random()}`; // several views of one model hear all answers
    const promise = new Promise((resolve, reject) => this.waiting.set(id, [resolve, reject]));
    this.model.send({ ...question, id });
    return promise;
  }

  heard({ id, error }, [buffer] = []) {
    const [resolve, reject] = this.waiting.get(id) ?? [];
    if (!resolve) return;
    this.waiting.delete(id);
    if (error) reject(new Error(error));
    else resolve(new Uint8Array(buffer.buffer ?? buffer, buffer.byteOffset ?? 0, buffer.byteLength));
  }

  close() {
    this.model.off("msg:custom", this.hear);
  }
}

function render({ model, el }) {
  const host = document.createElement("div");
  const questions = new Questions(model);
  const described = model.get("described");
  const data = model.get("data");
  host.className = "tfviz";
  el.append(host);
  const source = new Source(described, new Uint8Array(data.buffer, data.byteOffset, data.byteLength), (part, layer, head) =>
    questions.ask({ part, layer, head }),
  );
  const view = new Explorer(host, source, new Model(model), {
    page: async () => new Blob([await questions.ask({ page: true })], { type: "text/html" }),
  });
  return () => {
    view.close();
    questions.close();
    host.remove();
  };
}

export default { render };

// The entry of a widget: the same views, with a kernel behind them that knows the choices and sends what is missing.

import { Source, inflated } from "./base/data.js";
import { Questions } from "./base/questions.js";
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
    const names = Object.keys(this.model.get("document").state).map((name) => `change:${name}`);
    names.forEach((name) => this.model.on(name, listener));
    return () => names.forEach((name) => this.model.off(name, listener));
  }
}

function render({ model, el }) {
  const host = document.createElement("div");
  let view = null;
  const questions = new Questions(model, (text) => view?.frame.says(text));
  const described = model.get("document");
  const data = model.get("data");
  host.className = "tfviz";
  el.append(host);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const source = new Source(described, bytes, async (part, layer, head, where) => {
    const { pieces } = await questions.ask({ part, layer, head, ...where });
    return inflated(pieces[0]);
  });
  view = new Explorer(host, source, new Model(model), { page: () => questions.page() });
  return () => {
    view.close();
    questions.close();
    host.remove();
  };
}

export default { render };

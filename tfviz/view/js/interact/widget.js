// The entry of a widget: the same instrument, answered by a kernel.

import { Source } from "../base/data.js";
import { Questions } from "../base/questions.js";
import { ALL_GEARS } from "./allgears.js";
import { Instrument } from "./instrument.js";
import { unpacked } from "./left.js";
import { TextGear } from "./typing.js";

// One question at a time; of what is asked meanwhile only the last is put.
class Kernel extends Questions {
  async latest(values) {
    this.next?.(null);
    if (this.busy) {
      const turn = await new Promise((resolve) => (this.next = resolve));
      if (!turn) return null;
    }
    this.next = null;
    this.busy = true;
    try {
      const { told, pieces } = await this.ask({ values });
      return unpacked(told.results, ([start, length]) => pieces[0].slice(start, start + length));
    } finally {
      this.busy = false;
      this.next?.(true);
    }
  }
}

class Answered extends Instrument {
  constructor(host, source, store, kernel) {
    super(host, source, store, { page: () => kernel.page() }, { ...ALL_GEARS, text: TextGear });
    this.kernel = kernel;
    this.begin();
  }

  async answer(values) {
    for (const gear of Object.values(this.gears)) if (gear.control.kind === "text") gear.input(values[gear.name]);
    return this.kernel.latest(values);
  }
}

// What the controls stand at, which Python knows too.
class Shared {
  constructor(model) {
    this.model = model;
  }

  get(name) {
    return this.model.get(name);
  }

  set(changes) {
    for (const [name, value] of Object.entries(changes)) this.model.set(name, value);
    this.model.save_changes();
  }

  on(listener) {
    this.model.on("change:values", listener);
    return () => this.model.off("change:values", listener);
  }
}

function renderAnswered({ model, el }) {
  const host = document.createElement("div");
  host.className = "tfviz";
  el.append(host);
  let view = null;
  const kernel = new Kernel(model, (text) => view?.frame.says(text));
  view = new Answered(host, new Source(model.get("document"), new Uint8Array()), new Shared(model), kernel);
  return () => {
    view.close();
    kernel.close();
    host.remove();
  };
}

export default { render: renderAnswered };

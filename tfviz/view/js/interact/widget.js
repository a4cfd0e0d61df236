// The entry of a widget: the same instrument, answered by a kernel.

import { Source } from "../base/data.js";
import { ALL_GEARS } from "./allgears.js";
import { Instrument } from "./instrument.js";
import { unpacked } from "./left.js";
import { TextGear } from "./typing.js";

const LOST = "the kernel does not answer: it may be busy, or gone";

// One question at a time; of what is asked meanwhile only the last is put.
class Kernel {
  constructor(model) {
    Object.assign(this, { model, waiting: new Map(), count: 0, next: null, busy: false });
    this.hear = ({ id, error, results }, [buffer] = []) => {
      const [resolve, reject] = this.waiting.get(id) ?? [];
      this.waiting.delete(id);
      if (error) reject?.(new Error(error));
      else resolve?.({ results, bytes: new Uint8Array(buffer.buffer ?? buffer, buffer.byteOffset ?? 0, buffer.byteLength) });
    };
    model.on("msg:custom", this.hear);
  }

  ask(question) {
    const id = `${this.count++}.${Math.random()}`; // several views of one model hear all answers
    const answered = new Promise((resolve, reject) => this.waiting.set(id, [resolve, reject]));
    this.model.send({ ...question, id });
    return answered;
  }

  async latest(values) {
    this.next?.(null);
    if (this.busy) {
      const turn = await new Promise((resolve) => (this.next = resolve));
      if (!turn) return null;
    }
    this.next = null;
    this.busy = true;
    try {
      const { results, bytes } = await this.ask({ values });
      return unpacked(results, ([start, length]) => bytes.slice(start, start + length));
    } finally {
      this.busy = false;
      this.next?.(true);
    }
  }

  close() {
    this.model.off("msg:custom", this.hear);
  }
}

class Answered extends Instrument {
  constructor(host, source, store, kernel) {
    const page = async () => new Blob([(await kernel.ask({ page: true })).bytes], { type: "text/html" });
    super(host, source, store, { page }, { ...ALL_GEARS, text: TextGear });
    this.kernel = kernel;
    this.begin();
  }

  async answer(values) {
    for (const gear of Object.values(this.gears)) if (gear.control.kind === "text") gear.input(values[gear.name]);
    const slow = setTimeout(() => this.frame.says(LOST), 5000);
    try {
      return await this.kernel.latest(values);
    } finally {
      clearTimeout(slow);
    }
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
  const kernel = new Kernel(model);
  const view = new Answered(host, new Source(model.get("described"), new Uint8Array()), new Shared(model), kernel);
  return () => {
    view.close();
    kernel.close();
    host.remove();
  };
}

export default { render: renderAnswered };

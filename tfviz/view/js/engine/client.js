// The page's end of the engine: asks a worker, so that the page never freezes; what is asked last wins.

// An engine with these programs. `engine` makes it (see `worker.js`): its text is what the worker runs.
// Where a worker is refused, the page computes itself.
export class Engine {
  /**
   * @param {(() => any) | null} engine
   * @param {(engine: any) => import("../types.d.ts").Port} open the other end: by default a worker
   */
  constructor(engine, open = opened) {
    this.asked = new Map(); // id -> { resolve, reject }
    this.lanes = new Map(); // lane -> { busy, next }
    this.count = 0;
    const port = open(engine);
    this.post = port.post;
    this.close = port.close;
    port.hear(({ id, result, error }) => {
      const { resolve, reject } = this.asked.get(id) ?? {};
      this.asked.delete(id);
      if (error !== undefined) reject?.(new Error(error));
      else resolve?.(result);
    });
  }

  send(message) {
    return new Promise((resolve, reject) => {
      const id = this.count++;
      this.asked.set(id, { resolve, reject });
      this.post({ ...message, id });
    });
  }

  load(programs, bytes) {
    return this.send({ load: programs, bytes });
  }

  // What a program gives for these inputs: { outputs, patterns }.
  run(name, inputs, options = {}) {
    return this.send({ run: name, inputs, options });
  }

  // The same, one at a time: of what is asked meanwhile only the last is answered, the others get null.
  latest(lane, ...question) {
    const queue = this.lanes.get(lane) ?? { busy: false, next: null };
    this.lanes.set(lane, queue);
    queue.next?.resolve(null);
    return new Promise((resolve, reject) => {
      queue.next = { question, resolve, reject };
      if (!queue.busy) this.advance(queue);
    });
  }

  async advance(queue) {
    queue.busy = true;
    while (queue.next) {
      const { question, resolve, reject } = queue.next;
      queue.next = null;
      await this.run(...question).then(resolve, reject);
    }
    queue.busy = false;
  }
}

// A worker that serves, or a stand-in of the same form in the page.
function opened(engine) {
  try {
    const address = URL.createObjectURL(new Blob([`(${engine})().serve(self)`], { type: "text/javascript" }));
    const worker = new Worker(address);
    let failed = null; // the page itself, should the worker not even begin
    const heard = [];
    const waiting = [];
    const port = {
      post: (message) => (failed ? failed.post(message) : (waiting.push(message), worker.postMessage(message))),
      hear: (listener) => heard.push(listener),
      close: () => worker.terminate(),
    };
    worker.onmessage = ({ data }) => {
      URL.revokeObjectURL(address);
      waiting.shift();
      heard.forEach((listener) => listener(data));
    };
    worker.onerror = (event) => {
      event.preventDefault();
      failed = within(engine);
      heard.forEach((listener) => failed.hear(listener));
      waiting.splice(0).forEach((message) => failed.post(message));
    };
    return port;
  } catch {
    return within(engine);
  }
}

function within(engine) {
  /** @type {(message: any) => void} */
  let listener = () => {};
  /** @type {any} */
  const port = { postMessage: (data) => listener(data) };
  engine().serve(port);
  return {
    post: (data) => setTimeout(() => port.onmessage({ data })),
    hear: (given) => (listener = given),
    close: () => {},
  };
}

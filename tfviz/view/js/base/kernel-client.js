// Questions to a kernel, answered by number.

const SILENT = "the kernel does not answer: it may be busy, or gone";
const LATE = 8000; // milliseconds until that is said

export class KernelClient {
  waiting = new Map();
  count = 0;

  // announce: (text) -> shows it where the reader asked
  constructor(model, announce) {
    this.model = model;
    this.announce = announce;
    this.hear = (...heard) => this.heard(...heard);
    model.on("msg:custom", this.hear);
  }

  // { told, pieces }: what the kernel says, and its bytes
  ask(question) {
    const id = `${this.count++}.${Math.random()}`; // several views of one model hear all answers
    const late = setTimeout(() => this.announce(SILENT), LATE);
    const answered = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, late }));
    this.model.send({ ...question, id });
    return answered;
  }

  heard({ id, error, ...told }, buffers = []) {
    const { resolve, reject, late } = this.waiting.get(id) ?? {};
    if (!resolve) return;
    this.waiting.delete(id);
    clearTimeout(late);
    if (error) reject(new Error(error));
    else resolve({ told, pieces: buffers.map(bytesIn) });
  }

  // What is shown now, as a page.
  async page() {
    const { pieces } = await this.ask({ page: true });
    return new Blob(pieces, { type: "text/html" });
  }

  close() {
    for (const { late } of this.waiting.values()) clearTimeout(late);
    this.model.off("msg:custom", this.hear);
  }
}

const bytesIn = (buffer) => new Uint8Array(buffer.buffer ?? buffer, buffer.byteOffset ?? 0, buffer.byteLength);

// A client that sends requests to a widget's kernel and matches replies to requests by id.

/** @typedef {{ content: any, buffers: Uint8Array<ArrayBuffer>[] }} Reply the content and the bytes of a kernel's message */

const NO_ANSWER_MESSAGE = "the kernel does not answer: it may be busy, or gone";
const MAX_SILENCE = 8000; // milliseconds before NO_ANSWER_MESSAGE is shown

/** A client for the kernel behind a widget's model. Each request is a promise of its reply. */
export class KernelClient {
  /** @type {Map<string, { resolve(reply: Reply): void, reject(error: Error): void, late: ReturnType<typeof setTimeout> }>} */
  waiting = new Map();
  count = 0;

  /** @param {any} model the model of anywidget
   * @param {(text: string) => void} announce shows a message at the place of the request */
  constructor(model, announce) {
    this.model = model;
    this.announce = announce;
    /** @type {(content: any, buffers?: any[]) => void} */
    this.onMessage = (content, buffers) => this.receive(content, buffers);
    model.on("msg:custom", this.onMessage);
  }

  /** @param {Record<string, any>} question @returns {Promise<Reply>} */
  ask(question) {
    const id = `${this.count++}.${Math.random()}`; // several views of one model receive all replies
    const timer = setTimeout(() => this.announce(NO_ANSWER_MESSAGE), MAX_SILENCE);
    const reply = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, late: timer }));
    this.model.send({ ...question, id });
    return reply;
  }

  /** @param {Record<string, any>} content @param {any[]} [buffers] */
  receive({ id, error, ...content }, buffers = []) {
    const question = this.waiting.get(id);
    if (!question) return;
    this.waiting.delete(id);
    clearTimeout(question.late);
    if (error) question.reject(new Error(error));
    else question.resolve({ content, buffers: buffers.map(bytesIn) });
  }

  /** Request the view in its current state as a page. */
  async page() {
    const { buffers: pieces } = await this.ask({ page: true });
    return new Blob(pieces, { type: "text/html" });
  }

  close() {
    for (const { late } of this.waiting.values()) clearTimeout(late);
    this.model.off("msg:custom", this.onMessage);
  }
}

/** @param {any} buffer */
const bytesIn = (buffer) => new Uint8Array(buffer.buffer ?? buffer, buffer.byteOffset ?? 0, buffer.byteLength);

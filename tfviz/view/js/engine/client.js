// The page's client of an engine, which runs in a worker so that the page stays responsive.

/** @import { EngineModule, Port, RunOptions } from "../types.js" */
/** @typedef {{ resolve: (result: any) => void, reject: (error: Error) => void }} Settle */
/** @typedef {[name: string, inputs: any, options?: RunOptions]} RunArguments */

import { LatestCallQueue } from "./latest-call-queue.js";

/** A client that loads programs into an engine and runs them. */
export class Engine {
  /** @type {Map<number, Settle>} by the id of the request */
  pending = new Map();
  /** @type {Map<string, LatestCallQueue>} */
  channels = new Map();
  requests = 0;

  /**
   * @param {EngineModule | null} engine its text is what the worker runs
   * @param {(engine: any) => Port} open the other end: by default a worker
   */
  constructor(engine, open = openWorker) {
    const port = open(engine);
    this.post = port.post;
    this.close = port.close;
    port.listen(({ id, result, error }) => {
      const { resolve, reject } = this.pending.get(id) ?? {};
      this.pending.delete(id);
      if (error !== undefined) reject?.(new Error(error));
      else resolve?.(result);
    });
  }

  /** @param {Record<string, any>} message @returns {Promise<any>} */
  send(message) {
    return new Promise((resolve, reject) => {
      const id = this.requests++;
      this.pending.set(id, { resolve, reject });
      this.post({ ...message, id });
    });
  }

  /** @param {Record<string, any>} programs @param {Uint8Array} bytes */
  load(programs, bytes) {
    return this.send({ load: programs, bytes });
  }

  /** Run a program on these inputs; return { outputs, patterns }. */
  run(/** @type {RunArguments} */ ...[name, inputs, options = {}]) {
    return this.send({ run: name, inputs, options });
  }

  /**
   * Run a program in a channel, one call at a time. Of the calls that arrive meanwhile only the last is run; the others
   * resolve to null.
   * @param {string} channel
   * @param {RunArguments} call
   * @returns {Promise<any>}
   */
  runLatest(channel, ...call) {
    const queue = this.channels.get(channel) ?? new LatestCallQueue();
    this.channels.set(channel, queue);
    return queue.run(() => this.run(...call));
  }
}

/** @type {(engine: EngineModule) => Port} A worker, or the page itself where a worker is refused or does not begin. */
function openWorker(engine) {
  try {
    const url = URL.createObjectURL(new Blob([`(${engine})().serve(self)`], { type: "text/javascript" }));
    const worker = new Worker(url);
    /** @type {Port | null} */
    let fallback = null;
    /** @type {(message: any) => void} */
    let listener = () => {};
    /** @type {any[]} */
    let unanswered = [];
    worker.onmessage = ({ data }) => {
      URL.revokeObjectURL(url);
      unanswered.shift();
      listener(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      fallback = openInPage(engine);
      fallback.listen(listener);
      unanswered.forEach(fallback.post);
      unanswered = [];
    };
    return {
      post(message) {
        if (fallback) return fallback.post(message);
        unanswered.push(message);
        worker.postMessage(message);
      },
      listen: (callback) => (listener = callback),
      close: () => worker.terminate(),
    };
  } catch {
    return openInPage(engine);
  }
}

/** Run the engine in the page itself. @type {(engine: EngineModule) => Port} */
function openInPage(engine) {
  /** @type {(message: any) => void} */
  let listener = () => {};
  /** @type {import("../types.js").Endpoint} */
  const endpoint = { onmessage: null, postMessage: (message) => listener(message) };
  engine().serve(endpoint);
  return {
    post: (data) => void setTimeout(() => endpoint.onmessage?.({ data })),
    listen: (callback) => (listener = callback),
    close: () => {},
  };
}

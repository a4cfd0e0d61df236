// The engine of a studio, which starts with the first run, closes with the view, and starts again if it is needed
// later.

import { bytesOf } from "../base/page-data.js";
import { Engine } from "../engine/client.js";

/** @import { StudioDocument } from "../documents.js" */
/** @import { RunOptions } from "../types.js" */
/** @import { StudioOptions } from "./studio.js" */

/** A session of an engine with a model's programs, which reports errors and whether it is busy. */
export class EngineSession {
  /** @type {Engine | null} */
  engine = null;
  /** Resolves once the engine has the programs. */
  ready = Promise.resolve();
  /** @type {Promise<null>} resolves when the engine is closed */
  closed = Promise.resolve(null);
  /** @type {(value: null) => void} */
  resolveClosed = () => {};
  /** The number of unanswered requests. */
  unanswered = 0;

  /**
   * @param {StudioDocument} viewDocument
   * @param {string | Uint8Array} data
   * @param {StudioOptions} options
   * @param {{ showError(error: Error): void, busy(busy: boolean): void }} handlers
   */
  constructor(viewDocument, data, options, handlers) {
    this.viewDocument = viewDocument;
    this.data = data;
    this.options = options;
    this.handlers = handlers;
  }

  start() {
    const { viewDocument, data, options } = this;
    const engine = options.engine?.(viewDocument) ?? new Engine(options.worker ?? null);
    const bytes = typeof data === "string" ? bytesOf(data) : data;
    this.engine = engine;
    this.ready = options.engine ? Promise.resolve() : engine.load(viewDocument.programs ?? {}, bytes);
    this.closed = new Promise((resolve) => {
      this.resolveClosed = resolve;
    });
    void this.whileBusy(() => Promise.race([this.ready, this.closed]));
    return engine;
  }

  close() {
    this.engine?.close();
    this.engine = null;
    this.resolveClosed(null);
  }

  /**
   * Run a program; null if a newer request on this channel replaced it, or if it failed, which is announced.
   * @param {string} channel
   * @param {string} program
   * @param {Record<string, any>} inputs
   * @param {RunOptions} options
   */
  run(channel, program, inputs, options) {
    return this.whileBusy(async () => {
      const engine = this.engine ?? this.start();
      const { closed } = this;
      await Promise.race([this.ready, closed]);
      return Promise.race([engine.runLatest(channel, program, inputs, options), closed]);
    });
  }

  /**
   * Await work of the engine or of the kernel, busy meanwhile; null if it failed, which is announced.
   * @template Result
   * @param {() => Promise<Result>} work
   * @returns {Promise<Result | null>}
   */
  async whileBusy(work) {
    this.unanswered++;
    this.handlers.busy(true);
    try {
      return await work();
    } catch (error) {
      this.handlers.showError(/** @type {Error} */ (error));
      return null;
    } finally {
      this.unanswered--;
      if (!this.unanswered) this.handlers.busy(false);
    }
  }
}

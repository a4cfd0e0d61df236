// The engine of a studio, which announces errors and shows whether it is busy.

import { bytesOf } from "../base/page-data.js";
import { Engine } from "../engine/client.js";
import { LazyEngine } from "../engine/lazy-engine.js";

/** @import { StudioDocument } from "../documents.js" */
/** @import { RunOptions } from "../types.js" */
/** @import { StudioOptions } from "./studio.js" */

/** A session of an engine with a model's programs, which reports errors and whether it is busy. */
export class EngineSession extends LazyEngine {
  /** The number of unanswered requests. */
  unanswered = 0;

  /**
   * @param {StudioDocument} viewDocument
   * @param {string | Uint8Array} data
   * @param {StudioOptions} options
   * @param {{ showError(error: Error): void, busy(busy: boolean): void }} handlers
   */
  constructor(viewDocument, data, options, handlers) {
    super(
      () => options.engine?.(viewDocument) ?? new Engine(options.worker ?? null),
      async (engine) => {
        if (options.engine) return; // a kernel has the programs already
        await engine.load(viewDocument.programs ?? {}, typeof data === "string" ? bytesOf(data) : data);
      },
    );
    this.handlers = handlers;
  }

  start() {
    const engine = super.start();
    void this.whileBusy(() => Promise.race([this.ready, this.closed]));
    return engine;
  }

  /**
   * Run a program; null if a newer request on this channel replaced it, or if it failed, which is announced.
   * @param {string} channel
   * @param {string} program
   * @param {Record<string, any>} inputs
   * @param {RunOptions} options
   */
  run(channel, program, inputs, options) {
    return this.whileBusy(() => this.request(channel, program, inputs, options));
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

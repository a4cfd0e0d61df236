// A queue of at most one waiting call, for a function that may be called faster than it answers.

/** @typedef {{ ask: () => Promise<any>, resolve: (answer: any) => void, reject: (error: Error) => void }} Waiting */

/**
 * A queue that makes one call at a time. Of the calls that arrive meanwhile only the last is made; the others resolve
 * to null.
 */
export class LatestCallQueue {
  /** @type {Promise<void> | null} until no call is left; null if there is none */
  running = null;
  /** @type {Waiting | null} the question to ask next */
  next = null;

  /** @template Answer @param {() => Promise<Answer>} ask @returns {Promise<Answer | null>} */
  run(ask) {
    this.next?.resolve(null);
    return new Promise((resolve, reject) => {
      this.next = { ask: async () => ask(), resolve, reject }; // async: an error that it throws is one of its promise
      this.running ??= this.advance();
    });
  }

  /** Resolves when all calls so far, and those that arrive meanwhile, are done. */
  get idle() {
    return this.running ?? Promise.resolve();
  }

  async advance() {
    while (this.next) {
      const { ask, resolve, reject } = this.next;
      this.next = null;
      try {
        resolve(await ask());
      } catch (error) {
        reject(/** @type {Error} */ (error));
      }
    }
    this.running = null;
  }
}

// A queue of at most one waiting call, for a function that may be called faster than it answers.

/** @typedef {{ ask: () => Promise<any>, resolve: (answer: any) => void, reject: (error: Error) => void }} Waiting */

/**
 * A queue that makes one call at a time. Of the calls that arrive meanwhile only the last is made; the others resolve
 * to null.
 */
export class LatestCallQueue {
  busy = false;
  /** @type {Waiting | null} the question to ask next */
  next = null;

  /** @template Answer @param {() => Promise<Answer>} ask @returns {Promise<Answer | null>} */
  run(ask) {
    this.next?.resolve(null);
    return new Promise((resolve, reject) => {
      this.next = { ask, resolve, reject };
      if (!this.busy) void this.advance();
    });
  }

  async advance() {
    this.busy = true;
    while (this.next) {
      const { ask, resolve, reject } = this.next;
      this.next = null;
      try {
        resolve(await ask());
      } catch (error) {
        reject(/** @type {Error} */ (error));
      }
    }
    this.busy = false;
  }
}

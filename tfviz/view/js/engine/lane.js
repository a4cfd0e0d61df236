// Questions to one that answers slowly.

/** @typedef {{ ask: () => Promise<any>, resolve: (answer: any) => void, reject: (error: Error) => void }} Waiting */

/** Asks one question at a time: of those that come meanwhile only the last is asked, and the others get null. */
export class Lane {
  busy = false;
  /** @type {Waiting | null} the question to ask next */
  next = null;

  /** @template Answer @param {() => Promise<Answer>} ask @returns {Promise<Answer | null>} */
  run(ask) {
    this.next?.resolve(null);
    return new Promise((resolve, reject) => {
      this.next = { ask, resolve, reject };
      if (!this.busy) this.advance();
    });
  }

  async advance() {
    this.busy = true;
    while (this.next) {
      const { ask, resolve, reject } = this.next;
      this.next = null;
      await ask().then(resolve, reject);
    }
    this.busy = false;
  }
}

// A loop that appends tokens one by one, sampled as by `generate.ids`.

import { formatCount } from "../../base/numbers.js";
import { lastOf } from "./language-model-reader.js";
import { probabilities, sampleFrom, SeededNumbers } from "./sampler.js";

/** @import { Answer } from "./language-model-reader.js" */
/** @import { WriteStudio } from "./write-studio.js" */

/** A loop of a writing studio, which can be started, stopped and run for one token. */
export class WritingLoop {
  /** Whether the loop is running. */
  running = false;
  /** Whether a token is being written. */
  busy = false;
  numbers = new SeededNumbers();
  /** @type {Promise<boolean>} the last token that was asked for */
  lastWrite = Promise.resolve(false);

  /** @param {WriteStudio} studio */
  constructor(studio) {
    this.studio = studio;
  }

  /** Append one more token after those that are already requested. Return whether it was appended. */
  write() {
    this.lastWrite = this.lastWrite.then(() => this.writeToken());
    return this.lastWrite;
  }

  /** Sample a token and append it, unless the reader changes something meanwhile. */
  async writeToken() {
    const { studio } = this;
    this.busy = true;
    try {
      if (studio.answer?.key !== studio.currentInput?.key) await studio.refresh();
      const { answer, currentInput: input } = studio;
      if (!input || answer?.key !== input.key) return false;
      const id = this.nextToken(answer);
      const next = await studio.reader.extend(answer, id);
      if (studio.currentInput?.key !== input.key) return false;
      studio.append(id, next);
      return true;
    } catch (error) {
      studio.frame.showError(/** @type {Error} */ (error));
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** Sample the next token; at temperature 0, the likeliest. @param {Answer} answer */
  nextToken({ logits, vocabSize }) {
    const { next, store, path } = this.studio;
    const distribution = probabilities(lastOf(logits, vocabSize), next.sampler);
    if (store.get("temperature") === 0) return distribution.indexOf(1);
    return sampleFrom(distribution, this.numbers.at(store.get("seed"), path.tokens.length));
  }

  /** Start or stop the loop. All tokens of one run are a single step for Undo. */
  async toggle(maxTokens = this.studio.viewDocument.max_new_tokens, isDone = () => false) {
    const { studio } = this;
    this.running = !this.running;
    if (!this.running) return;
    studio.runButton.textContent = "■ Stop";
    await studio.history.group(() => this.writeOn(maxTokens, isDone));
    this.running = false;
    studio.runButton.textContent = "▶ Write on";
    studio.showModel();
  }

  /**
   * @param {number} maxTokens tokens
   * @param {() => boolean} isDone whether to stop before
   */
  async writeOn(maxTokens, isDone) {
    const { studio } = this;
    const { max_new_tokens: maxNewTokens } = studio.viewDocument;
    const end = studio.path.tokens.length + maxTokens;
    while (this.running && !studio.frame.closed && studio.path.tokens.length < end && !isDone()) {
      const before = studio.currentInput?.key;
      if (!(await this.write()) && studio.currentInput?.key === before) break; // it cannot continue, and the reason is announced
      await new Promise((done) => requestAnimationFrame(done));
    }
    if (maxTokens === maxNewTokens && studio.path.tokens.length >= end) {
      await studio.refresh(); // which would clear what is announced before
      studio.announce(`stopped after ${formatCount(maxTokens, studio.unit)}: press “Write on” for more`);
    }
  }
}

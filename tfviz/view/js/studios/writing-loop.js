// A loop that appends tokens one by one, sampled as by `generate.ids`.

import { counted } from "../base/numbers.js";
import { lastOf } from "./language-model-reader.js";
import { probabilities, sampleFrom, SeededNumbers } from "./sampler.js";

/** @import { Answer } from "./language-model-reader.js" */
/** @import { Writer } from "./writer.js" */

/** A loop of a writer, which can be started, stopped and run for one token. */
export class WritingLoop {
  /** Whether the loop is running. */
  running = false;
  /** Whether a token is being written. */
  busy = false;
  numbers = new SeededNumbers();
  /** @type {Promise<boolean>} the last token that was asked for */
  lastWrite = Promise.resolve(false);

  /** @param {Writer} writer */
  constructor(writer) {
    this.writer = writer;
  }

  /** Append one more token after those that are already requested. Return whether it was appended. */
  write() {
    this.lastWrite = this.lastWrite.then(() => this.writeToken());
    return this.lastWrite;
  }

  /** Sample a token and append it, unless the reader changes something meanwhile. */
  async writeToken() {
    const { writer } = this;
    this.busy = true;
    try {
      if (writer.answer?.key !== writer.currentInput?.key) await writer.refresh();
      const { answer, currentInput: input } = writer;
      if (!input || answer?.key !== input.key) return false;
      const id = this.nextToken(answer);
      const next = await writer.reader.extend(answer, id);
      if (writer.currentInput?.key !== input.key) return false;
      writer.append(id, next);
      return true;
    } catch (error) {
      writer.frame.showError(/** @type {Error} */ (error));
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** Sample the next token; at temperature 0, the likeliest. @param {Answer} answer */
  nextToken({ logits, size }) {
    const { next, store, path } = this.writer;
    const shares = probabilities(lastOf(logits, size), next.sampler);
    if (store.get("temperature") === 0) return shares.indexOf(1);
    return sampleFrom(shares, this.numbers.at(store.get("seed"), path.tokens.length));
  }

  /** Start or stop the loop. All tokens of one run are a single step for Undo. */
  async toggle(maxTokens = this.writer.described.max_tokens) {
    const { writer } = this;
    this.running = !this.running;
    if (!this.running) return;
    writer.runButton.textContent = "■ Stop";
    await writer.history.group(() => this.writeOn(maxTokens));
    this.running = false;
    writer.runButton.textContent = "▶ Write on";
    writer.showModel();
  }

  /** @param {number} maxTokens tokens */
  async writeOn(maxTokens) {
    const { writer } = this;
    const { max_tokens } = writer.described;
    const end = writer.path.tokens.length + maxTokens;
    while (this.running && !writer.frame.closed && writer.path.tokens.length < end) {
      const before = writer.currentInput?.key;
      if (!(await this.write()) && writer.currentInput?.key === before) break; // it cannot continue, and the reason is announced
      await new Promise((done) => requestAnimationFrame(done));
    }
    if (maxTokens === max_tokens && writer.path.tokens.length >= end)
      writer.announce(`${counted(maxTokens, writer.unit)} are written, and this stops here; Write on goes on`);
  }
}

// A component that runs a language model on a text and returns its logits after each token, with some heads off and
// with all heads on.

import { LatestRequest } from "../../base/latest-request.js";

/** @import { Edit, Pattern, RunOptions, Tensor } from "../../types.js" */
/**
 * @typedef {(channel: string, program: string, inputs: Record<string, any>, options: RunOptions) => Promise<any>} Run as
 *   that of a studio
 */
/**
 * @typedef {object} Answer
 * @property {string} key what it depends on
 * @property {number[]} ids
 * @property {number} vocabSize tokens of the vocabulary
 * @property {Float32Array} logits after every token; of a kernel after the last only
 * @property {Record<string, Pattern[]>} patterns
 * @property {Float32Array | null} baseline the logits with all heads on, where some are off
 * @property {number} [loss] nats a token
 * @property {number} [baselineLoss] the same with all heads on
 * @property {number[]} [losses] nats of each token after the first
 * @property {number[]} [baselineLosses] the same with all heads on
 */

const CACHE_NAMES = ["keys", "values"];

/** A reader that runs a studio's language model and caches its results. */
export class LanguageModelReader {
  requests = new LatestRequest();
  /** @type {{ key: string, answer: Promise<Answer | null> } | null} */
  pending = null;
  /** @type {Answer | null} the answer whose keys and values the engine has */
  cachedAnswer = null;
  /** @type {Record<string, any>} outputs with all heads on, of the last text */
  baselineOutputs = {};

  /**
   * @param {Run} run
   * @param {{ steps: boolean, context: number, vocabSize: number }} sizes steps: whether there is a program for one more token
   */
  constructor(run, { steps, context, vocabSize }) {
    this.run = run;
    this.steps = steps;
    this.context = context;
    this.vocabSize = vocabSize;
  }

  /**
   * Read a text; null if that failed, which is announced, or if a newer request replaced it.
   * @param {number[]} ids
   * @param {Edit[]} edits
   * @returns {Promise<Answer | null>}
   */
  read(ids, edits) {
    const key = readingKey(ids, edits);
    if (this.pending?.key === key) return this.pending.answer;
    const answer = this.ask(ids, edits, key);
    this.pending = { key, answer };
    return answer.finally(() => {
      if (this.pending?.answer === answer) this.pending = null;
    });
  }

  /** @param {number[]} ids @param {Edit[]} edits @param {string} key @returns {Promise<Answer | null>} */
  async ask(ids, edits, key) {
    const isCurrent = this.requests.begin();
    const inputs = { ids: { shape: [1, ids.length], data: ids } };
    const [result, baseline] = await Promise.all([
      this.run("read", "read", inputs, { edits, capture: true, cache: CACHE_NAMES }),
      edits.length ? this.readBaseline(ids, inputs) : null,
    ]);
    if (!result || (edits.length && !baseline)) return null;
    const { data: logits, shape } = cutTo(result.outputs.logits, this.vocabSize);
    const loss = result.outputs.loss?.data[0];
    const vocabSize = Number(shape.at(-1));
    const all = baseline && {
      baseline: cutTo(baseline.logits, this.vocabSize).data,
      baselineLoss: baseline.loss?.data[0],
    };
    const answer = { key, ids, vocabSize, logits, patterns: result.patterns, loss, baseline: null, ...all };
    if (!edits.length) this.baselineOutputs = { [key]: result.outputs };
    if (isCurrent()) this.cachedAnswer = edits.length ? null : answer; // whose keys and values the engine has
    return answer;
  }

  /** @param {number[]} ids @param {Record<string, any>} inputs */
  async readBaseline(ids, inputs) {
    const key = readingKey(ids, []);
    if (!this.baselineOutputs[key]) {
      const result = await this.run("baseline", "read", inputs, {});
      if (!result) return null;
      this.baselineOutputs = { [key]: result.outputs };
    }
    return this.baselineOutputs[key];
  }

  /**
   * Read one more token if the engine has the keys and values of the text before it, else return null.
   * @param {Answer} answer
   * @param {number} id
   * @returns {Promise<Answer | null>}
   */
  async extend(answer, id) {
    if (!this.steps || this.cachedAnswer !== answer || answer.ids.length + 1 > this.context) return null;
    const isCurrent = this.requests.begin();
    this.cachedAnswer = null;
    const result = await this.run(
      "step",
      "step",
      { ids: { shape: [1, 1], data: [id] } },
      { capture: true, cache: CACHE_NAMES },
    );
    if (!result) return null;
    const ids = [...answer.ids, id];
    const logits = new Float32Array(answer.logits.length + answer.vocabSize);
    logits.set(answer.logits);
    logits.set(cutTo(result.outputs.logits, this.vocabSize).data, answer.logits.length);
    /** @type {Record<string, Pattern[]>} */
    const patterns = {};
    for (const [site, [map]] of Object.entries(answer.patterns))
      patterns[site] = [appendQueryRow(map, result.patterns[site][0])];
    const next = { key: readingKey(ids, []), ids, vocabSize: answer.vocabSize, logits, patterns, baseline: null };
    if (isCurrent()) this.cachedAnswer = next;
    return next;
  }
}

/**
 * Cut logits to the tokens of the vocabulary, since a model may have more.
 * @param {Tensor<"float32">} logits
 * @param {number} vocabSize
 */
export function cutTo(logits, vocabSize) {
  const { shape, data } = logits;
  const each = Number(shape.at(-1));
  if (each <= vocabSize) return logits;
  const cut = new Float32Array((data.length / each) * vocabSize);
  for (let row = 0; row * each < data.length; row++)
    cut.set(data.subarray(row * each, row * each + vocabSize), row * vocabSize);
  return { ...logits, shape: [...shape.slice(0, -1), vocabSize], data: cut };
}

/**
 * Return the first token of a text that the model reads. Beyond its context it reads the newer half, as `generate.ids` does.
 * @param {number} prompt tokens of the prompt
 * @param {number} length all tokens
 * @param {number} context
 */
export function contextStart(prompt, length, context) {
  let start = 0;
  for (let end = prompt; end <= length; end++)
    if (end - start > context) start = end - Math.max(1, Math.floor(context / 2));
  return start;
}

/**
 * Return the cache key of a reading.
 * @param {number[]} ids
 * @param {Edit[]} edits
 */
export const readingKey = (ids, edits) => JSON.stringify([ids, edits]);

/**
 * Return the logits after the last token.
 * @param {Float32Array} logits
 * @param {number} vocabSize
 */
export const lastOf = (logits, vocabSize) => logits.subarray(logits.length - vocabSize);

/**
 * Append a query to a map, with one key more.
 * @param {Pattern} map
 * @param {Pattern} row
 * @returns {Pattern}
 */
function appendQueryRow(map, row) {
  const [, heads, queries, keys] = map.shape;
  const shape = [1, heads, queries + 1, keys + 1];
  const cells = shape[2] * shape[3];
  const appended = { shape, data: new Float32Array(heads * cells), allowed: new Uint8Array(heads * cells) };
  for (const name of /** @type {const} */ (["data", "allowed"]))
    for (let head = 0; head < heads; head++) {
      for (let query = 0; query < queries; query++) {
        const start = (head * queries + query) * keys;
        appended[name].set(map[name].subarray(start, start + keys), head * cells + query * shape[3]);
      }
      appended[name].set(row[name].subarray(head * shape[3], (head + 1) * shape[3]), head * cells + queries * shape[3]);
    }
  return appended;
}

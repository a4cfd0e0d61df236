// A translation model on one source with some heads off, and the progress of a beam search with it.

import { extendedHypothesis, logProbabilities, nextHypotheses, EMPTY_HYPOTHESIS } from "./beam-search.js";
import { cutTo } from "../write/language-model-reader.js";
import { LruCache } from "../../base/lru-cache.js";

/** @import { Hypothesis } from "./beam-search.js" */
/** @import { Pattern, RunOptions } from "../../types.js" */
/**
 * The outputs of the decoder for some texts.
 * @typedef {object} DecoderOutput
 * @property {(text: number, position: number) => Float32Array} logitsAt the logits of what stands at a position
 * @property {Record<string, Pattern[]>} patterns
 * @property {Record<string, Pattern[]>} encoderPatterns those of the encoder
 */

const MAX_READINGS = 60; // texts whose maps are cached

/** A reader that runs a translation model on one source sentence. */
export class TranslationReader {
  /** @type {LruCache<DecoderOutput>} by the tokens */
  readings = new LruCache(MAX_READINGS);
  /** @type {any} the outputs of the encoder */
  memory = null;

  /**
   * @param {(program: string, inputs: Record<string, any>, options: RunOptions) => Promise<any>} ask null if it failed
   * @param {number[]} source
   * @param {number} bosId the id of the beginning
   * @param {number} vocabSize of the target
   */
  constructor(ask, source, bosId, vocabSize) {
    this.ask = ask;
    this.source = source;
    this.bosId = bosId;
    this.vocabSize = vocabSize;
  }

  /** Return the outputs of the encoder for the source. */
  async encode() {
    if (this.memory) return this.memory;
    const result = await this.ask(
      "encode",
      { source: { shape: [1, this.source.length], data: this.source } },
      { capture: true },
    );
    return result && (this.memory = { ...result.outputs, patterns: result.patterns });
  }

  /** @param {number[][]} texts of one length @param {boolean} [capture] @returns {Promise<DecoderOutput | null>} */
  async decode(texts, capture = false) {
    const memory = await this.encode();
    if (!memory) return null;
    const target = {
      shape: [texts.length, texts[0].length + 1],
      data: texts.flatMap((tokens) => [this.bosId, ...tokens]),
    };
    const result = await this.ask(
      "decode",
      { target, states: memory.states, attention_mask: memory.attention_mask },
      { capture },
    );
    if (!result) return null;
    const { shape, data } = cutTo(result.outputs.logits, this.vocabSize);
    /** @param {number} text @param {number} position */
    const logitsAt = (text, position) =>
      data.subarray((text * shape[1] + position) * shape[2], (text * shape[1] + position + 1) * shape[2]);
    return { logitsAt, patterns: result.patterns, encoderPatterns: memory.patterns };
  }

  /** Return the outputs of the decoder for one text, with its maps. @param {number[]} tokens */
  async readText(tokens) {
    const key = String(tokens);
    const known = this.readings.get(key) ?? (await this.decode([tokens], true));
    return known && this.readings.set(key, known);
  }
}

/** A beam search that proceeds step by step. */
export class TranslationSearch {
  /** @type {Hypothesis[][]} */
  columns = [];

  /**
   * @param {TranslationReader} reader
   * @param {number[]} prefix the tokens that a text has to begin with
   * @param {{ numBeams: number, lengthPenalty: number, eosId: number, suppressedIds: number[], maxNewTokens: number }} options
   */
  constructor(reader, prefix, options) {
    this.reader = reader;
    this.prefix = prefix;
    this.options = options;
  }

  get done() {
    const { columns, options } = this;
    return columns.length >= options.maxNewTokens || Boolean(columns.at(-1)?.every(({ ended }) => ended));
  }

  /** Return the log-probabilities of the next token of each text that goes on. @param {Hypothesis[]} texts */
  async nextLogProbabilities(texts) {
    const open = texts.filter(({ ended }) => !ended).map(({ tokens }) => tokens);
    const result = await (open.length === 1 ? this.reader.readText(open[0]) : this.reader.decode(open));
    if (!result) return null;
    let next = 0;
    return texts.map(({ ended, tokens }) =>
      ended ? null : logProbabilities(result.logitsAt(next++, tokens.length), this.options.suppressedIds),
    );
  }

  /** Add a column: the token that was asked for, or what the search finds; false if it cannot go on. */
  async advance() {
    const { columns, prefix, options } = this;
    /** @type {Hypothesis[]} */
    const texts = columns.at(-1) ?? [EMPTY_HYPOTHESIS];
    const logs = this.done ? null : await this.nextLogProbabilities(texts);
    if (!logs) return false;
    const token = prefix[columns.length];
    columns.push(
      token === undefined
        ? nextHypotheses(texts, logs, options)
        : [extendedHypothesis(texts[0], 0, token, logs[0]?.[token] ?? NaN, options.eosId)],
    );
    return true;
  }
}

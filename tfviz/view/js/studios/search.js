// What a translator makes of a source with some heads off, and how far a search for its translation has come.

import { continued, logarithms, nextBeam, NO_TEXT } from "./beams.js";
import { cutTo } from "./reading.js";

const READINGS = 60; // texts whose maps are kept

export class Reader {
  readings = new Map();
  memory = null;

  // ask(program, inputs, options) -> what it gives, or null if it failed; source: ids; begin: the id of the beginning;
  // tokens: how many the target's vocabulary has
  constructor(ask, source, begin, tokens) {
    this.ask = ask;
    this.source = source;
    this.begin = begin;
    this.tokens = tokens;
  }

  // What the encoder makes of the source.
  async encoded() {
    if (this.memory) return this.memory;
    const made = await this.ask(
      "encode",
      { source: { shape: [1, this.source.length], data: this.source } },
      { watch: true },
    );
    return made && (this.memory = { ...made.outputs, patterns: made.patterns });
  }

  // Texts of one length: { at(text, place) -> the logits of what stands at this place, patterns }
  async decoded(texts, watch = false) {
    const memory = await this.encoded();
    if (!memory) return null;
    const target = {
      shape: [texts.length, texts[0].length + 1],
      data: texts.flatMap((tokens) => [this.begin, ...tokens]),
    };
    const made = await this.ask("decode", { target, states: memory.states, words: memory.words }, { watch });
    if (!made) return null;
    const { shape, data } = cutTo(made.outputs.logits, this.tokens);
    const at = (text, place) =>
      data.subarray((text * shape[1] + place) * shape[2], (text * shape[1] + place + 1) * shape[2]);
    return { at, patterns: made.patterns, heard: memory.patterns };
  }

  // The same of one text, with its maps.
  async reading(tokens) {
    const key = String(tokens);
    if (!this.readings.has(key)) {
      const made = await this.decoded([tokens], true);
      if (!made) return null;
      this.readings.set(key, made);
      if (this.readings.size > READINGS) this.readings.delete(this.readings.keys().next().value);
    }
    return this.readings.get(key);
  }
}

export class Search {
  columns = [];

  // prefix: the tokens that a text has to begin with; how: { width, alpha, end, suppressed, max_tokens }
  constructor(reader, prefix, how) {
    this.reader = reader;
    this.prefix = prefix;
    this.how = how;
  }

  get done() {
    const { columns, how } = this;
    return columns.length >= how.max_tokens || (columns.length > 0 && columns.at(-1).every(({ ended }) => ended));
  }

  // The logs of the next token of each text that goes on.
  async logs(texts) {
    const open = texts.filter(({ ended }) => !ended).map(({ tokens }) => tokens);
    const made = await (open.length === 1 ? this.reader.reading(open[0]) : this.reader.decoded(open));
    if (!made) return null;
    let next = 0;
    return texts.map(({ ended, tokens }) =>
      ended ? null : logarithms(made.at(next++, tokens.length), this.how.suppressed),
    );
  }

  // One column more: the token that was asked for, or what the search finds; false if it cannot go on.
  async advance() {
    const { columns, prefix, how } = this;
    const texts = columns.at(-1) ?? [NO_TEXT];
    const logs = this.done ? null : await this.logs(texts);
    if (!logs) return false;
    const token = prefix[columns.length];
    columns.push(
      token === undefined ? nextBeam(texts, logs, how) : [continued(texts[0], 0, token, logs[0][token], how.end)],
    );
    return true;
  }
}

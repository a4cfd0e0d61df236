// A language model at a text: what it gives after every token, with some heads off and with all on.

const CARRY = ["keys", "values"];

/** @import { Edit, Pattern, RunOptions, Tensor } from "../types.d.ts" */
/** @typedef {(lane: string, program: string, inputs: Record<string, any>, options: RunOptions) => Promise<any>} Run as that of a studio */
/**
 * @typedef {object} Answer
 * @property {string} key what it depends on
 * @property {number} turn
 * @property {number[]} ids
 * @property {number} size tokens of the vocabulary
 * @property {Float32Array} logits after every token; of a kernel after the last only
 * @property {Record<string, Pattern[]>} patterns
 * @property {Float32Array | null} whole the logits with all heads on, where some are off
 * @property {number} [cost] nats a token
 * @property {number} [before] the same with all heads on
 */

export class TextReader {
  turn = 0;
  /** @type {{ key: string, made: Promise<Answer | null> } | null} */
  asking = null;
  /** @type {Answer | null} the answer whose keys and values the engine has */
  kept = null;
  /** @type {Record<string, any>} outputs with all heads on, of the last text */
  wholes = {};

  /** @param {Run} run @param {{ steps: boolean, context: number, tokens: number }} sizes steps: whether there is a program that goes on by a token; tokens: how many the vocabulary has */
  constructor(run, { steps, context, tokens }) {
    this.run = run;
    this.steps = steps;
    this.context = context;
    this.tokens = tokens;
  }

  // Null if it failed, which is then said, or if something else was asked meanwhile.
  /** @param {number[]} ids @param {Edit[]} edits @returns {Promise<Answer | null>} */
  read(ids, edits) {
    const key = readingKey(ids, edits);
    if (this.asking?.key === key) return this.asking.made;
    const made = this.ask(ids, edits, key);
    this.asking = { key, made };
    return made.finally(() => {
      if (this.asking?.made === made) this.asking = null;
    });
  }

  /** @param {number[]} ids @param {Edit[]} edits @param {string} key @returns {Promise<Answer | null>} */
  async ask(ids, edits, key) {
    const turn = ++this.turn;
    const inputs = { ids: { shape: [1, ids.length], data: ids } };
    const [made, whole] = await Promise.all([
      this.run("read", "read", inputs, { edits, watch: true, carry: CARRY }),
      edits.length ? this.whole(ids, inputs) : null,
    ]);
    if (!made || (edits.length && !whole)) return null;
    const { data: logits, shape } = cutTo(made.outputs.logits, this.tokens);
    const cost = made.outputs.cost?.data[0];
    const size = Number(shape.at(-1));
    const all = whole && { whole: cutTo(whole.logits, this.tokens).data, before: whole.cost?.data[0] };
    const answer = { key, turn, ids, size, logits, patterns: made.patterns, cost, whole: null, ...all };
    if (!edits.length) this.wholes = { [key]: made.outputs };
    if (turn === this.turn) this.kept = edits.length ? null : answer; // whose keys and values the engine has
    return answer;
  }

  /** @param {number[]} ids @param {Record<string, any>} inputs */
  async whole(ids, inputs) {
    const key = readingKey(ids, []);
    if (!this.wholes[key]) {
      const made = await this.run("whole", "read", inputs, {});
      if (!made) return null;
      this.wholes = { [key]: made.outputs };
    }
    return this.wholes[key];
  }

  // What one token more gives, where the keys and values of the text before it are kept; else null.
  /** @param {Answer} answer @param {number} id @returns {Promise<Answer | null>} */
  async extend(answer, id) {
    if (!this.steps || this.kept !== answer || answer.ids.length + 1 > this.context) return null;
    const turn = ++this.turn;
    this.kept = null;
    const made = await this.run("step", "step", { ids: { shape: [1, 1], data: [id] } }, { watch: true, carry: CARRY });
    if (!made) return null;
    const ids = [...answer.ids, id];
    const logits = new Float32Array(answer.logits.length + answer.size);
    logits.set(answer.logits);
    logits.set(cutTo(made.outputs.logits, this.tokens).data, answer.logits.length);
    /** @type {Record<string, Pattern[]>} */
    const patterns = {};
    for (const [site, [map]] of Object.entries(answer.patterns)) patterns[site] = [longer(map, made.patterns[site][0])];
    const next = { key: readingKey(ids, []), turn, ids, size: answer.size, logits, patterns, whole: null };
    if (turn === this.turn) this.kept = next;
    return next;
  }
}

// Logits of the tokens that the vocabulary has: a model may have room for more.
/** @param {Tensor<"float32">} logits @param {number} tokens */
export function cutTo(logits, tokens) {
  const { shape, data } = logits;
  const each = Number(shape.at(-1));
  if (each <= tokens) return logits;
  const cut = new Float32Array((data.length / each) * tokens);
  for (let row = 0; row * each < data.length; row++)
    cut.set(data.subarray(row * each, row * each + tokens), row * tokens);
  return { ...logits, shape: [...shape.slice(0, -1), tokens], data: cut };
}

// What an answer depends on.
/** @param {number[]} ids @param {Edit[]} edits */
export const readingKey = (ids, edits) => JSON.stringify([ids, edits]);

// The logits after the last token.
/** @param {Float32Array} logits @param {number} size */
export const lastOf = (logits, size) => logits.subarray(logits.length - size);

// A map with one query more, which has one key more.
/** @param {Pattern} map @param {Pattern} row @returns {Pattern} */
function longer(map, row) {
  const [, heads, queries, keys] = map.shape;
  const shape = [1, heads, queries + 1, keys + 1];
  const cells = shape[2] * shape[3];
  const made = { shape, data: new Float32Array(heads * cells), open: new Uint8Array(heads * cells) };
  for (const name of /** @type {const} */ (["data", "open"]))
    for (let head = 0; head < heads; head++) {
      for (let query = 0; query < queries; query++) {
        const start = (head * queries + query) * keys;
        made[name].set(map[name].subarray(start, start + keys), head * cells + query * shape[3]);
      }
      made[name].set(row[name].subarray(head * shape[3], (head + 1) * shape[3]), head * cells + queries * shape[3]);
    }
  return made;
}

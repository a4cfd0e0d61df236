// A language model at a text: what it gives after every token, with some heads off and with all on.

const CARRY = ["keys", "values"];

export class TextReader {
  turn = 0;
  asking = null;
  kept = null;
  wholes = {};

  // run: as `Studio.run`; steps: whether there is a program that goes on by a token; tokens: how many the vocabulary has
  constructor(run, { steps, context, tokens }) {
    this.run = run;
    this.steps = steps;
    this.context = context;
    this.tokens = tokens;
  }

  // { key, turn, ids, size, logits, patterns, whole }: `whole` has the logits with all heads on, where some are off. A
  // kernel gives the logits after the last token only, and the costs in nats: `cost` and, with all heads on, `before`.
  // Null if it failed, which is then said, or if something else was asked meanwhile.
  read(ids, edits) {
    const key = readingKey(ids, edits);
    if (this.asking?.key === key) return this.asking.made;
    const made = this.ask(ids, edits, key);
    this.asking = { key, made };
    return made.finally(() => {
      if (this.asking?.made === made) this.asking = null;
    });
  }

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
    const size = shape.at(-1);
    const all = whole && { whole: cutTo(whole.logits, this.tokens).data, before: whole.cost?.data[0] };
    const answer = { key, turn, ids, size, logits, patterns: made.patterns, cost, whole: null, ...all };
    if (!edits.length) this.wholes = { [key]: made.outputs };
    if (turn === this.turn) this.kept = edits.length ? null : answer; // whose keys and values the engine has
    return answer;
  }

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
  async further(answer, id) {
    if (!this.steps || this.kept !== answer || answer.ids.length + 1 > this.context) return null;
    const turn = ++this.turn;
    this.kept = null;
    const made = await this.run("step", "step", { ids: { shape: [1, 1], data: [id] } }, { watch: true, carry: CARRY });
    if (!made) return null;
    const ids = [...answer.ids, id];
    const logits = new Float32Array(answer.logits.length + answer.size);
    logits.set(answer.logits);
    logits.set(cutTo(made.outputs.logits, this.tokens).data, answer.logits.length);
    const patterns = {};
    for (const [site, [map]] of Object.entries(answer.patterns)) patterns[site] = [longer(map, made.patterns[site][0])];
    const next = { key: readingKey(ids, []), turn, ids, size: answer.size, logits, patterns, whole: null };
    if (turn === this.turn) this.kept = next;
    return next;
  }
}

// Logits of the tokens that the vocabulary has: a model may have room for more.
export function cutTo(logits, tokens) {
  const { shape, data } = logits;
  const each = shape.at(-1);
  if (each <= tokens) return logits;
  const cut = new Float32Array((data.length / each) * tokens);
  for (let row = 0; row * each < data.length; row++)
    cut.set(data.subarray(row * each, row * each + tokens), row * tokens);
  return { ...logits, shape: [...shape.slice(0, -1), tokens], data: cut };
}

// What an answer depends on.
export const readingKey = (ids, edits) => JSON.stringify([ids, edits]);

// The logits after the last token.
export const lastOf = (logits, size) => logits.subarray(logits.length - size);

// A map with one query more, which has one key more.
function longer(map, row) {
  const [, heads, queries, keys] = map.shape;
  const shape = [1, heads, queries + 1, keys + 1];
  const cells = shape[2] * shape[3];
  const made = { shape, data: new Float32Array(heads * cells), open: new Uint8Array(heads * cells) };
  for (const name of ["data", "open"])
    for (let head = 0; head < heads; head++) {
      for (let query = 0; query < queries; query++) {
        const start = (head * queries + query) * keys;
        made[name].set(map[name].subarray(start, start + keys), head * cells + query * shape[3]);
      }
      made[name].set(row[name].subarray(head * shape[3], (head + 1) * shape[3]), head * cells + queries * shape[3]);
    }
  return made;
}

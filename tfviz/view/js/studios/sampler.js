// How the next token is chosen from the logits, as `tfviz.generate.Sampler` chooses it: same numbers, same draws.

/** @typedef {ArrayLike<number> & Iterable<number>} Numbers */
/** @typedef {{ temperature?: number, topK?: number | null, topP?: number | null }} Sampling null where it is not used */

// Temperature 0 takes the likeliest.
/** @param {Numbers} logits @param {Sampling} [sampling] */
export function probabilities(logits, { temperature = 1, topK = null, topP = null } = {}) {
  const scores = Float64Array.from(logits);
  const top = scores.reduce((a, b) => Math.max(a, b));
  if (!Number.isFinite(top)) throw new Error("the model's logits are not finite; there is nothing to draw from");
  const order = [...scores.keys()].sort((a, b) => scores[b] - scores[a] || a - b);
  const made = new Float64Array(scores.length);
  if (temperature === 0) {
    made[order[0]] = 1;
    return made;
  }
  const least = topK !== null && topK < scores.length ? scores[order[topK - 1]] : -Infinity;
  for (const i of order) made[i] = scores[i] >= least ? Math.exp((scores[i] - top) / temperature) : 0;
  let sum = made.reduce((a, b) => a + b);
  for (const i of order) made[i] /= sum;
  if (topP === null) return made;
  let before = 0;
  for (const [rank, i] of order.entries()) {
    const share = made[i];
    if (rank && before >= topP) made[i] = 0;
    before += share;
  }
  sum = made.reduce((a, b) => a + b);
  return made.map((share) => share / sum);
}

// The first token at which the sum of the probabilities passes the number drawn.
/** @param {Float64Array} probabilities @param {number} number */
export function sampleFrom(probabilities, number) {
  const drawn = number * probabilities.reduce((a, b) => a + b);
  let sum = 0;
  for (let i = 0; i < probabilities.length; i++) {
    sum += probabilities[i];
    if (sum > drawn) return i;
  }
  return probabilities.findLastIndex((share) => share > 0);
}

// How much each token of a text costs, in nats: minus the log of the probability that the logits before gave it.
/** @param {Float32Array} logits @param {number[]} ids @param {number} vocab */
export function costs(logits, ids, vocab) {
  return ids.slice(1).map((id, i) => {
    const row = logits.subarray(i * vocab, (i + 1) * vocab);
    const top = row.reduce((a, b) => Math.max(a, b));
    let sum = 0;
    for (const score of row) sum += Math.exp(score - top);
    return Math.log(sum) + top - row[id];
  });
}

// PyTorch's generator: the Mersenne Twister of Matsumoto and Nishimura (1998), and its numbers from 0 to 1 of 53 bits.
export class MersenneTwister {
  /** @param {number} seed */
  constructor(seed) {
    this.state = new Uint32Array(624);
    this.state[0] = seed % 2 ** 32;
    for (let i = 1; i < 624; i++) {
      const before = this.state[i - 1];
      this.state[i] = Math.imul(1812433253, before ^ (before >>> 30)) + i;
    }
    this.at = 624;
  }

  word() {
    if (this.at === 624) this.turn();
    let word = this.state[this.at++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  turn() {
    const { state } = this;
    for (let i = 0; i < 624; i++) {
      const mixed = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
      state[i] = state[(i + 397) % 624] ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
    }
    this.at = 0;
  }

  // As `torch.rand((), dtype=torch.float64)`
  number() {
    const high = this.word() & 0x1fffff;
    return (high * 2 ** 32 + this.word()) * 2 ** -53;
  }
}

// Sampling of the next token from logits, with the same probabilities and the same random numbers as
// `tfviz.generate.Sampler`.

import { largest, normalized, notFinite, softmax, topK as largestIndices } from "../logits.js";

/** @import { NumberList } from "../../base/grid.js" */
/**
 * @typedef {{ temperature?: number, topK?: number | null, topP?: number | null }} Sampling null where it is not used
 */

/**
 * Return the probabilities that a token is drawn with. Temperature 0 takes the likeliest.
 * @param {NumberList} logits
 * @param {Sampling} [sampling]
 */
export function probabilities(logits, { temperature = 1, topK = null, topP = null } = {}) {
  if (!Number.isFinite(largest(logits))) throw notFinite("there is nothing to draw from");
  if (temperature === 0) {
    const [best] = largestIndices(logits, 1);
    return Float64Array.from(logits, (_, i) => Number(i === best));
  }
  const distribution = softmax(topK === null ? logits : withinTopK(logits, topK), temperature);
  return topP === null ? distribution : withinTopP(distribution, logits, topP);
}

/** Return the logits with -Infinity for those below the k-th. @param {NumberList} logits @param {number} count */
function withinTopK(logits, count) {
  const threshold = logits[largestIndices(logits, count).at(-1) ?? 0];
  return Float64Array.from(logits, (logit) => (logit >= threshold ? logit : -Infinity));
}

/**
 * Return the probabilities of the likeliest tokens until their sum passes `topP`; the first one is always among them.
 * @param {Float64Array} distribution
 * @param {NumberList} logits
 * @param {number} topP
 */
function withinTopP(distribution, logits, topP) {
  const order = [...distribution.keys()].sort((a, b) => logits[b] - logits[a] || a - b);
  const nucleus = distribution.slice();
  let before = 0;
  for (const [rank, i] of order.entries()) {
    if (rank && before >= topP) nucleus[i] = 0;
    before += distribution[i];
  }
  return normalized(nucleus);
}

/**
 * Return the first token at which the sum of the probabilities passes a number between 0 and 1.
 * @param {Float64Array} probabilities
 * @param {number} number
 */
export function sampleFrom(probabilities, number) {
  const target = number * probabilities.reduce((a, b) => a + b);
  let sum = 0;
  for (let i = 0; i < probabilities.length; i++) {
    sum += probabilities[i];
    if (sum > target) return i;
  }
  return probabilities.findLastIndex((probability) => probability > 0);
}

/**
 * The random number generator of PyTorch: the Mersenne Twister of Matsumoto and Nishimura (1998), with uniform numbers
 * of 53 bits from 0 to 1.
 */
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
    if (this.at === 624) this.twist();
    let word = this.state[this.at++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  twist() {
    const { state } = this;
    for (let i = 0; i < 624; i++) {
      const mixed = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
      state[i] = state[(i + 397) % 624] ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
    }
    this.at = 0;
  }

  /** Draw a number as `torch.rand((), dtype=torch.float64)` does. */
  number() {
    const high = this.word() & 0x1fffff;
    return (high * 2 ** 32 + this.word()) * 2 ** -53;
  }
}

/** A sequence of random numbers from a seed. */
export class SeededNumbers {
  /** @type {number | null} */
  seed = null;
  /** @type {number[]} those drawn so far */
  numbers = [];
  twister = new MersenneTwister(0);

  /** Return the n-th number: always the same one for a seed. @param {number} seed @param {number} n */
  at(seed, n) {
    if (seed !== this.seed) Object.assign(this, { seed, numbers: [], twister: new MersenneTwister(seed) });
    while (this.numbers.length <= n) this.numbers.push(this.twister.number());
    return this.numbers[n];
  }
}

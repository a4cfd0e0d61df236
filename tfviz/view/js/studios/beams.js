// Beam search as `tfviz.generate.beam` does it: the arithmetic alone, no model and no page.

/** @typedef {ArrayLike<number> & Iterable<number>} Numbers */
/**
 * A text of the search.
 * @typedef {object} Beam
 * @property {number[]} tokens
 * @property {number} sum log of its probability
 * @property {boolean} ended
 * @property {boolean} over it had ended before this step
 * @property {number} parent its rank at the step before
 */

/** @param {number} length @param {number} alpha */
const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

/** @param {Pick<Beam, "tokens" | "sum">} text @param {number} alpha */
export const scoreOf = ({ tokens, sum }, alpha) => sum / lengthPenalty(tokens.length, alpha);

/** @type {Readonly<Beam>} */
export const NO_TEXT = Object.freeze({ tokens: [], sum: 0, ended: false, over: false, parent: 0 });

// The logs of the probabilities of all tokens; those that never come have -Infinity, and the others are as they were.
/** @param {Numbers} logits @param {number[]} [suppressed] */
export function logarithms(logits, suppressed = []) {
  let top = -Infinity;
  for (const score of logits) {
    if (Number.isNaN(score)) throw new Error("the model's logits are not finite; it cannot translate");
    top = Math.max(top, score);
  }
  let sum = 0;
  for (const score of logits) sum += Math.exp(score - top);
  const all = top + Math.log(sum);
  const made = Float64Array.from(logits, (score) => score - all);
  for (const token of suppressed) made[token] = -Infinity;
  return made;
}

// The `most` tokens with the highest logs, of equal ones the first.
/** @param {Numbers} logs @param {number} most */
export function highest(logs, most) {
  /** @type {number[]} */
  const found = [];
  for (let token = 0; token < logs.length; token++) {
    if (logs[token] === -Infinity) continue;
    if (found.length === most && logs[token] <= logs[found[most - 1]]) continue;
    let place = found.length;
    while (place > 0 && logs[token] > logs[found[place - 1]]) place--;
    found.splice(place, 0, token);
    if (found.length > most) found.pop();
  }
  return found;
}

/** @param {Beam} text @param {number} parent @param {number} token @param {number} log @param {number} end @returns {Beam} */
export function continued(text, parent, token, log, end) {
  return { tokens: [...text.tokens, token], sum: text.sum + log, ended: token === end, over: false, parent };
}

// The best of all continuations.
/** @param {Beam[]} texts @param {(Numbers | null)[]} logs of the next token of each text; null where it has ended @param {{ width: number, alpha: number, end: number }} how @returns {Beam[]} */
export function nextBeam(texts, logs, { width, alpha, end }) {
  const found = texts.flatMap((text, parent) => {
    const next = logs[parent];
    if (text.ended || !next) return [{ ...text, over: true, parent }];
    return highest(next, width).map((token) => continued(text, parent, token, next[token], end));
  });
  const scores = new Map(found.map((text) => [text, scoreOf(text, alpha)]));
  return found.sort((a, b) => Number(scores.get(b)) - Number(scores.get(a))).slice(0, width);
}

// Where a text stood at each step: its place in each column, the first column first.
/** @param {Beam[][]} columns @param {number} column @param {number} rank */
export function wayTo(columns, column, rank) {
  /** @type {number[]} */
  const way = [];
  for (let step = column, at = rank; step >= 0; at = columns[step][at].parent, step--) way.unshift(at);
  return way;
}

// Measures how toggling a head, off if it is on or on if it is off, would change a studio's answer.

import { percent, withSign } from "../base/numbers.js";
import { LruCache } from "../base/lru-cache.js";

/** @import { Edit } from "../types.js" */
/** @import { HeadAddress } from "./model-pane.js" */
/** @import { Studio } from "./studio.js" */
/**
 * A measure of a studio's answer, such as the probability of a label or the loss of a text.
 * @typedef {object} AblationQuery
 * @property {string} key of everything that the measure depends on, but for the edits
 * @property {number} value the measure now
 * @property {(edits: Edit[]) => Promise<number | null>} measure it with other heads off; null if that failed
 * @property {(other: number, isAblated: boolean) => string} describe the change that toggling a head makes, in a sentence
 * @property {(value: number) => number} loss of a value, in `unit`: the larger, the worse the answer
 * @property {string} unit such as "nats a letter"
 */

const CERTAINTY_MARGIN = 0.005; // a probability as near to 0 or 1
const MIN_PROBABILITY = 1e-7; // where float32 cannot tell a probability from 0 or 1
const MAX_CACHED_VALUES = 2000; // a few times as many as a model has heads

/** @param {number} probability @returns {number} its log-odds, log p / (1 - p), of p near 0 or 1 clipped */
function logOddsOf(probability) {
  const clipped = Math.min(Math.max(probability, MIN_PROBABILITY), 1 - MIN_PROBABILITY);
  return Math.log(clipped / (1 - clipped));
}

/**
 * Make the query of the probability of what the model says; its loss is minus its log-odds.
 * @template Answer
 * @param {string} name of what it says, within a sentence
 * @param {object} query
 * @param {string} query.key of everything that the answer depends on, but for the edits
 * @param {Answer} query.answer the model's answer now
 * @param {(answer: Answer) => number} query.probability of what it says, in an answer
 * @param {(edits: Edit[]) => Promise<Answer | null>} query.ask the answer with other heads off; null if that failed
 * @returns {AblationQuery}
 */
export function probabilityQuery(name, { key, answer, probability, ask }) {
  const value = probability(answer);
  return {
    key,
    value,
    measure: async (edits) => {
      const other = await ask(edits);
      return other && probability(other);
    },
    describe: (other, isAblated) => probabilityChange(name, value, other, isAblated),
    loss: (other) => -logOddsOf(other),
    unit: `log-odds of ${name}`,
  };
}

/**
 * Describe the change of a probability in a sentence.
 * @param {string} name
 * @param {number} probability
 * @param {number} other
 * @param {boolean} isAblated
 */
function probabilityChange(name, probability, other, isAblated) {
  const [now, then] = [probability, other].map(percent);
  const how = isAblated ? "With this head on" : "With this head off";
  const [falls, fall] = other < probability ? ["falls", "fall"] : ["rises", "rise"];
  if (now !== then) return `${how} ${name} ${falls} from ${now} to ${then}.`;
  const [odds, otherOdds] = [probability, other].map((one) => withSign(logOddsOf(one), 1));
  const isCertain = Math.min(probability, 1 - probability) < CERTAINTY_MARGIN; // there log-odds tell more
  if (!isCertain || odds === otherOdds) return `${how} ${name} stays at ${now}.`;
  return `${how} the log-odds of ${name} ${fall} from ${odds} to ${otherOdds}.`;
}

/** A cache of the measures with each head toggled; each is computed once, on demand. */
export class HeadAblation {
  /** @type {LruCache<number | Promise<number | null>>} a promise: it is being measured */
  values = new LruCache(MAX_CACHED_VALUES);

  /** @param {Studio<any>} studio */
  constructor(studio) {
    this.studio = studio;
  }

  /** The key of a query and of the heads that are off. @param {AblationQuery} query */
  keyOf(query) {
    return JSON.stringify([query.key, this.studio.edits]);
  }

  /**
   * Describe the effect of toggling a head; empty until it is measured, after which the sentence is shown again.
   * @param {HeadAddress} address
   * @param {AblationQuery | null} query
   */
  describe(address, query) {
    const { studio } = this;
    if (!query || studio.options.engine) return ""; // of a kernel each answer takes its time
    const other = this.values.get(JSON.stringify([this.keyOf(query), address]));
    if (other === undefined && !studio.importance.measuring)
      void this.measure(address, query).then(
        (value) => value === null || studio.frame.closed || studio.showSentence(), // a failure is not tried again at once
      );
    return typeof other === "number" ? query.describe(other, studio.heads.isAblated(address)) : "";
  }

  /**
   * Return the measure with a head toggled; null if that failed.
   * @param {HeadAddress} address
   * @param {AblationQuery} query
   */
  async measure(address, query) {
    const { studio, values } = this;
    const key = JSON.stringify([this.keyOf(query), address]);
    const known = values.get(key);
    if (known !== undefined) return known;
    const value = await values.set(key, query.measure(studio.heads.editsToggling(address)));
    if (typeof value === "number") return values.set(key, value);
    values.entries.delete(key);
    return null;
  }
}

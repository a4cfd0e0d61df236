// Predicts how toggling the selected head, off if it is on or on if it is off, would change what the model says.

import { percent, withSign } from "../base/numbers.js";
import { LruCache } from "../base/lru-cache.js";

/** @import { Edit } from "../types.js" */
/** @import { HeadAddress } from "./model-pane.js" */
/** @import { Studio } from "./studio.js" */
/**
 * @template Answer
 * @typedef {object} AblationQuery
 * @property {string} key of everything that the answer depends on, but for the head
 * @property {string} name of what the model says, within a sentence
 * @property {Answer} answer the model's answer now
 * @property {(answer: Answer) => number} probability of what it says, in an answer
 * @property {(edits: Edit[]) => Promise<Answer | null>} ask the answer with other heads off; null if that failed
 */

const CERTAINTY_MARGIN = 0.005; // a probability as near to 0 or 1
const MAX_CACHED_VALUES = 500;

/** A cache of the effect of toggling each head; each is computed once, on demand, and shown when it is known. */
export class HeadAblation {
  /** @type {LruCache<number | null>} null: it is asked for */
  values = new LruCache(MAX_CACHED_VALUES);

  /** @param {Studio<any>} studio */
  constructor(studio) {
    this.studio = studio;
  }

  /** @template Answer @param {HeadAddress} address @param {AblationQuery<Answer>} query */
  describe(address, { key, name, answer, probability, ask }) {
    const { studio } = this;
    if (studio.options.engine) return ""; // of a kernel each answer takes its time
    const other = this.valueWith(address, key, async (edits) => {
      const toggled = await ask(edits);
      return toggled && probability(toggled);
    });
    if (other === null) return "";
    const current = probability(answer);
    const [now, then] = [current, other].map(percent);
    const how = studio.heads.isOff(address) ? "With this head on" : "With this head off";
    const [falls, fall] = other < current ? ["falls", "fall"] : ["rises", "rise"];
    if (now !== then) return `${how} ${name} ${falls} from ${now} to ${then}.`;
    const [odds, otherOdds] = [current, other].map((one) => withSign(Math.log(one / (1 - one)), 1));
    const isCertain = Math.min(current, 1 - current) < CERTAINTY_MARGIN; // there log-odds tell more
    if (!isCertain || odds === otherOdds) return `${how} ${name} stays at ${now}.`;
    return `${how} the log-odds of ${name} ${fall} from ${odds} to ${otherOdds}.`;
  }

  /**
   * Return a value with a head toggled; null if it is not known yet. Then it is requested, and the sentence shown again.
   * @param {HeadAddress} address
   * @param {string} key of everything else that it depends on
   * @param {((edits: Edit[]) => Promise<number | null>) | null} ask null: it is not requested now
   */
  valueWith(address, key, ask) {
    const valueKey = JSON.stringify([key, this.studio.edits, address]);
    const value = this.values.get(valueKey);
    if (value === undefined && ask) void this.request(valueKey, address, ask);
    return value ?? null;
  }

  /** @param {string} key @param {HeadAddress} address @param {(edits: Edit[]) => Promise<number | null>} ask */
  async request(key, address, ask) {
    const { studio, values } = this;
    values.set(key, null);
    const value = await ask(studio.heads.editsToggling(address));
    if (value === null) return void values.entries.delete(key);
    values.set(key, value);
    if (!studio.frame.closed) studio.showSentence();
  }
}

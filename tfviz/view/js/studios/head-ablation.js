// Predicts how toggling the selected head, off if it is on or on if it is off, would change an answer's probability.

import { percent, withSign } from "../base/numbers.js";
import { LruCache } from "./lru-cache.js";

/** @import { Edit } from "../types.js" */
/** @import { HeadAddress } from "./model-pane.js" */
/** @import { Studio } from "./studio.js" */
/**
 * @typedef {object} AblationQuery
 * @property {string} key of everything that the answer depends on, but for the head
 * @property {string} name of the answer, within a sentence
 * @property {number} probability its probability now
 * @property {(edits: Edit[]) => Promise<number | null>} ask its probability with other heads off; null if that failed
 */

const CERTAINTY_MARGIN = 0.005; // a probability as near to 0 or 1
const MAX_CACHED_PROBABILITIES = 500; // probabilities

/** A cache of the effect of toggling each head; each is computed once, on demand, and shown when it is known. */
export class HeadAblation {
  /** @type {LruCache<number | null>} null: it is asked for */
  probabilities = new LruCache(MAX_CACHED_PROBABILITIES);

  /** @param {Studio<any>} studio */
  constructor(studio) {
    this.studio = studio;
  }

  /** @param {HeadAddress} address @param {AblationQuery | null} asked */
  describe(address, asked) {
    const { studio, probabilities } = this;
    if (!asked || studio.options.engine) return ""; // of a kernel each answer takes its time
    const off = studio.heads.isOff(address);
    const key = JSON.stringify([asked.key, studio.edits, address]);
    const other = probabilities.get(key);
    if (other === undefined) void this.ask(key, address, asked);
    if (other === undefined || other === null) return "";
    const [now, then] = [asked.probability, other].map(percent);
    const how = off ? "With this head on" : "With this head off";
    const [falls, fall] = other < asked.probability ? ["falls", "fall"] : ["rises", "rise"];
    if (now !== then) return `${how} ${asked.name} ${falls} from ${now} to ${then}.`;
    const [odds, otherOdds] = [asked.probability, other].map((probability) =>
      withSign(Math.log(probability / (1 - probability)), 1),
    );
    const isCertain = Math.min(asked.probability, 1 - asked.probability) < CERTAINTY_MARGIN; // there log-odds tell more
    if (!isCertain || odds === otherOdds) return `${how} ${asked.name} stays at ${now}.`;
    return `${how} the log-odds of ${asked.name} ${fall} from ${odds} to ${otherOdds}.`;
  }

  /** @param {string} key @param {HeadAddress} address @param {AblationQuery} asked */
  async ask(key, address, { ask }) {
    const { studio, probabilities } = this;
    probabilities.set(key, null);
    const probability = await ask(studio.heads.editsToggling(address));
    if (probability === null) return void probabilities.entries.delete(key);
    probabilities.set(key, probability);
    if (!studio.frame.closed) studio.showSentence();
  }
}

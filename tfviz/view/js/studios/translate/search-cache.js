// A cache of the searches for translations, and of the encoder's results for their sources.

import { TranslationReader, TranslationSearch } from "./translation-search.js";
import { LruCache } from "../../base/lru-cache.js";

/** @import { Edit, ProgramNode } from "../../types.js" */
/** @import { TranslateStudio } from "./translate-studio.js" */

const MAX_SEARCHES = 8; // searches, and readers, that are cached

/** A cache of the readers and searches used most recently. */
export class SearchCache {
  /** @type {LruCache<TranslationReader>} by source and heads that are off */
  readers = new LruCache(MAX_SEARCHES);
  /** @type {LruCache<TranslationSearch>} */
  searches = new LruCache(MAX_SEARCHES);

  /** @param {TranslateStudio} studio */
  constructor(studio) {
    this.studio = studio;
  }

  /** Return the search for the current choices. @param {number[]} ids of the source @param {Edit[]} edits */
  searchFor(ids, edits) {
    const { store, viewDocument } = this.studio;
    const [numBeams, lengthPenalty, prefix] = [
      store.get("num_beams"),
      store.get("length_penalty"),
      store.get("prefix"),
    ];
    const { eos_id: eosId, suppressed_ids: suppressedIds, max_new_tokens: maxNewTokens } = viewDocument;
    const reader = this.readerFor(ids, edits);
    const key = JSON.stringify([ids, edits, numBeams, lengthPenalty, prefix]);
    const how = { numBeams, lengthPenalty, eosId, suppressedIds, maxNewTokens };
    return this.searches.getOrMake(key, () => new TranslationSearch(reader, prefix, how));
  }

  /** Return the reader of a source. @param {number[]} ids @param {Edit[]} edits @param {string} [channel] */
  readerFor(ids, edits, channel = "search") {
    return this.readers.getOrMake(JSON.stringify([ids, edits, channel]), () => this.makeReader(ids, edits, channel));
  }

  /** @param {number[]} ids @param {Edit[]} edits @param {string} channel */
  makeReader(ids, edits, channel) {
    const { studio } = this;
    const { bos_id: bosId, programs } = studio.viewDocument;
    /** Return the edits whose sites a program has. @param {string} program */
    const within = (program) => {
      /** @type {ProgramNode[] | undefined} */
      const nodes = programs?.[program].nodes;
      return edits.filter(({ site }) => !nodes || nodes.some((node) => node.site === site));
    };
    /** @type {TranslationReader["ask"]} */
    const ask = (program, inputs, options) =>
      studio.run(channel, program, inputs, { ...options, edits: within(program) });
    return new TranslationReader(ask, ids, bosId, studio.tokenizer.size);
  }
}

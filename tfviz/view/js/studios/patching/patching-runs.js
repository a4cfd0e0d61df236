// Runs of a language model on two texts, and runs of one of them with an activation of the other's.

import { notFinite, topK } from "../logits.js";
import { LruCache } from "../../base/lru-cache.js";

/** @import { PatchDocument } from "../../documents.js" */
/** @import { Run } from "../write/language-model-reader.js" */
/** @typedef {(typeof KINDS)[number]} Kind the residual stream before each layer, or the output of each head */
/** @typedef {[kind: Kind, layer: number, at: number]} PatchTarget at: the position, or the head */
/** @typedef {{ shape: number[], data: Float32Array }} Activations */
/** @typedef {{ logits: Float32Array, residual: Activations, heads: Activations }} UnpatchedRun */
/** @typedef {[program: string, inputs: Record<string, any>]} Request */
/**
 * @typedef {object} Pair two texts of as many tokens, and what the model says after each
 * @property {string} key
 * @property {number[][]} ids of the clean and of the corrupt text
 * @property {UnpatchedRun} clean
 * @property {UnpatchedRun} corrupt
 */

export const KINDS = /** @type {const} */ (["residual", "heads"]); // of targets and of tables, as Python numbers them
const MAX_CACHED_LOGITS = 32e6; // logits of patched runs that are kept, in all

/** A component that runs a studio's model on two texts, patched or not, and remembers what it said. */
export class PatchingRuns {
  /** @type {Pair | null} the texts read last */
  pair = null;
  /** @type {LruCache<Float32Array> | null} logits by texts and target */
  patched = null;

  /** @param {PatchDocument} sizes @param {number} vocabSize @param {Run} run */
  constructor(sizes, vocabSize, run) {
    this.sizes = sizes;
    this.vocabSize = vocabSize;
    this.run = run;
  }

  /**
   * Run the model on both texts; null if that failed, or other texts were read meanwhile.
   * @param {number[][]} ids
   * @returns {Promise<Pair | null>}
   */
  async read(ids) {
    const key = JSON.stringify(ids);
    if (this.pair?.key === key) return this.pair;
    const results = await Promise.all(ids.map((text, i) => this.ask(`text ${i}`, this.unpatchedRequest(text))));
    const [clean, corrupt] = results;
    if (!clean || !corrupt) return null;
    const targets = this.targetsOf("residual", ids[0].length).length + this.targetsOf("heads", 0).length;
    this.patched ??= new LruCache(0);
    this.patched.capacity = Math.max(targets, Math.floor(MAX_CACHED_LOGITS / this.vocabSize));
    return (this.pair = { key, ids, clean, corrupt });
  }

  /**
   * Return the logits after the corrupt text with one activation of the clean text's run; null if that failed, or
   * something else was asked for meanwhile on this channel.
   * @param {string} channel
   * @param {Pair} pair
   * @param {PatchTarget} target
   */
  async patch(channel, pair, target) {
    const known = this.known(pair, target);
    if (known) return known;
    const result = await this.ask(channel, this.patchedRequest(pair, target));
    return result && (this.patched?.set(keyOf(pair, target), result.logits) ?? null);
  }

  /** Return the logits of a patched run that was made before. @param {Pair} pair @param {PatchTarget} target */
  known(pair, target) {
    return this.patched?.get(keyOf(pair, target));
  }

  /** All targets of one kind, layer by layer. @param {Kind} kind @param {number} positions @returns {PatchTarget[]} */
  targetsOf(kind, positions) {
    const { layers, attentions, heads } = this.sizes;
    const [rows, columns] = kind === "residual" ? [layers.length, positions] : [attentions.length, heads];
    return Array.from({ length: rows * columns }, (_, i) => [kind, Math.floor(i / columns), i % columns]);
  }

  /** Request a run on one text. @param {number[]} ids @returns {Request} */
  unpatchedRequest(ids) {
    return ["read", { ids: textsTensor([ids]), ...this.emptyPatch(ids.length) }];
  }

  /** Request a run on the corrupt text with one activation of the clean one's. @param {Pair} pair @param {PatchTarget} target @returns {Request} */
  patchedRequest(pair, target) {
    return ["read", { ids: textsTensor([pair.ids[1]]), ...this.patchInputs(pair, target) }];
  }

  /** @param {string} channel @param {Request} request @returns {Promise<UnpatchedRun | null>} */
  async ask(channel, [program, inputs]) {
    const result = await this.run(channel, program, inputs, {});
    if (!result) return null;
    const { logits, residual, heads } = result.outputs;
    const cut = logits.data.slice(0, this.vocabSize); // a model may choose among more tokens than there are
    if (!cut.every(Number.isFinite)) throw notFinite("nothing can be compared");
    return { logits: cut, residual, heads };
  }

  /** The inputs of a run in which nothing is replaced. @param {number} positions */
  emptyPatch(positions) {
    const { layers, attentions, heads, dim, head_dim: headDim } = this.sizes;
    return {
      residual_at: zeros(Uint8Array, layers.length, positions),
      residual: zeros(Float32Array, layers.length, positions, dim),
      heads_at: zeros(Uint8Array, attentions.length, heads, positions),
      heads: zeros(Float32Array, attentions.length, positions, heads, headDim),
    };
  }

  /** The inputs of a run that takes one activation of the clean text's. @param {Pair} pair @param {PatchTarget} target */
  patchInputs({ ids: [ids], clean }, [kind, layer, at]) {
    const positions = ids.length;
    const { residual_at: residualAt, heads_at: headsAt } = this.emptyPatch(positions);
    if (kind === "residual") residualAt.data[layer * positions + at] = 1;
    else {
      const start = (layer * this.sizes.heads + at) * positions;
      headsAt.data.fill(1, start, start + positions);
    }
    return { residual_at: residualAt, residual: clean.residual, heads_at: headsAt, heads: clean.heads };
  }
}

/** The ids of texts of as many tokens, as a tensor [text, position]. @param {number[][]} texts */
export const textsTensor = (texts) => ({ shape: [texts.length, texts[0].length], data: texts.flat() });

/** @param {Pair} pair @param {PatchTarget} target */
const keyOf = (pair, target) => `${pair.key} ${target}`;

/**
 * @template {Float32Array | Uint8Array} Data
 * @param {new (length: number) => Data} kind
 * @param {number[]} shape
 */
const zeros = (kind, ...shape) => ({ shape, data: new kind(shape.reduce((size, side) => size * side, 1)) });

/**
 * Return the ids of both answers: those that were chosen, else the likeliest after the clean text, and the likeliest
 * other one after the corrupt text.
 * @param {Pair} pair
 * @param {number[]} chosen negative where none is
 * @returns {[clean: number, corrupt: number]}
 */
export function answersOf({ clean, corrupt }, chosen) {
  const [cleanAnswer, corruptAnswer] = chosen.map((id) => (Number.isInteger(id) && id < clean.logits.length ? id : -1));
  const differing = (/** @type {Float32Array} */ logits, /** @type {number} */ from) =>
    topK(logits, 2).find((id) => id !== from) ?? 0;
  const first = cleanAnswer >= 0 ? cleanAnswer : differing(clean.logits, corruptAnswer);
  return [first, corruptAnswer >= 0 ? corruptAnswer : differing(corrupt.logits, first)];
}

/**
 * Return how much of the difference between the two runs a patch brings back: 0 as after the corrupt text, 1 as after
 * the clean one; null where there is no difference.
 * @param {{ clean: number, corrupt: number }} metric of both runs
 * @param {number} patched
 */
export function shareBack({ clean, corrupt }, patched) {
  const difference = clean - corrupt;
  return Math.abs(difference) > 1e-6 ? (patched - corrupt) / difference : null;
}

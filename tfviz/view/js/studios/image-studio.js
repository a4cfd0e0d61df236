// A studio of one picture: which patches are hidden, what the model gives without them, and where its heads look.

import { clamp } from "../base/clamp.js";
import { PatchGrid, spread, weightLimit } from "../base/patch-grid.js";
import { Answers } from "./answers.js";
import { looksAt } from "./image-summary.js";
import { keyOf } from "./model-pane.js";
import { Studio } from "./studio.js";

/** @import { ClassifyImageDocument } from "../documents.d.ts" */
/** @import { Grid } from "../base/grid.js" */
/** @import { Profile } from "../base/patch-grid.js" */
/** @import { Answer, AskOptions } from "./answers.js" */
/** @import { Place } from "./model-pane.js" */

const MAX_ANSWERS = 2000;

/** @extends {Studio<ClassifyImageDocument>} */
export class ImageStudio extends Studio {
  answers = new Answers(this, MAX_ANSWERS);
  /** @type {Answer | null} */
  answer = null;
  /** @type {Answer | null} of the whole picture with all heads on */
  compared = null;
  turn = 0;
  /** @type {Map<string, Profile>} where each head looks, by place */
  looks = new Map();
  /** @type {Map<string, Grid>} the same on the patches of the picture, on one scale */
  thumbs = new Map();
  /** Where that scale ends. */
  limit = 1;

  get subject() {
    const { rows, columns } = this.described.patches;
    return `${this.heads.size} · ${rows} × ${columns} patches`;
  }

  get patchGrid() {
    return new PatchGrid(this.described.patches, this.described.words);
  }

  /** How many patches there are. */
  get patchCount() {
    const { rows, columns } = this.described.patches;
    return rows * columns;
  }

  /** @param {number} patch */
  patchName(patch) {
    return this.described.words[this.described.patches.first + patch];
  }

  /** The hidden patches; an address may name some that do not exist. */
  get hidden() {
    return this.store.get("hidden_patches").filter((patch) => patch >= 0 && patch < this.patchCount);
  }

  /** @param {Iterable<number>} patches */
  hide(patches) {
    this.store.set({ hidden_patches: [...new Set(patches)].sort((a, b) => a - b) });
  }

  /** The label that is followed. */
  get label() {
    return clamp(this.store.get("label"), 0, this.described.labels.length - 1);
  }

  /** @abstract the patch that is pointed at @returns {number | null} */
  get pointed() {
    return null;
  }

  /** The token that looks: the patch that is pointed at, else the class token; null for all in the mean. */
  get query() {
    const { first } = this.described.patches;
    if (this.pointed !== null) return first + this.pointed;
    return first ? 0 : null;
  }

  /** The query in words. */
  get from() {
    return this.query === null ? "from all patches in the mean" : `from ${this.described.words[this.query]}`;
  }

  /**
   * Ask the model without these patches; null if something else was asked for meanwhile on this lane.
   * @param {string} lane
   * @param {number[]} hidden
   * @param {AskOptions} [options]
   * @returns {Promise<Answer | null>}
   */
  ask(lane, hidden, options = {}) {
    const data = new Uint8Array(this.patchCount);
    for (const patch of hidden) data[patch] = 1;
    return this.answers.ask(lane, hidden, { hidden: { shape: [data.length], data } }, options);
  }

  /**
   * Ask for the answer to what is chosen now, and to the whole picture; false if something else is asked for by now.
   */
  async read() {
    const turn = ++this.turn;
    const { hidden, edits } = this;
    const [answer, whole] = await Promise.all([
      this.ask("read", hidden, { edits, watch: true }),
      hidden.length || edits.length ? this.ask("whole", []) : null,
    ]);
    if (!answer || turn !== this.turn || this.frame.closed) return false;
    const renewed = answer !== this.answer;
    this.answer = answer;
    this.compared = whole ?? answer;
    const { words } = this.described;
    if (renewed && answer.patterns) this.showMaps(answer.patterns, () => [words, words]);
    else this.showModel();
    return true;
  }

  showModel() {
    if (!this.heads.groups.length) return;
    const { query, patchGrid } = this;
    this.looks = new Map(this.heads.places.map((place) => [keyOf(place), looksAt(this.heads.grid(place), query)]));
    this.limit = Math.ceil(100 * weightLimit([...this.looks.values()], this.described.words.length)) / 100;
    this.thumbs = new Map([...this.looks].map(([key, look]) => [key, spread(look, patchGrid, this.limit)]));
    super.showModel();
  }

  /** Where a head looks. @param {Place} place */
  lookOf(place) {
    return /** @type {Profile} */ (this.looks.get(keyOf(place)));
  }

  /** @param {Place} place */
  thumbOf(place) {
    return /** @type {Grid} */ (this.thumbs.get(keyOf(place)));
  }
}

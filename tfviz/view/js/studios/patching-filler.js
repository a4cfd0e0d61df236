// Filling a table of patching: all of its cells are computed, one after another, until that is stopped.

/** @import { Kind, Pair } from "./patching-runs.js" */
/** @import { PatchingStudio } from "./patching-studio.js" */

const REDRAW_INTERVAL = 120; // milliseconds between two drawings of a table that is being filled

/** Computes the cells of one table at a time. */
export class PatchingFiller {
  /** @type {Kind | null} the table that is being filled */
  kind = null;

  /** @param {PatchingStudio} studio */
  constructor(studio) {
    this.studio = studio;
  }

  stop() {
    if (!this.kind) return;
    this.kind = null;
    this.studio.showTables();
  }

  /** Compute all cells of a table; if that is under way, stop. @param {Kind} kind */
  async fill(kind) {
    const { studio } = this;
    const { pair, texts } = studio;
    if (this.kind === kind) return this.stop();
    if (!pair || texts.problem) return studio.announce(texts.problem);
    this.kind = kind;
    studio.showTables();
    try {
      await this.computeMissing(kind, pair);
    } catch (error) {
      studio.frame.showError(/** @type {Error} */ (error));
    }
    if (this.kind === kind && studio.pair === pair) this.stop();
    return studio.frame.renewTable();
  }

  /** @param {Kind} kind @param {Pair} pair */
  async computeMissing(kind, pair) {
    const { studio } = this;
    let redrawnAt = performance.now();
    for (const place of studio.runs.placesOf(kind, pair.ids[0].length)) {
      if (this.kind !== kind || studio.pair !== pair) return;
      if (studio.runs.known(pair, place)) continue;
      if (!(await studio.runs.patch(`fill ${kind}`, pair, place))) return;
      if (performance.now() - redrawnAt < REDRAW_INTERVAL) continue;
      redrawnAt = performance.now();
      if (studio.pair === pair) studio.showTables();
    }
  }
}

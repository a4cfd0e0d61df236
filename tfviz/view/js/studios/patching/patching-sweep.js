// Filling a table of patching: all of its cells are computed, one after another, until that is stopped.

import { LatestRequest } from "../../base/latest-request.js";
import { throttle } from "../../base/throttle.js";
import { KINDS } from "./patching-runs.js";

/** @import { Kind, Pair } from "./patching-runs.js" */
/** @import { PatchingStudio } from "./patching-studio.js" */

const REDRAW_INTERVAL = 120; // milliseconds between two drawings of a table that is being filled
const MAX_AUTOMATIC_TIME = 6000; // milliseconds: what takes no longer is computed before the reader asks for it

/** Computes the cells of one table at a time. */
export class PatchingSweep {
  /** @type {Kind | null} the table that is being filled */
  kind = null;
  /** @type {Promise<void>} until that table is filled */
  running = Promise.resolve();
  requests = new LatestRequest();

  /** @param {PatchingStudio} studio */
  constructor(studio) {
    this.studio = studio;
  }

  stop() {
    if (!this.kind) return;
    this.requests.begin();
    this.kind = null;
    this.studio.showTables();
  }

  /** Fill both tables if one cell is computed so quickly that all of them take a few seconds. @param {Pair} pair */
  async fillIfQuick(pair) {
    const { studio } = this;
    if (studio.options.engine) return; // of a kernel each answer takes its time
    const targets = KINDS.flatMap((kind) => studio.runs.targetsOf(kind, pair.ids[0].length));
    const missing = targets.filter((target) => !studio.runs.known(pair, target));
    if (!missing.length || this.kind) return;
    const started = performance.now();
    if (!(await studio.runs.patch("fill residual", pair, missing[0]))) return;
    const takes = (performance.now() - started) * missing.length;
    for (const kind of takes > MAX_AUTOMATIC_TIME ? [] : KINDS)
      if (!this.kind && studio.pair === pair && !studio.texts.problem) await this.fill(kind);
    if (studio.pair === pair) studio.showTables();
  }

  /** Compute all cells of a table; if that is under way, stop. @param {Kind} kind */
  async fill(kind) {
    const { studio } = this;
    const { pair, texts } = studio;
    if (this.kind === kind) return this.stop();
    if (!pair || texts.problem) return studio.announce(texts.problem);
    this.kind = kind;
    studio.showTables();
    const isCurrent = this.requests.begin();
    this.running = this.computeMissing(kind, pair, isCurrent);
    try {
      await this.running;
    } catch (error) {
      studio.frame.showError(/** @type {Error} */ (error));
    }
    if (isCurrent()) this.stop();
    studio.showSentence();
    return studio.frame.updateTable();
  }

  /** @param {Kind} kind @param {Pair} pair @param {() => boolean} isCurrent */
  async computeMissing(kind, pair, isCurrent) {
    const { studio } = this;
    const showProgress = throttle(() => studio.showTables(), REDRAW_INTERVAL);
    for (const target of studio.runs.targetsOf(kind, pair.ids[0].length)) {
      if (!isCurrent()) return;
      if (studio.runs.known(pair, target)) continue;
      if (!(await studio.runs.patch(`fill ${kind}`, pair, target))) return;
      if (isCurrent()) showProgress();
    }
  }
}

// The tables of patching: what each layer's residual stream does at each position, and what each head does. A cell that
// is pressed is patched; each table can be filled.

import { button, h } from "../../base/elements.js";
import { ABSENT, Grid, MAX_NUMBERED_CELLS, ALLOWED } from "../../base/grid.js";
import { HeadStage } from "../../views/head-stage.js";

/** @import { Theme } from "../../base/theme.js" */
/** @import { Drawing, GridPanel } from "../../types.js" */
/** @import { Kind, PatchTarget } from "./patching-runs.js" */
/**
 * @typedef {object} TableHandlers
 * @property {(target: PatchTarget) => void} patch patch here
 * @property {() => void} leave take the patch away
 * @property {(target: PatchTarget) => string} reading a cell in words
 * @property {(text: string) => void} announce
 * @property {(kind: Kind) => void} fill compute all cells, or stop
 */
/**
 * @typedef {object} TableContent
 * @property {string[]} rows
 * @property {string[]} columns
 * @property {(number | null)[]} values a row after another; null where none is computed yet
 * @property {number} limit the end of the scale, which both tables share
 * @property {PatchTarget | null} target what is patched
 */

const TITLES = { residual: "Residual stream before each layer", heads: "Output of each head, at all positions" };
const AXES = { residual: ["layer", "position"], heads: ["layer", "head"] };
const CELLS = { residual: { maxCell: 40, maxCellHeight: 30 }, heads: { maxCell: 26 } }; // pixels
const SHORTCUTS_HELP = "arrows move, Enter patches there, Escape takes the patch away, plus and minus zoom";
const PADDING = 6; // pixels beside a table
const LABEL_WIDTH = 56; // pixels that the names of rows take, about
const MIN_CELL_WIDTH = 36; // pixels of a cell with its number, at least

/** One table with its title, and what fills it. */
export class PatchingTable {
  /** @type {Grid | null} */
  grid = null;

  /** @param {Kind} kind @param {Theme} theme @param {TableHandlers} handlers */
  constructor(kind, theme, handlers) {
    this.kind = kind;
    const pressed = () => {
      const { cursor } = this.stage;
      if (cursor) handlers.patch([kind, cursor[0], cursor[1]]);
    };
    const options = { axes: AXES[kind], ...CELLS[kind], maxHeight: 250, flatNames: true, legend: false };
    /** @type {HeadStage} */
    this.stage = new HeadStage(
      Object.create(theme, { mark: { get: () => theme.ink } }), // orange would not be seen on orange
      {
        announce: handlers.announce,
        reading: (_, [row, col]) => handlers.reading([kind, row, col]),
        lock: pressed,
        leave: handlers.leave,
      },
      options,
    );
    this.fillButton = button("Fill", () => handlers.fill(kind), { title: "compute all cells, one after another" });
    this.progress = h("progress", { "aria-label": `filling: ${TITLES[kind]}`, hidden: true });
    this.count = h("small", {});
    const row = h(
      "div",
      { class: "table-title" },
      h("b", {}, TITLES[kind]),
      this.progress,
      this.count,
      this.fillButton,
    );
    this.element = h("div", { class: "patching-table" }, row, this.stage.element);
  }

  /** @param {TableContent} content */
  show({ rows, columns, values, limit, target }) {
    const numbers = Float32Array.from(values, (value) => value ?? 0);
    const state = Uint8Array.from(values, (value) => (value === null ? ABSENT : ALLOWED));
    this.grid = Grid.of(rows, columns, numbers, state, { scale: "diverging", limit });
    const outlined = target?.[0] === this.kind ? [[target[1], target[2]]] : [];
    const width = Math.max(200, this.element.clientWidth - PADDING);
    const numbered = values.length <= MAX_NUMBERED_CELLS && (width - LABEL_WIDTH) / columns.length >= MIN_CELL_WIDTH;
    this.stage.show(
      [{ name: "", grid: this.grid, axes: AXES[this.kind], numbered }],
      { rows: [], columns: [], outlined },
      width,
    );
    this.stage.panels[0].canvas.setAttribute("aria-label", `${TITLES[this.kind]}: ${SHORTCUTS_HELP}`);
  }

  /** Show how many cells are computed. @param {number} known @param {number} count @param {boolean} filling */
  showProgress(known, count, filling) {
    this.progress.hidden = !filling;
    this.progress.max = count;
    this.progress.value = known;
    this.count.textContent = filling ? `${known} of ${count}` : "";
    this.fillButton.textContent = filling ? "Stop" : "Fill";
    this.fillButton.setAttribute("aria-label", `${filling ? "Stop filling" : "Fill"}: ${TITLES[this.kind]}`);
    this.fillButton.setAttribute("aria-disabled", String(!filling && known === count));
  }

  /** @returns {GridPanel<Grid>[]} */
  get panels() {
    return this.grid ? [{ name: TITLES[this.kind], grid: this.grid, axes: AXES[this.kind] }] : [];
  }

  /** @param {Theme} theme @returns {Drawing} */
  drawing(theme) {
    const { width, height, draw } = this.stage.drawing;
    const title = 20;
    return {
      width,
      height: height + title,
      draw: (pen) => {
        pen.text(0, 8, TITLES[this.kind], { fill: theme.ink, bold: true });
        pen.drawAt(0, title, () => draw(pen));
      },
    };
  }
}

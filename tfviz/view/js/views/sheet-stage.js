// A stage that shows all heads as small heatmaps: above them the text, shaded by one head, and a sentence of what that
// head does; beside them, where there is room, its map with names of tokens.

import { chartCanvas, h } from "../base/elements.js";
import { Grid } from "../base/grid.js";
import { CanvasPen } from "../base/pen.js";
import { HeadStage, LIST_WIDTH } from "./head-stage.js";
import { smallMapTheme } from "../base/theme.js";
import { describeMap, isAttention } from "./head-summary.js";
import { drawRowBars } from "./row-bars.js";
import { ShadedWords } from "./shaded-words.js";
import { Sheet } from "./sheet.js";

/** @import { Drawing, Pen, Point } from "../types.js" */
/** @import { StageHandlers } from "./head-stage.js" */
/** @import { Part, SheetHandlers, SheetStyle } from "./sheet.js" */
/**
 * @typedef {SheetStyle & { part: Part, placed?: Part }} SheetContent placed: the layout of the pictures drawn instead; row: the query of the text above, if any
 */

const [MIN_MAP_WIDTH, MAX_MAP_WIDTH, MAP_GAP] = [340, 620, 24]; // pixels of the map beside the sheet, and of the space between them
const NAMES_OF_MAP = 30; // pixels that the names of a map's rows are wider than those above are high
const MAX_CELL = 56; // pixels of a cell of that map
const [NARROW, LIST_HEIGHT] = [500, 240]; // pixels of a page; of the list below a map there
const MAX_MAP_TOKENS = 96; // of which a map of that width shows cells of some pixels
const MIN_THUMB_WIDTH = 88; // pixels: heads are not made smaller to make room for the map

/** A sheet of heads with the selected head described and drawn beside it. */
export class SheetStage {
  /** @type {SheetContent | null} */
  content = null;
  /** @type {{ chosen: Point, row: number } | null} the head and the query that the mouse points at */
  pointed = null;
  focused = false;
  mapWidth = 0;
  mapAndListWidth = 0;
  isNarrow = false;
  /** What the selected head does, in a sentence. */
  finding = h("p", { class: "finding of-sheet" });

  /**
   * @param {import("../base/theme.js").Theme} theme
   * @param {StageHandlers & Pick<SheetHandlers, "open" | "mark">} handlers
   * @param {{ names: string[], axes: string[], unit?: string }} options names of the heads, of the axes of a map, and of
   *   the numbers if they are no attention weights
   * @param {(row: number) => void} choose chooses the query whose row is shown
   */
  constructor(theme, handlers, { names, axes, unit }, choose) {
    const small = smallMapTheme(theme);
    this.isAttention = unit === undefined;
    this.describe = this.isAttention ? describeMap : () => ""; // other numbers are no looks
    this.sheet = new Sheet(small, names, unit);
    this.words = new ShadedWords(theme, { lock: (_, row) => choose(row), leave: () => {} });
    this.canvas = chartCanvas("All heads: arrows move, Enter opens a head, Space marks it");
    const lock = (/** @type {string} */ side, /** @type {number} */ index) => side === "rows" && choose(index);
    this.map = new HeadStage(
      small,
      { ...handlers, lock },
      { axes, numbers: false, legend: false, maxCell: MAX_CELL, drawList: drawRowBars },
    );
    const maps = h("div", { class: "overview" }, this.canvas, this.map.element);
    this.element = h("div", { class: "stage" }, this.words.element, this.finding, maps);
    this.sheet.listen(this.canvas, {
      open: handlers.open,
      mark: handlers.mark,
      leave: () => {},
      point: (at, pointer) => {
        this.focused = document.activeElement !== null && this.canvas.matches(":focus-visible");
        const grid = at && this.content?.grids.get(at.join("."));
        const pair = grid && pointer && !this.content?.thumbs ? this.sheet.pairAt(pointer[0], pointer[1], grid) : null;
        this.pointAt(at && pair ? { chosen: at, row: pair[0] } : null);
        handlers.announce(at ? this.sheet.describe(at[0], at[1], grid || undefined, pair) : "");
        this.draw();
      },
    });
  }

  /** Show the head and query under the pointer, unless they are the same as before. @param {{ chosen: Point, row: number } | null} pointed */
  pointAt(pointed) {
    const moved = JSON.stringify(pointed) !== JSON.stringify(this.pointed);
    this.pointed = pointed;
    if (moved) this.showSelected();
  }

  /** @param {SheetContent} content @param {number} width */
  show(content, width) {
    this.content = content;
    const part = content.placed ?? content.part;
    const fits = content.row !== null && Math.max(part.rows.length, part.columns.length) <= MAX_MAP_TOKENS;
    this.sheet.layout(part, width);
    const least = Math.min(MIN_THUMB_WIDTH, this.sheet.thumbWidth);
    if (fits) this.sheet.layout(part, width - MIN_MAP_WIDTH - MAP_GAP);
    if (this.sheet.thumbWidth < least) this.sheet.layout(part, width); // the whole width
    const high = Math.max(MIN_MAP_WIDTH, this.sheet.height + NAMES_OF_MAP);
    const beside = width - this.sheet.width - MAP_GAP;
    this.isNarrow = width < NARROW; // on a telephone the map stands below
    this.mapAndListWidth = this.isNarrow ? width : beside;
    const besideList = beside - (this.isAttention ? LIST_WIDTH : 0);
    const available = besideList < MIN_MAP_WIDTH ? beside : besideList; // where the list does not fit beside it, it may below
    const mapWidth = this.isNarrow ? width : Math.min(available, MAX_MAP_WIDTH, high);
    this.mapWidth = fits && (this.isNarrow || mapWidth >= MIN_MAP_WIDTH) ? mapWidth : 0;
    this.showSelected();
    this.draw();
  }

  /** Show the text, the sentence and the map of the head and query under the pointer, else of the chosen ones. */
  showSelected() {
    const { grids, chosen = [0, 0], row = null } = this.content ?? {};
    const head = this.pointed?.chosen ?? chosen;
    const grid = grids?.get(head.join("."));
    this.map.element.hidden = true;
    this.words.element.hidden = this.finding.hidden = row === null || !(grid instanceof Grid);
    if (row === null || !(grid instanceof Grid)) return;
    const query = this.pointed?.row ?? row;
    const name = this.sheet.nameOf(head[0], head[1]);
    this.words.show(grid, query, false);
    const finding = this.describe(grid, query);
    this.finding.hidden = !finding;
    this.finding.replaceChildren(h("b", {}, name), ` ${finding}`);
    this.showMap(grid, query, name);
  }

  /** Show the map of a head beside the sheet where it has room, on a narrow page below. @param {Grid} grid @param {number} query @param {string} name */
  showMap(grid, query, name) {
    if (!this.mapWidth) return;
    this.map.element.hidden = false;
    const { outlined = [] } = this.content ?? {};
    const listed = this.isAttention && isAttention(grid) ? query : null;
    const marks = { rows: [], columns: [], current: query, outlined, query: listed };
    const height = this.isNarrow ? this.mapWidth + LIST_HEIGHT : this.sheet.height;
    this.map.show([{ name, grid }], { ...marks, mapWidth: this.mapWidth, height }, this.mapAndListWidth);
  }

  draw() {
    this.paint(new CanvasPen(this.canvas, this.sheet.width, this.sheet.height));
  }

  /** @param {Pen} pen */
  paint(pen) {
    if (!this.content) return;
    const { row = null } = this.content;
    this.sheet.draw(pen, {
      ...this.content,
      row: row === null ? null : (this.pointed?.row ?? row),
      tagged: row !== null && this.isAttention,
      focused: this.focused,
    });
  }

  /** @returns {Drawing} */
  get drawing() {
    return { width: this.sheet.width, height: this.sheet.height, draw: (pen) => this.paint(pen) };
  }
}

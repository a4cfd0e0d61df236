// A stage of one heatmap, or of several side by side that share cursor, zoom and locks.

import { chartCanvas, h } from "../base/elements.js";
import { Grid } from "../base/grid.js";
import { Heatmap, LEGEND_WIDTH } from "./heatmap.js";
import { CanvasPen } from "../base/pen.js";
import { TiledGrid } from "../base/tiled-grid.js";
import { HeatmapInput } from "./heatmap-input.js";
import { drawRowBars, MIN_ROW_BARS_WIDTH } from "./row-bars.js";

/** @import { Divider } from "../documents.js" */
/** @import { AnyGrid, Box, Drawing, GridPanel, Handlers, Locked, Pen, Point } from "../types.js" */
/** @import { HeatmapOptions } from "./heatmap.js" */
/** @typedef {{ map: Heatmap, canvas: HTMLCanvasElement, index: number }} HeadPanel */
/** @typedef {Handlers & { reading(grid: AnyGrid, cell: Point, name: string): string, describe?(query: number): void }} StageHandlers `describe` is told which row is listed while the pointer moves */
/** @typedef {Locked & { current?: number | null, outlined?: number[][], dividers?: Divider[][], query?: number | null }} StageStyle
 * dividers of each panel; `query`: the row whose keys are listed beside a single map, unless the pointer is at another;
 *   null: no list
 */

const LIST_GAP = 36; // pixels between a map and the list of keys beside it

/** A stage of heatmaps that share cursor, zoom and locks where their sizes are equal. */
export class HeadStage {
  /** @type {HeadPanel[]} */
  panels = [];
  /** @type {Point | null} */
  cursor = null;

  /** @type {number | null} the panel under the pointer */
  pointed = null;
  /** @type {StageStyle} */
  style = { rows: [], cols: [] };
  /** @type {string[]} */
  names = [];

  /**
   * @param {import("../base/theme.js").Theme} theme
   * @param {StageHandlers} handlers
   * @param {HeatmapOptions} [options]
   */
  constructor(theme, handlers, options = {}) {
    this.theme = theme;
    this.handlers = handlers;
    this.options = options;
    this.element = h("div", { class: "stage panels" });
  }

  /** @param {GridPanel[]} panels @param {StageStyle} style @param {number} width */
  show(panels, style, width) {
    while (this.panels.length > panels.length) this.panels.pop()?.canvas.remove();
    while (this.panels.length < panels.length) this.panels.push(this.panel(this.panels.length));
    this.style = style;
    this.names = panels.map(({ name }) => name);
    const columns = panels.length > 1 && width >= 320 * panels.length ? panels.length : 1;
    panels.forEach(({ name, grid, axes, texts, numbered }, i) => {
      this.panels[i].map.title = name;
      if (axes) this.panels[i].map.axes = axes;
      this.panels[i].map.texts = texts ?? null;
      if (numbered !== undefined) this.panels[i].map.numbers = numbered;
      this.panels[i].canvas.setAttribute(
        "aria-label",
        `${name || "Heatmap"}: arrows move, Space locks a row, C locks a column, plus and minus zoom`,
      );
      this.panels[i].map.layout(grid, (width - 16 * (columns - 1)) / columns);
    });
    const pointed = this.cursor;
    if (pointed && !panels.some(({ grid }) => pointed[0] < grid.rows.length && pointed[1] < grid.cols.length))
      this.cursor = null;
    if (pointed) this.handlers.announce(this.cursor ? this.reading(this.cursor) : "");
    this.draw();
    void this.refine();
  }

  /** @param {number} index @returns {HeadPanel} */
  panel(index) {
    const map = new Heatmap(this.theme, { legend: true, ...this.options });
    const canvas = chartCanvas("Heatmap");
    new HeatmapInput(canvas, map, {
      point: (cell) => {
        [this.cursor, this.pointed] = [cell, index];
        this.handlers.announce(cell ? this.reading(cell) : "");
        this.draw();
        const listed = this.listedRow(map);
        if (listed !== null) this.handlers.describe?.(listed);
      },
      lock: (axis, at) => this.handlers.lock(axis, at),
      changed: () => {
        this.panels.forEach((panel) => {
          if (same(panel.map.grid, map.grid)) panel.map.window = map.window;
        });
        this.draw();
        void this.refine();
      },
      leave: () => this.handlers.leave(),
    });
    this.element.append(canvas);
    return { map, canvas, index };
  }

  /**
   * Tell whether a panel has the cell under the cursor: panels share a cursor if their rows and columns are the same.
   * @param {Point | null} cell
   * @param {number} i
   * @returns {cell is Point}
   */
  has(cell, i) {
    const { grid, axes } = this.panels[i].map;
    const { axes: pointed } = (this.panels[this.pointed ?? 0] ?? this.panels[0]).map;
    return (
      cell !== null && cell[0] < grid.rows.length && cell[1] < grid.cols.length && String(axes) === String(pointed)
    );
  }

  /** @param {Point} cell */
  reading(cell) {
    /** @param {HeadPanel} panel @param {number} i */
    const read = ({ map }, i) => (this.has(cell, i) ? this.handlers.reading(map.grid, cell, this.names[i]) : "");
    return this.panels.map(read).filter(Boolean).join("   ");
  }

  draw() {
    for (const { map, canvas, index } of this.panels)
      this.paint(new CanvasPen(canvas, map.width, map.height), map, index);
  }

  /** @param {Pen} pen @param {Heatmap} map @param {number} index */
  paint(pen, map, index) {
    const listed = this.listedRow(map);
    map.draw(pen, {
      ...this.style,
      current:
        this.style.current ?? (this.style.outlined?.length || this.style.dividers?.[index]?.length ? null : listed),
      dividers: this.style.dividers?.[index],
      cursor: this.has(this.cursor, index) ? this.cursor : null,
    });
    if (listed !== null) drawRowBars(pen, this.theme, /** @type {Grid} */ (map.grid), listed, this.listBox(map));
  }

  /** Return the row whose keys are listed beside a single map; null if there is no list, or no room. @param {Heatmap} map */
  listedRow(map) {
    const { query = null } = this.style;
    if (query === null || this.panels.length > 1 || !(map.grid instanceof Grid)) return null;
    return this.listBox(map)[2] < MIN_ROW_BARS_WIDTH ? null : (this.cursor?.[0] ?? query);
  }

  /** The room beside a map and its scale. @param {Heatmap} map @returns {Box} */
  listBox(map) {
    const x = map.left + map.mapWidth + (map.legend && !map.numbered ? LEGEND_WIDTH : 0) + LIST_GAP;
    return [x, map.top, map.width - x, map.mapHeight];
  }

  /** @param {number} factor 0 shows all */
  zoom(factor) {
    this.panels.forEach(({ map }) => {
      if (factor) map.zoom(factor);
      else map.fit();
    });
    this.draw();
    void this.refine();
  }

  /** Load finer grids for the visible parts; announce an error. */
  async refine() {
    const updates = this.panels.map(
      ({ map }) => map.grid instanceof TiledGrid && map.grid.refine(map.window, Math.max(map.mapWidth, map.mapHeight)),
    );
    try {
      if (!(await Promise.all(updates)).some(Boolean)) return;
      if (this.cursor) this.handlers.announce(this.reading(this.cursor));
      this.draw();
    } catch (error) {
      this.handlers.announce(/** @type {Error} */ (error).message);
    }
  }

  /** @returns {Drawing} */
  get drawing() {
    const from = this.element.getBoundingClientRect();
    const origins = this.panels.map(({ canvas }) => {
      const { left, top } = canvas.getBoundingClientRect();
      return [left - from.left, top - from.top];
    });
    /** @param {number} axis @param {"width" | "height"} size */
    const far = (axis, size) => Math.max(...this.panels.map(({ map }, i) => origins[i][axis] + map[size]));
    return {
      width: far(0, "width"),
      height: far(1, "height"),
      draw: (pen) =>
        this.panels.forEach(({ map }, i) => pen.drawAt(origins[i][0], origins[i][1], () => this.paint(pen, map, i))),
    };
  }
}

/** @param {AnyGrid} a @param {AnyGrid} b */
const same = (a, b) => a.rows.length === b.rows.length && a.cols.length === b.cols.length;

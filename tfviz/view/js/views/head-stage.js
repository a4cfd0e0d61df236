// A stage of one heatmap, or of several side by side that share cursor, zoom and locks.

import { chartCanvas, h } from "../base/elements.js";
import { Grid } from "../base/grid.js";
import { Heatmap, LEGEND_WIDTH } from "./heatmap.js";
import { CanvasPen } from "../base/pen.js";
import { TiledGrid } from "../base/tiled-grid.js";
import { HeatmapInput } from "./heatmap-input.js";

/** @import { Divider } from "../documents.js" */
/** @import { AnyGrid, Box, Drawing, GridPanel, Handlers, Locked, Pen, Point } from "../types.js" */
/** @import { HeatmapOptions } from "./heatmap.js" */
/** @typedef {(pen: Pen, theme: import("../base/theme.js").Theme, grid: Grid, query: number, box: Box) => void} DrawList */
/** @typedef {{ map: Heatmap, canvas: HTMLCanvasElement, index: number }} HeadPanel */
/** @typedef {Handlers & { reading(grid: AnyGrid, cell: Point, name: string): string, describe?(query: number): void }} StageHandlers `describe` is told which row is listed while the pointer moves */
/** @typedef {Locked & { current?: number | null, outlined?: number[][], dividers?: Divider[][], query?: number | null, mapWidth?: number, height?: number }} StageStyle
 * dividers of each panel; `query`: the row whose keys are listed beside a single map, unless the pointer is at another;
 *   null: no list; `mapWidth`: pixels of a single map with its names, at most; `height`: pixels of a single map and a list
 *   below it, which stands there if there is no room beside the map
 */

const [LIST_GAP, MIN_LIST_WIDTH] = [36, 210]; // pixels between a map and the list of keys beside it; of a list
export const LIST_WIDTH = LIST_GAP + MIN_LIST_WIDTH; // that a list beside a map takes, at least
const [LIST_GAP_BELOW, MIN_LIST_HEIGHT] = [12, 60]; // the same for a list below the map

/** A stage of heatmaps that share cursor, zoom and locks where their sizes are equal. */
export class HeadStage {
  /** @type {HeadPanel[]} */
  panels = [];
  /** @type {Point | null} */
  cursor = null;

  /** @type {number | null} the panel under the pointer */
  pointed = null;
  /** @type {StageStyle} */
  style = { rows: [], columns: [] };
  /** @type {string[]} */
  names = [];

  /**
   * @param {import("../base/theme.js").Theme} theme
   * @param {StageHandlers} handlers
   * @param {HeatmapOptions & { drawList?: DrawList }} [options] `drawList` draws what is listed beside a single map
   */
  constructor(theme, handlers, { drawList, ...options } = {}) {
    this.theme = theme;
    this.handlers = handlers;
    this.drawList = drawList;
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
      this.panels[i].map.layout(grid, (width - 16 * (columns - 1)) / columns, style.mapWidth);
    });
    const pointed = this.cursor;
    if (pointed && !panels.some(({ grid }) => pointed[0] < grid.rows.length && pointed[1] < grid.columns.length))
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
      cell !== null && cell[0] < grid.rows.length && cell[1] < grid.columns.length && String(axes) === String(pointed)
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
      this.paint(new CanvasPen(canvas, map.width, this.heightOf(map)), map, index);
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
    if (listed !== null) this.drawList?.(pen, this.theme, /** @type {Grid} */ (map.grid), listed, this.listBox(map));
  }

  /** Return the row whose keys are listed beside a single map; null if there is no list, or no room. @param {Heatmap} map */
  listedRow(map) {
    const { query = null } = this.style;
    if (!this.drawList || query === null || this.panels.length > 1 || !(map.grid instanceof Grid)) return null;
    return this.listBox(map)[2] < MIN_LIST_WIDTH ? null : (this.cursor?.[0] ?? query);
  }

  /** The room beside a map and its scale, else below it, else none. @param {Heatmap} map @returns {Box} */
  listBox(map) {
    const x = map.left + map.mapWidth + (map.legend && !map.numbered ? LEGEND_WIDTH : 0) + LIST_GAP;
    if (map.width - x >= MIN_LIST_WIDTH) return [x, map.top, map.width - x, map.mapHeight];
    const y = map.height + LIST_GAP_BELOW;
    const height = (this.style.height ?? 0) - y;
    return height < MIN_LIST_HEIGHT ? [0, 0, 0, 0] : [map.left, y, map.width - map.left, height];
  }

  /** The height of a map with the list below it, if there is one. @param {Heatmap} map */
  heightOf(map) {
    const isBelow = this.listedRow(map) !== null && this.listBox(map)[1] > map.height;
    return isBelow ? (this.style.height ?? 0) : map.height;
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
const same = (a, b) => a.rows.length === b.rows.length && a.columns.length === b.columns.length;

// A drawing of one grid as a heatmap: queries are rows from the top, keys are columns with their labels along the upper
// edge.

import { Grid, MAX_MUTED_NUMBER, MAX_NUMBERED_CELLS, ALLOWED } from "../base/grid.js";
import { clamp, formatCell } from "../base/numbers.js";
import { paint } from "../base/paint.js";
import { devicePixels, textWidth } from "../base/pen.js";
import { TiledGrid } from "../base/tiled-grid.js";
import { label } from "../base/visible-text.js";
import { legend, swatches, twoValues } from "./legend.js";

/** @import { Divider } from "../documents.js" */
/** @import { AnyGrid, Box, Cell, Pen, Point, RectStyle, Side, Window } from "../types.js" */
/**
 * @typedef {object} HeatmapOptions
 * @property {string[]} [axes] names of rows and columns
 * @property {boolean} [legend] whether to draw the colour scale
 * @property {number} [maxHeight] pixels
 * @property {number} [maxCell] pixels of a cell
 * @property {number} [maxCellHeight] pixels, of cells that may be wider
 * @property {number} [maxNumberedCell] pixels of a cell with its number
 * @property {boolean} [flatNames] whether names of columns lie flat where they fit
 * @property {boolean} [numbers] whether cells with enough room show their numbers
 */
/**
 * @typedef {object} HeatmapStyle
 * @property {Point | null} [cursor]
 * @property {number | null} [current] the row that is marked
 * @property {number[]} [rows] that are locked
 * @property {number[]} [columns] that are locked
 * @property {number[][]} [outlined] cells to mark
 * @property {Divider[]} [dividers]
 */

const NAME_FONT_SIZE = 12;
const MIN_NAME_SPACING = 14;
const MIN_LETTER_CELL = 9; // pixels of a cell that has room for the name of one letter
const SPACE = "␣"; // a space that is seen, low in its line
const MIN_NAME_GAP = 2; // pixels between two names side by side
export const LEGEND_WIDTH = 64;
const OUTLINE_MARGIN = 3;
const NO_GRID = new Grid([], [], new Uint8Array(), new Uint8Array());
const QUERY_KEY = ["query", "key"];
const MAX_ROW_NAME_LENGTH = 48; // letters of a row's name, if there is one column
const NUMBER_CELL_SIZE = [84, 24]; // width and height of a cell with a number, if there is one column
const TEXT_CELL_SIZE = [84, 26]; // width and height of a cell with a text
export const MIN_NUMBERED_CELL_SIZE = 44; // a smaller cell has no room for its number

/** The layout and drawing of a heatmap with labels, legend, cursor and locks, which can be zoomed and moved. */
export class Heatmap {
  /** @type {{ key: string, image: ImageData } | null} */
  painted = null;
  /** @type {AnyGrid} the grid shown; nothing is drawn before one is set */
  grid = NO_GRID;
  /** @type {Window} of the grid, in cells */
  window = { x: 0, y: 0, width: 0, height: 0 };
  /** @type {string[][]} of rows and columns */
  labels = [[], []];
  hasVerticalNames = false;
  /** Whether the names of the axes stand after the title. */
  hasAxesAtEnd = true;
  numbered = false;
  /** What is written above, if anything. */
  title = "";
  /** @type {string[][] | null} what is written into each cell */
  texts = null;
  /** The position on the canvas, in pixels. */
  left = 0;
  top = 0;
  mapWidth = 0;
  mapHeight = 0;
  width = 0;
  height = 0;

  /** @param {import("../base/theme.js").Theme} theme @param {HeatmapOptions} [options] */
  constructor(theme, { axes = QUERY_KEY, legend = true, maxHeight = 660, maxCell = 34, ...options } = {}) {
    const {
      numbers = false,
      maxNumberedCell = MIN_NUMBERED_CELL_SIZE,
      flatNames = false,
      maxCellHeight = Infinity,
    } = options;
    this.theme = theme;
    this.axes = axes;
    this.legend = legend;
    this.maxHeight = maxHeight;
    this.maxCell = maxCell;
    this.maxCellHeight = maxCellHeight;
    this.maxNumberedCell = maxNumberedCell;
    this.numbers = numbers;
    this.flatNames = flatNames;
  }

  /**
   * Lay out the heatmap for a width in pixels.
   * @param {AnyGrid} grid
   * @param {number} width of the canvas
   * @param {number} [maxWidth] of the names and cells
   * @returns {number} its height
   */
  layout(grid, width, maxWidth = width) {
    const [n, m] = [grid.rows.length, grid.columns.length];
    if (grid !== this.grid) {
      const letters = m === 1 ? MAX_ROW_NAME_LENGTH : undefined;
      this.labels = [grid.rows.map((word) => label(word, letters)), grid.columns.map((word) => label(word))];
      this.painted = null;
    }
    const available = Math.min(width, maxWidth);
    const few = this.numbers && n * m <= MAX_NUMBERED_CELLS;
    const maxCell = few ? this.maxNumberedCell : this.maxCell;
    const cellsFor = (/** @type {boolean} */ hasAxesAtEnd) => {
      this.hasAxesAtEnd = hasAxesAtEnd;
      const left = this.nameWidth(available);
      return /** @type {const} */ ([left, ...this.cellSize(n, m, maxCell, available - left)]);
    };
    let [left, cellWidth, cellHeight] = cellsFor(true);
    if (this.headingWidth > left + cellWidth * m) [left, cellWidth, cellHeight] = cellsFor(false);
    const top = this.namesHeight(m, cellWidth);
    if (grid.rows.length !== this.grid.rows.length || grid.columns.length !== this.grid.columns.length) this.fit(grid);
    const numbered = few && cellWidth >= 26 && cellHeight >= 13;
    this.grid = grid;
    this.left = left;
    this.top = top;
    this.mapWidth = Math.max(1, cellWidth * m);
    this.mapHeight = Math.max(1, cellHeight * n);
    this.width = width;
    this.numbered = numbered;
    this.height = top + this.mapHeight + OUTLINE_MARGIN;
    return this.height;
  }

  /** The names of both axes. */
  get axisNames() {
    const { axes } = this;
    return [axes[0] && `${axes[0]} ↓`, axes[1] && `${axes[1]} →`].filter(Boolean).join("   ");
  }

  /** The width of the title with the names of the axes after it. */
  get headingWidth() {
    return this.title ? textWidth(this.title, 12, true) + 24 + textWidth(this.axisNames) : 0;
  }

  /** Return the pixels left of the cells, for the rows' names and, if it stands before the title, that of their axis. @param {number} width */
  nameWidth(width) {
    const axisWidth = this.title && !this.hasAxesAtEnd ? textWidth(`${this.axes[0]} ↓`) + 12 : 0;
    return Math.min(0.4 * width, Math.max(axisWidth, widestLabel(this.labels[0]) + 10));
  }

  /** Return the pixels above the cells, for the columns' names, which stand upright where they do not fit. @param {number} count @param {number} cellWidth */
  namesHeight(count, cellWidth) {
    const nameWidth = widestLabel(this.labels[1]);
    this.hasVerticalNames = count > 1 && nameWidth > Math.max(16, this.flatNames ? cellWidth : 0);
    return this.hasVerticalNames ? Math.max(42, nameWidth + 22) : 34;
  }

  /**
   * Return the width and height of a cell, in pixels.
   * @param {number} n rows
   * @param {number} m columns
   * @param {number} maxCell
   * @param {number} width of cells and legend together
   * @returns {[width: number, height: number]}
   */
  cellSize(n, m, maxCell, width) {
    const share = (width - (this.legend ? LEGEND_WIDTH : OUTLINE_MARGIN)) / m;
    if (this.texts) return [Math.min(TEXT_CELL_SIZE[0], share), TEXT_CELL_SIZE[1]];
    if (m === 1) return [Math.min(NUMBER_CELL_SIZE[0], width), Math.min(NUMBER_CELL_SIZE[1], this.maxHeight / n)];
    const cellWidth = Math.min(maxCell, share);
    const cellHeight = Math.min(maxCell, this.maxCellHeight, this.maxHeight / n);
    const aspect = n === m ? 1 : 4; // of a cell, at most
    return [Math.min(cellWidth, aspect * cellHeight), Math.min(cellHeight, aspect * cellWidth)];
  }

  /** @param {AnyGrid} [grid] */
  fit(grid = this.grid) {
    this.window = { x: 0, y: 0, width: grid.columns.length, height: grid.rows.length };
  }

  get zoomed() {
    return this.window.width < this.grid.columns.length || this.window.height < this.grid.rows.length;
  }

  /**
   * Zoom by a factor around a point of the visible part, given as shares from 0 to 1.
   * @param {number} factor
   * @param {number} [across]
   * @param {number} [down]
   */
  zoom(factor, across = 0.5, down = 0.5) {
    const { x, y, width, height } = this.window;
    const [n, m] = [this.grid.rows.length, this.grid.columns.length];
    const minScale = Math.min(1, 4 / Math.max(width, height)); // four cells
    const scale = Math.max(1 / factor, minScale);
    const [w, h] = [Math.min(m, width * scale), Math.min(n, height * scale)];
    this.window = { x: x + (width - w) * across, y: y + (height - h) * down, width: w, height: h };
    this.pan(0, 0);
  }

  /**
   * Move by a number of cells, as far as there are cells.
   * @param {number} columns
   * @param {number} rows
   */
  pan(columns, rows) {
    const { x, y, width, height } = this.window;
    this.window = {
      x: clamp(x + columns, 0, this.grid.columns.length - width),
      y: clamp(y + rows, 0, this.grid.rows.length - height),
      width,
      height,
    };
  }

  /** @param {Point} cell */
  reveal([row, col]) {
    const { x, y, width, height } = this.window;
    /** @param {number} at @param {number} from @param {number} size */
    const beyond = (at, from, size) => (at < from ? at - from : Math.max(0, at + 1 - from - size));
    this.pan(beyond(col, x, width), beyond(row, y, height));
  }

  /**
   * Return the cell under a point: [row, col], null for a coordinate on the other axis's words.
   * @param {number} x
   * @param {number} y
   * @returns {Cell}
   */
  cell(x, y) {
    const col = this.window.x + ((x - this.left) / this.mapWidth) * this.window.width;
    const row = this.window.y + ((y - this.top) / this.mapHeight) * this.window.height;
    /** @param {number} at @param {number} from @param {number} size @param {number} count */
    const inside = (at, from, size, count) =>
      at >= from && at < from + size ? Math.min(Math.floor(at), count - 1) : null;
    return [
      inside(row, this.window.y, this.window.height, this.grid.rows.length),
      inside(col, this.window.x, this.window.width, this.grid.columns.length),
    ];
  }

  /**
   * Return the upper left corner and the size of a cell.
   * @param {number} row
   * @param {number} col
   */
  box(row, col) {
    const [w, h] = [this.mapWidth / this.window.width, this.mapHeight / this.window.height];
    return [this.left + (col - this.window.x) * w, this.top + (row - this.window.y) * h, w, h];
  }

  /** @param {Pen} pen @param {HeatmapStyle} [style] */
  draw(pen, style = {}) {
    const { cursor = null, current, rows = [], columns = [] } = style;
    const { theme, left, top, mapWidth, mapHeight } = this;
    pen.image(this.image(pen.ratio), left, top);
    if (this.numbered || this.texts) this.drawCellTexts(pen);
    this.fadeUnlocked(pen, rows, columns);
    pen.rect(left, top, mapWidth, mapHeight, { stroke: theme.line, lineWidth: 1 });
    this.drawMarks(pen, style);
    this.drawAxisLabels(pen, 0, new Set(rows), cursor ? cursor[0] : current);
    this.drawAxisLabels(pen, 1, new Set(columns), cursor?.[1]);
    this.drawHeading(pen);
    if (this.legend && !this.numbered) this.drawLegend(pen);
  }

  /** Draw the colour scale beside the cells, or a swatch for each of two values. @param {Pen} pen */
  drawLegend(pen) {
    const { theme, grid, top } = this;
    const x = this.left + this.mapWidth + 14;
    const two = twoValues(grid);
    if (two) swatches(pen, theme, grid, two, x, top);
    else legend(pen, theme, grid, x, top, Math.min(this.mapHeight, 180));
  }

  /** @param {Pen} pen @param {HeatmapStyle} style */
  drawMarks(pen, { cursor = null, current = null, outlined = [], dividers = [] }) {
    if (current !== null && this.visible(current, this.window.x)) this.drawRowMark(pen, current);
    for (const [row, col] of outlined) this.drawOutline(pen, row, col, this.theme.mark);
    for (const [axis, index] of dividers) this.drawDivider(pen, axis, index);
    if (cursor && this.visible(cursor[0], cursor[1])) this.drawOutline(pen, cursor[0], cursor[1], this.theme.ink);
  }

  /** Draw a line around a row. @param {Pen} pen @param {number} row */
  drawRowMark(pen, row) {
    const [, y, , height] = this.box(row, 0);
    const [top, bottom] = [Math.max(y, this.top), Math.min(y + height, this.top + this.mapHeight)];
    if (bottom > top)
      // else the row lies outside of a map that is zoomed
      pen.rect(this.left - 1, top, this.mapWidth + 2, bottom - top, { stroke: this.theme.ink, lineWidth: 2 });
  }

  /**
   * Return the cells of the window in pixels of the device; they are kept until one of them changes.
   * @param {number} ratio
   */
  image(ratio) {
    const { theme, mapWidth, mapHeight } = this;
    const tiled = this.grid instanceof TiledGrid ? this.grid : null;
    const key = JSON.stringify([this.window, mapWidth, mapHeight, theme.key, ratio, tiled?.version]);
    if (this.painted?.key !== key) {
      const [width, height] = devicePixels([mapWidth, mapHeight], ratio);
      const [grid, window] = tiled?.partFor(this.window) ?? [/** @type {Grid} */ (this.grid), this.window];
      this.painted = { key, image: paint(grid, window, width, height, theme, ratio) };
    }
    return this.painted.image;
  }

  /**
   * Draw the names of both axes above; of a map with a title, at its end, or where that is too long around it.
   * @param {Pen} pen
   */
  drawHeading(pen) {
    const { theme, left, axes, title, axisNames } = this;
    if (!title) return pen.text(2, 9, axisNames, { fill: theme.soft });
    if (this.hasAxesAtEnd) {
      pen.text(2, 9, title, { fill: theme.ink, bold: true });
      return pen.text(left + this.mapWidth, 9, axisNames, { fill: theme.soft, align: "right" });
    }
    if (axes[0]) pen.text(left - 8, 9, `${axes[0]} ↓`, { fill: theme.soft, align: "right" });
    pen.text(left, 9, title, { fill: theme.ink, bold: true });
    const end = axes[1] ? `${axes[1]} →` : "";
    const right = left + this.mapWidth;
    if (left + textWidth(title, 12, true) + 24 < right - textWidth(end, 12))
      pen.text(right, 9, end, { fill: theme.soft, align: "right" });
    return undefined;
  }

  /** @param {Pen} pen */
  drawCellTexts(pen) {
    const { grid, theme, texts } = this;
    if (!(grid instanceof Grid)) return;
    const [, , cellWidth] = this.box(0, 0);
    if (texts && cellWidth < 16) return;
    const lut = theme.lut(grid);
    for (let row = 0; row < grid.rows.length; row++)
      for (let col = 0; col < grid.columns.length; col++) {
        if (!grid.hasState(row, col, ALLOWED) || !this.visible(row + 0.5, col + 0.5, 0)) continue;
        const [x, y] = this.box(row + 0.5, col + 0.5);
        const text = texts
          ? fitted(label(texts[row][col], 24), cellWidth - 6, 12)
          : formatCell(grid.at(row, col), grid.limit);
        const isMuted = !texts && Math.abs(grid.at(row, col)) < MAX_MUTED_NUMBER * grid.limit;
        const fill = isMuted ? theme.soft : theme.inkOn(lut[grid.codes[row * grid.columns.length + col]]);
        pen.text(x, y, text, { fill, size: textWidth(text, 12) > cellWidth - 4 ? 10 : 12, align: "center" });
      }
  }

  /** @param {number} row @param {number} col @param {number} [size] */
  visible(row, col, size = 1) {
    const { x, y, width, height } = this.window;
    return row + size > y && row < y + height && col + size > x && col < x + width;
  }

  /** @param {Pen} pen @param {number} row @param {number} col @param {string} stroke */
  drawOutline(pen, row, col, stroke) {
    const [x, y, width, height] = this.box(row, col);
    this.drawClipped(pen, [x, y, Math.max(width, 3), Math.max(height, 3)], { stroke, lineWidth: 1.5 });
  }

  /** Draw the part of a rectangle that lies in the map. @param {Pen} pen @param {Box} box @param {RectStyle} style */
  drawClipped(pen, [x, y, width, height], style) {
    const [x1, y1] = [Math.max(x, this.left), Math.max(y, this.top)];
    const [x2, y2] = [Math.min(x + width, this.left + this.mapWidth), Math.min(y + height, this.top + this.mapHeight)];
    if (x2 > x1 && y2 > y1) pen.rect(x1, y1, x2 - x1, y2 - y1, style);
  }

  /** @param {Pen} pen @param {Side} axis @param {number} index */
  drawDivider(pen, axis, index) {
    const [x, y] = this.box(index, index);
    const down = axis === "rows"; // it lies between two rows
    const { left, top } = this;
    const [right, bottom] = [left + this.mapWidth, top + this.mapHeight];
    const style = { stroke: this.theme.mark, lineWidth: 1.5 };
    if (down && y > top && y < bottom) pen.line(left, y, right, y, style);
    if (!down && x > left && x < right) pen.line(x, top, x, bottom, style);
  }

  /**
   * Fade rows and columns that are not locked.
   * @param {Pen} pen
   * @param {number[]} rows
   * @param {number[]} columns
   */
  fadeUnlocked(pen, rows, columns) {
    /**
     * @param {number[]} locked
     * @param {number} from
     * @param {number} size
     * @param {(start: number, count: number) => void} draw
     */
    const fade = (locked, from, size, draw) => {
      if (!locked.length) return;
      const last = Math.ceil(from + size);
      let start = Math.floor(from);
      for (const stop of [...locked].sort((a, b) => a - b).concat(last)) {
        if (stop > start) draw(start, Math.min(stop, last) - start);
        start = Math.max(start, stop + 1);
      }
    };
    const style = { fill: this.theme.page, alpha: 0.72 };
    const [, , width, height] = this.box(0, 0);
    fade(rows, this.window.y, this.window.height, (row, count) =>
      this.drawClipped(pen, [this.left, this.box(row, 0)[1], this.mapWidth, count * height], style),
    );
    fade(columns, this.window.x, this.window.width, (col, count) =>
      this.drawClipped(pen, [this.box(0, col)[0], this.top, count * width, this.mapHeight], style),
    );
  }

  /**
   * Return the font size of an axis's names and the pixels from one to the next. Single letters stand closer, in a smaller
   * font, since a text without every second letter cannot be read.
   * @param {number} axis
   * @param {number} cell its size in pixels
   */
  nameSize(axis, cell) {
    const isFlat = axis && !this.hasVerticalNames;
    const spacing = isFlat ? widestText(this.labels[axis]) + MIN_NAME_GAP : MIN_NAME_SPACING;
    const isDense = cell >= MIN_LETTER_CELL && cell < spacing && !this.hasVerticalNames;
    if (!isDense || !areLetters(this.labels[axis])) return { size: NAME_FONT_SIZE, spacing };
    return { size: Math.min(NAME_FONT_SIZE, 0.9 * cell), spacing: cell };
  }

  /**
   * Draw the labels of an axis, as many as fit, and always those locked or under the cursor.
   * @param {Pen} pen
   * @param {0 | 1} axis
   * @param {Set<number>} locked
   * @param {number | null} [pointed]
   */
  drawAxisLabels(pen, axis, locked, pointed) {
    const { theme } = this;
    const words = this.labels[axis];
    const [, , width, height] = this.box(0, 0);
    const cell = axis ? width : height;
    const { size, spacing } = this.nameSize(axis, cell);
    const step = Math.max(1, Math.ceil(spacing / cell));
    const [from, count] = axis ? [this.window.x, this.window.width] : [this.window.y, this.window.height];
    const near = typeof pointed === "number" ? [...locked, pointed] : [...locked];
    /** @param {number} i @param {boolean} strong */
    const drawWord = (i, strong) => {
      const middle = axis ? this.box(0, i + 0.5)[0] : this.box(i + 0.5, 0)[1];
      const [low, high] = axis ? [this.left, this.left + this.mapWidth] : [this.top, this.top + this.mapHeight];
      if (middle < low || middle > high) return;
      const style = { fill: strong ? theme.ink : theme.soft, bold: strong, size };
      const text = locked.has(i) ? `${words[i]} ●` : words[i];
      const y = middle - (words[i] === SPACE ? size / 4 : 0); // apart from the letter below
      if (!axis) pen.text(this.left - 6, y, text, { ...style, align: "right" });
      else if (this.hasVerticalNames) pen.text(middle, this.top - 6, text, { ...style, rotated: true });
      else pen.text(middle, this.top - 9, words[i], { ...style, align: "center" });
    };
    for (let i = Math.ceil(from / step) * step; i < Math.min(words.length, from + count); i += step) {
      if (!near.some((other) => Math.abs(other - i) * cell < spacing)) drawWord(i, false);
    }
    near.forEach((i) => drawWord(i, true));
  }
}

/**
 * Cut a text to a width, in pixels.
 * @param {string} text
 * @param {number} width
 * @param {number} size of its font
 */
export function fitted(text, width, size) {
  let letters = [...text];
  while (letters.length > 1 && textWidth(letters.join(""), size) > width) letters = [...letters.slice(0, -2), "…"];
  return letters.join("");
}

/** @type {WeakMap<string[], number>} */
const widths = new WeakMap();
/** Return the width of the widest label. @param {string[]} labels */
function widestText(labels) {
  const known = widths.get(labels);
  if (known !== undefined) return known;
  const widest = labels.reduce(
    (max, text) => (text.length > 2 || max < 16 ? Math.max(max, textWidth(text, NAME_FONT_SIZE, true)) : max),
    0,
  );
  widths.set(labels, widest);
  return widest;
}

/** Tell whether all labels are single letters. @param {string[]} labels */
const areLetters = (labels) => labels.every((text) => [...text].length < 2);

/** Return the room that the widest label takes, with a margin around words. @param {string[]} labels */
const widestLabel = (labels) => widestText(labels) + (labels.some((text) => [...text].length > 1) ? 10 : 0);

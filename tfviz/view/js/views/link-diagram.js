// A drawing of weights as lines between two columns of words, queries on the left and keys on the right, with a colour
// for each head.

import { ARROW_STEPS, consume, followPointer, pointIn } from "../base/events.js";
import { clamp } from "../base/numbers.js";
import { textWidth } from "../base/pen.js";
import { label } from "../base/visible-text.js";

/** @import { AnyGrid, Handlers, Locked, Pen, Side } from "../types.js" */
/** @typedef {[side: Side, index: number]} LinkEnd */
/** @typedef {{ grid: AnyGrid, ink: number, name: string }} HeadLinks a head and the index of its colour */
/** @typedef {{ scroll: number, from: number, to: number }} Stretch the rows that are drawn, and pixels above them */
/**
 * @typedef {Partial<Locked> & {
 *   minWeight?: number,
 *   maxLinks?: number,
 *   pointed?: LinkEnd | null,
 *   cursor?: LinkEnd | null,
 *   scroll?: number,
 *   height?: number,
 * }} LinkStyle scroll: the offset of the visible part, in pixels; height: its height
 */
/**
 * @typedef {Pick<Handlers, "lock" | "leave"> & {
 *   point(word: LinkEnd | null, cursor: LinkEnd | null): void,
 *   reveal(y: number): void,
 * }} LinkHandlers
 */

const ROW_HEIGHT = 18;
const TOP_MARGIN = 24;

/** The layout and drawing of the words and lines of one or more heads. */
export class LinkDiagram {
  /** @type {HeadLinks[]} all of the same words */
  heads = [];
  /** @type {string[][]} of rows and columns */
  labels = [[], []];
  width = 0;
  height = 0;
  /** Where the words end and begin, in pixels. */
  left = 0;
  right = 0;
  contentWidth = 0;

  /** @param {import("../base/theme.js").Theme} theme @param {string[]} axes */
  constructor(theme, axes) {
    this.theme = theme;
    this.axes = axes;
  }

  /** @param {HeadLinks[]} heads @param {number} width */
  layout(heads, width) {
    const { grid } = heads[0];
    this.labels = [grid.rows, grid.columns].map((words) => words.map((word) => label(word, 24)));
    const [leftWidth, rightWidth] = this.labels.map((words) =>
      Math.min(0.34 * width, Math.max(30, ...words.slice(0, 2000).map((word) => textWidth(word, 12, true))) + 14),
    );
    const between = Math.min(width - leftWidth - rightWidth, 560);
    this.heads = heads;
    this.width = width;
    this.left = leftWidth;
    this.right = leftWidth + between;
    this.contentWidth = leftWidth + between + rightWidth;
    this.height = TOP_MARGIN + ROW_HEIGHT * Math.max(grid.rows.length, grid.columns.length) + 6;
    return this.height;
  }

  /** @param {number} index */
  y(index) {
    return TOP_MARGIN + (index + 0.5) * ROW_HEIGHT;
  }

  /**
   * Return the word under a point: ["rows" or "columns", index].
   * @param {number} x
   * @param {number} y
   * @returns {LinkEnd | null}
   */
  word(x, y) {
    const side = x < (this.left + this.right) / 2 ? "rows" : "columns";
    const index = Math.floor((y - TOP_MARGIN) / ROW_HEIGHT);
    return index >= 0 && index < this.heads[0].grid[side].length && (x < this.left + 12 || x > this.right - 12)
      ? [side, index]
      : null;
  }

  /**
   * Select the weights to show: [row, col, value], at least `minWeight`, the `maxLinks` strongest of a word.
   * @param {AnyGrid} grid
   * @param {Locked & { minWeight: number, maxLinks: number, from: number, to: number }} style
   */
  selectLinks(grid, { rows, columns, minWeight, maxLinks, from, to }) {
    /** @type {[row: number, col: number, value: number][]} */
    const links = [];
    /** @param {[number, number][]} pairs @param {(other: number) => [row: number, col: number]} make */
    const keep = (pairs, make) =>
      pairs.filter(([, value]) => value >= minWeight).forEach(([other, value]) => links.push([...make(other), value]));
    if (columns.length) {
      const only = new Set(rows);
      for (const col of columns)
        keep(
          grid
            .strongestPairs(col, "col", only.size ? grid.rows.length : maxLinks)
            .filter(([row]) => !only.size || only.has(row)),
          (row) => [row, col],
        );
      return links;
    }
    const queries = rows.length ? rows : grid.rows.map((_, row) => row).filter((row) => row >= from && row < to);
    for (const row of queries) keep(grid.strongestPairs(row, "row", maxLinks), (col) => [row, col]);
    return links;
  }

  /**
   * Draw the colours of the heads in the middle of the head line, as far as they fit.
   * @param {Pen} pen
   * @param {number} y
   */
  legend(pen, y) {
    const { theme } = this;
    const widths = this.heads.map(({ name }) => 24 + textWidth(name) + 14);
    let x = Math.max(this.left + 10, (this.left + this.right - widths.reduce((sum, width) => sum + width, 0)) / 2);
    for (const [index, { ink, name }] of this.heads.entries()) {
      if (x + widths[index] > this.right) break;
      pen.line(x, y, x + 18, y, { stroke: theme.headColour(ink), lineWidth: 3 });
      pen.text(x + 24, y, name, { fill: theme.soft });
      x += widths[index];
    }
  }

  /** @param {Pen} pen @param {LinkStyle} style */
  draw(pen, { rows = [], columns = [], pointed = null, scroll = 0, height = Infinity, ...style }) {
    const { theme } = this;
    const part = {
      scroll,
      from: Math.floor((scroll - TOP_MARGIN) / ROW_HEIGHT) - 1,
      to: Math.ceil((scroll + height - TOP_MARGIN) / ROW_HEIGHT) + 1,
    };
    /** @type {Locked} */
    const selected = pointed ? { rows: [], columns: [], [pointed[0]]: [pointed[1]] } : { rows, columns };
    pen.text(this.left - 8, 10 - scroll, this.axes[0], { fill: theme.soft, align: "right" });
    pen.text(this.right + 8, 10 - scroll, this.axes[1], { fill: theme.soft });
    if (this.heads.length > 1) this.legend(pen, 10 - scroll);
    const touched = this.drawLinks(pen, selected, part, style);
    const busy = selected.rows.length + selected.columns.length > 0;
    /** @param {Side} side @param {number} i */
    const highlighted = (side, i) => !busy || selected[side].includes(i) || touched[side].has(i);
    /** @param {Side} side @param {number} i */
    const strong = (side, i) => selected[side].includes(i);
    this.drawTokenLabels(pen, "rows", part, { locked: rows, highlighted, strong });
    this.drawTokenLabels(pen, "columns", part, { locked: columns, highlighted, strong });
    if (style.cursor) this.drawCursor(pen, style.cursor, scroll);
  }

  /**
   * Draw the lines; return the words of each side that one of them touches.
   * @param {Pen} pen
   * @param {Locked} selected
   * @param {Stretch} part
   * @param {{ minWeight?: number, maxLinks?: number }} style
   */
  drawLinks(pen, selected, { scroll, from, to }, { minWeight = 0.05, maxLinks = 5 }) {
    /** @type {Record<Side, Set<number>>} */
    const touched = { rows: new Set(), columns: new Set() };
    for (const { grid, ink } of this.heads) {
      for (const [row, col, value] of this.selectLinks(grid, { ...selected, minWeight, maxLinks, from, to })) {
        touched.rows.add(row);
        touched.columns.add(col);
        const strength = Math.sqrt(value);
        pen.line(this.left, this.y(row) - scroll, this.right, this.y(col) - scroll, {
          stroke: this.theme.headColour(ink),
          lineWidth: 0.5 + 4.5 * strength,
          alpha: 0.15 + 0.75 * strength,
          bend: 0.45,
        });
      }
    }
    return touched;
  }

  /**
   * @param {Pen} pen
   * @param {Side} side
   * @param {Stretch} part
   * @param {{ locked: number[], highlighted(side: Side, i: number): boolean, strong(side: Side, i: number): boolean }} style
   */
  drawTokenLabels(pen, side, { scroll, from, to }, { locked, highlighted, strong }) {
    const { theme } = this;
    const left = side === "rows";
    const words = this.labels[left ? 0 : 1];
    const x = left ? this.left - 8 : this.right + 8;
    const align = left ? "right" : "left";
    for (let i = Math.max(0, from); i < Math.min(words.length, to); i++) {
      const fill = highlighted(side, i) ? theme.ink : theme.faint;
      const text = words[i] + (locked.includes(i) ? " ●" : "");
      pen.text(x, this.y(i) - scroll, text, { size: 12, bold: strong(side, i), fill, align });
    }
  }

  /** @param {Pen} pen @param {LinkEnd} word @param {number} scroll */
  drawCursor(pen, [side, i], scroll) {
    const [x, width] = side === "rows" ? [2, this.left - 4] : [this.right + 3, this.contentWidth - this.right - 6];
    pen.rect(x, this.y(i) - scroll - ROW_HEIGHT / 2, width, ROW_HEIGHT, { stroke: this.theme.focus, lineWidth: 2 });
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {LinkHandlers} handlers
   * @param {() => number} scroll how far down the drawing begins
   */
  listen(canvas, handlers, scroll) {
    /** @type {LinkEnd | null} */
    let cursor = null;
    /** @param {MouseEvent} event */
    const wordUnder = (event) => {
      const [x, y] = pointIn(canvas, event);
      return this.word(x, y + scroll());
    };
    followPointer(
      canvas,
      (event) => handlers.point(wordUnder(event), null),
      () => handlers.point(null, null),
    );
    canvas.onclick = (event) => {
      const word = wordUnder(event);
      if (word) handlers.lock(...word);
    };
    canvas.onblur = () => handlers.point(null, null);
    canvas.onfocus = () => {
      cursor ??= ["rows", 0];
      if (canvas.matches(":focus-visible")) handlers.point(cursor, cursor);
    };
    canvas.onkeydown = (event) => {
      cursor ??= ["rows", 0];
      const step = ARROW_STEPS[event.key]?.[0];
      if (step) cursor = [cursor[0], cursor[1] + step * (event.shiftKey ? 10 : 1)];
      else if (event.key === "ArrowLeft" || event.key === "ArrowRight")
        cursor = [event.key === "ArrowLeft" ? "rows" : "columns", cursor[1]];
      else if (event.key === "Enter" || event.key === " ") handlers.lock(...cursor);
      else if (event.key === "Escape") handlers.leave();
      else return;
      cursor = [cursor[0], clamp(cursor[1], 0, this.heads[0].grid[cursor[0]].length - 1)];
      handlers.reveal(this.y(cursor[1]));
      handlers.point(cursor, cursor);
      consume(event);
    };
  }
}

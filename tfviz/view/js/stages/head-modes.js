// The stages of a view of heads other than the heatmap: a sheet of all heads, lines between words, shaded words. Each
// has an element, shows the content it is given, and can draw it on any pen.

import { chartCanvas, h } from "../base/elements.js";
import { formatted } from "../base/numbers.js";
import { LinkDiagram } from "./link-diagram.js";
import { otherSide } from "../base/patch-grid.js";
import { CanvasPen } from "../base/pen.js";
import { quoted } from "../base/visible-text.js";
import { Sheet } from "./sheet.js";
import { ShadedWords } from "./shaded-words.js";

/** @import { AnyGrid, Drawing, Handlers, Locked, Pen, Point, Side } from "../types.js" */
/** @import { HeadLinks, Word } from "./link-diagram.js" */
/** @import { Part, SheetHandlers, SheetLook } from "./sheet.js" */
/**
 * @typedef {SheetLook & { part: Part, placed?: Part }} SheetContent placed: the layout of the pictures drawn instead; row: the query of the text above, if any
 */

const MAX_HEIGHT = 560;

/** A stage that shows all heads as small heatmaps, with the text shaded by one of them above. */
export class SheetStage {
  /** @type {SheetContent | null} */
  content = null;
  /** @type {{ chosen: Point, row: number } | null} the head and the query that the mouse points at */
  pointed = null;

  /**
   * @param {import("../base/theme.js").Theme} theme
   * @param {Pick<SheetHandlers, "open" | "mark"> & Pick<Handlers, "announce">} handlers
   * @param {string[]} names
   * @param {(row: number) => void} choose chooses the query whose row is shown
   */
  constructor(theme, handlers, names, choose) {
    this.sheet = new Sheet(theme, names);
    this.words = new ShadedWords(theme, { lock: (_, row) => choose(row), leave: () => {} });
    this.canvas = chartCanvas("All heads: arrows move, Enter opens a head, Space marks it");
    this.element = h("div", { class: "stage" }, this.words.element, this.canvas);
    this.focused = false;
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

  /** Shade the text for the head and query under the pointer, unless they are the same as before. @param {{ chosen: Point, row: number } | null} pointed */
  pointAt(pointed) {
    const moved = JSON.stringify(pointed) !== JSON.stringify(this.pointed);
    this.pointed = pointed;
    if (moved) this.showWords();
  }

  /** @param {SheetContent} content @param {number} width */
  show(content, width) {
    this.content = content;
    this.showWords();
    this.sheet.place(content.placed ?? content.part, width);
    this.draw();
  }

  /** Show the text, shaded by the row of the head and query under the pointer, else of the chosen ones. */
  showWords() {
    const { grids, chosen = [0, 0], row = null } = this.content ?? {};
    const grid = grids?.get((this.pointed?.chosen ?? chosen).join("."));
    this.words.element.hidden = row === null || !grid;
    if (row !== null && grid) this.words.show(grid, this.pointed?.row ?? row, false);
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
      focused: this.focused,
    });
  }

  /** @returns {Drawing} */
  get drawing() {
    return { width: this.sheet.contentRight, height: this.sheet.height, draw: (pen) => this.paint(pen) };
  }
}

/** A stage that shows weights as lines between queries and keys. */
export class LinesStage {
  /** @type {(Locked & { minWeight: number, maxLinks: number }) | null} */
  look = null;
  /** The pixels of the drawing that are visible at once. */
  view = 0;
  /** @type {Word | null} */
  pointed = null;
  /** @type {Word | null} */
  cursor = null;

  /** @param {import("../base/theme.js").Theme} theme @param {Handlers} handlers @param {string[]} axes */
  constructor(theme, handlers, axes) {
    this.diagram = new LinkDiagram(theme, axes);
    this.canvas = chartCanvas("Lines: up and down move, left and right change sides, Space locks a word");
    this.spacer = h("div", { class: "tall" }, this.canvas);
    this.element = h("div", { class: "stage scroller", onscroll: () => this.draw() }, this.spacer);

    this.diagram.listen(
      this.canvas,
      {
        point: (word, cursor) => {
          [this.pointed, this.cursor] = [word, cursor];
          handlers.announce(word ? this.reading(word[0], word[1]) : "");
          this.draw();
        },
        lock: handlers.lock,
        leave: handlers.leave,
        reveal: (y) => {
          if (y < this.element.scrollTop + 30 || y > this.element.scrollTop + this.view - 30)
            this.element.scrollTop = y - this.view / 2;
        },
      },
      () => this.element.scrollTop,
    );
  }

  /** @param {HeadLinks[]} heads @param {Locked & { minWeight: number, maxLinks: number }} look @param {number} width */
  show(heads, look, width) {
    this.look = look;
    this.diagram.place(heads, width);
    this.view = Math.min(this.diagram.height, MAX_HEIGHT);
    this.spacer.style.height = `${this.diagram.height}px`;
    this.element.style.height = `${this.view}px`;
    this.draw();
  }

  /** @param {Side} side @param {number} index */
  reading(side, index) {
    const { heads } = this.diagram;
    const axis = side === "rows" ? 0 : 1;
    const along = axis ? "col" : "row";
    const pairs = heads.map(
      ({ grid, name }) =>
        `${name}: ` +
        grid
          .strongestPairs(index, along, 3)
          .map(([i, value]) => `${quoted(heads[0].grid[otherSide(side)][i])} ${formatted(value)}`)
          .join(", "),
    );
    return `${quoted(heads[0].grid[side][index])} ${axis ? "←" : "→"} ${pairs.join("; ")}`;
  }

  draw() {
    if (!this.look) return;
    const pen = new CanvasPen(this.canvas, this.diagram.width, this.view);
    this.paint(pen, this.element.scrollTop);
  }

  /** @param {Pen} pen @param {number} scroll */
  paint(pen, scroll) {
    this.diagram.draw(pen, {
      ...this.look,
      pointed: this.pointed,
      cursor: this.canvas.matches(":focus-visible") ? this.cursor : null,
      scroll,
      height: this.view,
    });
  }

  /** @returns {Drawing} */
  get drawing() {
    return {
      width: this.diagram.contentWidth,
      height: this.view,
      draw: (pen) => this.paint(pen, this.element.scrollTop),
    };
  }
}

/** A stage that shows the text, shaded by the weights of one word. */
export class WordsStage {
  /** @param {import("../base/theme.js").Theme} theme @param {Handlers} handlers */
  constructor(theme, handlers) {
    this.handlers = handlers;
    this.words = new ShadedWords(theme, handlers);
    this.element = h("div", { class: "stage" }, this.words.element);
  }

  /** @param {AnyGrid} grid @param {number} chosen @param {boolean} by */
  show(grid, chosen, by) {
    this.words.show(grid, chosen, by);
    this.handlers.announce(this.words.reading());
  }

  draw() {}

  /** @returns {Drawing} */
  get drawing() {
    return {
      width: this.words.element.offsetWidth,
      height: this.words.element.offsetHeight,
      draw: (pen) => this.words.draw(pen),
    };
  }
}

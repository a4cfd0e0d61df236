// Two stages of a view of heads: lines between tokens, and shaded words. Each has an element, shows the content it is
// given, and can draw it on any pen.

import { chartCanvas, h } from "../base/elements.js";
import { formatNumber } from "../base/numbers.js";
import { LinkDiagram } from "./link-diagram.js";
import { otherSide } from "../base/patch-grid.js";
import { CanvasPen } from "../base/pen.js";
import { quoted } from "../base/visible-text.js";
import { ShadedWords } from "./shaded-words.js";

/** @import { AnyGrid, Drawing, Handlers, Locked, Pen, Side } from "../types.js" */
/** @import { HeadLinks, LinkEnd } from "./link-diagram.js" */
const MAX_HEIGHT = 560;

/** A stage that shows weights as lines between queries and keys. */
export class LinksStage {
  /** @type {(Locked & { minWeight: number, maxLinks: number }) | null} */
  style = null;
  /** The pixels of the drawing that are visible at once. */
  view = 0;
  /** @type {LinkEnd | null} */
  pointed = null;
  /** @type {LinkEnd | null} */
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

  /** @param {HeadLinks[]} heads @param {Locked & { minWeight: number, maxLinks: number }} style @param {number} width */
  show(heads, style, width) {
    this.style = style;
    this.diagram.layout(heads, width);
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
          .map(([i, value]) => `${quoted(heads[0].grid[otherSide(side)][i])} ${formatNumber(value)}`)
          .join(", "),
    );
    return `${quoted(heads[0].grid[side][index])} ${axis ? "←" : "→"} ${pairs.join("; ")}`;
  }

  draw() {
    if (!this.style) return;
    const pen = new CanvasPen(this.canvas, this.diagram.width, this.view);
    this.paint(pen, this.element.scrollTop);
  }

  /** @param {Pen} pen @param {number} scroll */
  paint(pen, scroll) {
    this.diagram.draw(pen, {
      ...this.style,
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

// The other ways to look at heads: the sheet, lines, words. Each has an element, shows what it is given, and can draw it once more elsewhere.

import { h } from "../base/elements.js";
import { formatted } from "../base/numbers.js";
import { drawn } from "./headstage.js";
import { Lines } from "./lines.js";
import { CanvasPen, quoted } from "../base/pen.js";
import { Sheet } from "./sheet.js";
import { Words } from "./words.js";

const TALLEST = 560;

export class SheetStage {
  // handlers: { open(layer, head), mark(layer, head), announce(text) }
  constructor(theme, handlers, names) {
    this.sheet = new Sheet(theme, names);
    this.canvas = drawn("All heads: arrows move, Enter opens a head, Space marks it");
    this.element = h("div", { class: "stage" }, this.canvas);
    this.focused = false;
    this.sheet.listen(this.canvas, {
      open: handlers.open,
      mark: handlers.mark,
      leave: () => {},
      point: (at) => {
        this.focused = document.activeElement !== null && this.canvas.matches(":focus-visible");
        handlers.announce(at ? this.sheet.describe(...at, this.shown.grids.get(at.join("."))) : "");
        this.draw();
      },
    });
  }

  show(shown, width) {
    this.shown = shown;
    this.sheet.place(shown.placed ?? shown.part, width);
    this.draw();
  }

  draw() {
    this.paint(new CanvasPen(this.canvas, this.sheet.width, this.sheet.height));
  }

  paint(pen) {
    this.sheet.draw(pen, { ...this.shown, focused: this.focused });
  }

  get drawing() {
    return { width: this.sheet.across, height: this.sheet.height, draw: (pen) => this.paint(pen) };
  }
}

export class LinesStage {
  pointed = null;
  cursor = null;

  constructor(theme, handlers, axes) {
    this.lines = new Lines(theme, axes);
    this.canvas = drawn("Lines: up and down move, left and right change sides, Space locks a word");
    this.tall = h("div", { class: "tall" }, this.canvas);
    this.element = h("div", { class: "stage scroller", onscroll: () => this.draw() }, this.tall);

    this.lines.listen(
      this.canvas,
      {
        point: (word, cursor) => {
          [this.pointed, this.cursor] = [word, cursor];
          handlers.announce(word ? this.reading(...word) : "");
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

  // shown: [{ grid, ink, name }]; look: { rows, cols, least, most }
  show(shown, look, width) {
    this.look = look;
    this.lines.place(shown, width);
    this.view = Math.min(this.lines.height, TALLEST);
    this.tall.style.height = `${this.lines.height}px`;
    this.element.style.height = `${this.view}px`;
    this.draw();
  }

  reading(side, index) {
    const { shown } = this.lines;
    const axis = side === "rows" ? 0 : 1;
    const along = axis ? "col" : "row";
    const pairs = shown.map(
      ({ grid, name }) =>
        `${name}: ` +
        grid
          .strongest(index, along, 3)
          .map(([i, value]) => `${quoted(shown[0].grid[side === "rows" ? "cols" : "rows"][i])} ${formatted(value)}`)
          .join(", "),
    );
    return `${quoted(shown[0].grid[side][index])} ${axis ? "←" : "→"} ${pairs.join("; ")}`;
  }

  draw() {
    if (!this.look) return;
    const pen = new CanvasPen(this.canvas, this.lines.width, this.view);
    this.paint(pen, this.element.scrollTop);
  }

  paint(pen, scroll) {
    this.lines.draw(pen, {
      ...this.look,
      pointed: this.pointed,
      cursor: this.canvas.matches(":focus-visible") ? this.cursor : null,
      scroll,
      tall: this.view,
    });
  }

  get drawing() {
    return { width: this.lines.across, height: this.view, draw: (pen) => this.paint(pen, this.element.scrollTop) };
  }
}

export class WordsStage {
  constructor(theme, handlers) {
    this.handlers = handlers;
    this.words = new Words(theme, handlers);
    this.element = h("div", { class: "stage" }, this.words.element);
  }

  show(grid, chosen, by) {
    this.words.show(grid, chosen, by);
    this.handlers.announce(this.words.reading());
  }

  draw() {}

  get drawing() {
    return {
      width: this.words.element.offsetWidth,
      height: this.words.element.offsetHeight,
      draw: (pen) => this.words.draw(pen),
    };
  }
}

// The four ways to look at heads. Each has an element, shows what it is given, and can draw it once more elsewhere.

import { h } from "./elements.js";
import { Heatmap } from "./heatmap.js";
import { Lines } from "./lines.js";
import { CanvasPen, quoted, two } from "./pen.js";
import { pointing } from "./pointing.js";
import { Sheet } from "./sheet.js";
import { Words } from "./words.js";

const TALLEST = 560;

const drawn = (label) => h("canvas", { tabIndex: 0, role: "application", "aria-label": label, "aria-roledescription": "chart" });

export class SheetStage {
  // does: { open(layer, head), mark(layer, head), says(text) }
  constructor(theme, does, names) {
    this.sheet = new Sheet(theme, names);
    this.canvas = drawn("All heads: arrows move, Enter opens a head, Space marks it");
    this.element = h("div", { class: "stage" }, this.canvas);
    this.focused = false;
    this.sheet.listen(this.canvas, {
      open: does.open, mark: does.mark, leave: () => {},
      point: (at) => {
        this.focused = document.activeElement !== null && this.canvas.matches(":focus-visible");
        does.says(at ? this.sheet.says(...at, this.shown.grids.get(at.join("."))) : "");
        this.draw();
      },
    });
  }

  show(shown, width) {
    this.shown = shown;
    this.sheet.place(shown.part, width);
    this.draw();
  }

  draw() { this.paint(new CanvasPen(this.canvas, this.sheet.width, this.sheet.height)); }

  paint(pen) { this.sheet.draw(pen, { ...this.shown, focused: this.focused }); }

  get drawing() { return { width: this.sheet.across, height: this.sheet.height, draw: (pen) => this.paint(pen) }; }
}

export class HeadStage {
  // does: { lock(axis, index), says(text), leave() }; panels share cursor, zoom and locks
  constructor(theme, does, options = {}) {
    Object.assign(this, { theme, does, options, panels: [], cursor: null, element: h("div", { class: "stage panels" }) });
  }

  // panels: [{ name, grid, axes }]; look: { rows, cols, outlined, borders: those of each panel }
  show(panels, look, width) {
    while (this.panels.length > panels.length) this.panels.pop().canvas.remove();
    while (this.panels.length < panels.length) this.panels.push(this.panel(this.panels.length));
    Object.assign(this, { look, names: panels.map(({ name }) => name) });
    const beside = panels.length > 1 && width >= 320 * panels.length ? panels.length : 1;
    panels.forEach(({ name, grid, axes }, i) => {
      if (axes) this.panels[i].map.axes = axes;
      this.panels[i].canvas.setAttribute("aria-label", `${name || "Heatmap"}: arrows move, Space locks a row, C locks a column, plus and minus zoom`);
      this.panels[i].map.place(grid, (width - 16 * (beside - 1)) / beside);
      if (this.window && i) this.panels[i].map.window = this.panels[0].map.window;
    });
    const pointed = this.cursor;
    if (pointed && !panels.some(({ grid }) => pointed[0] < grid.rows.length && pointed[1] < grid.cols.length)) this.cursor = null;
    if (pointed) this.does.says(this.cursor ? this.reading(this.cursor) : "");
    this.draw();
  }

  panel(index) {
    const map = new Heatmap(this.theme, { legend: true, ...this.options }), canvas = drawn("Heatmap");
    pointing(canvas, map, {
      point: (cell) => { this.cursor = cell; this.does.says(cell ? this.reading(cell) : ""); this.draw(); },
      lock: (axis, at) => this.does.lock(axis, at),
      changed: () => { this.panels.forEach((panel) => { if (same(panel.map.grid, map.grid)) panel.map.window = map.window; }); this.draw(); },
      leave: () => this.does.leave(),
    });
    this.element.append(canvas);
    return { map, canvas, index };
  }

  reading(cell) {
    return this.panels.map(({ map }, i) => (cell[0] < map.grid.rows.length && cell[1] < map.grid.cols.length ? this.does.reading(map.grid, cell, this.names[i]) : ""))
      .filter(Boolean).join("   ");
  }

  draw() {
    for (const { map, canvas, index } of this.panels) this.paint(new CanvasPen(canvas, map.width, map.height), map, index);
  }

  paint(pen, map, index) {
    const fits = this.cursor && this.cursor[0] < map.grid.rows.length && this.cursor[1] < map.grid.cols.length;
    map.draw(pen, { ...this.look, borders: this.look.borders?.[index], cursor: fits ? this.cursor : null, title: this.names[index] });
  }

  zoom(factor) {
    this.panels.forEach(({ map }) => { if (factor) map.zoom(factor); else map.fit(); });
    this.draw();
  }

  get drawing() {
    const from = this.element.getBoundingClientRect(), place = this.panels.map(({ canvas }) => { const { left, top } = canvas.getBoundingClientRect(); return [left - from.left, top - from.top]; });
    const far = (axis, size) => Math.max(...this.panels.map(({ map }, i) => place[i][axis] + map[size]));
    return { width: far(0, "width"), height: far(1, "height"), draw: (pen) => this.panels.forEach(({ map }, i) => { pen.from(...place[i]); this.paint(pen, map, i); pen.from(0, 0); }) };
  }
}

const same = (one, other) => one.rows.length === other.rows.length && one.cols.length === other.cols.length;

export class LinesStage {
  constructor(theme, does, axes) {
    this.lines = new Lines(theme, axes);
    this.canvas = drawn("Lines: up and down move, left and right change sides, Space locks a word");
    this.tall = h("div", { class: "tall" }, this.canvas);
    this.element = h("div", { class: "stage scroller", onscroll: () => this.draw() }, this.tall);
    Object.assign(this, { pointed: null, cursor: null });
    this.lines.listen(this.canvas, {
      point: (word, cursor) => { [this.pointed, this.cursor] = [word, cursor]; does.says(word ? this.reading(...word) : ""); this.draw(); },
      lock: does.lock, leave: does.leave,
      reveal: (y) => { if (y < this.element.scrollTop + 30 || y > this.element.scrollTop + this.view - 30) this.element.scrollTop = y - this.view / 2; },
    }, () => this.element.scrollTop);
  }

  // shown: [{ grid, head, name }]; look: { rows, cols, least, most }
  show(shown, look, width) {
    this.look = look;
    this.lines.place(shown, width);
    this.view = Math.min(this.lines.height, TALLEST);
    this.tall.style.height = `${this.lines.height}px`;
    this.element.style.height = `${this.view}px`;
    this.draw();
  }

  reading(side, index) {
    const { shown } = this.lines, axis = side === "rows" ? 0 : 1, along = axis ? "col" : "row";
    const pairs = shown.map(({ grid, name }) => `${name}: ` + grid.strongest(index, along, 3).map(([i, value]) => `${quoted(shown[0].grid[side === "rows" ? "cols" : "rows"][i])} ${two(value)}`).join(", "));
    return `${quoted(shown[0].grid[side][index])} ${axis ? "←" : "→"} ${pairs.join("; ")}`;
  }

  draw() {
    if (!this.look) return;
    const pen = new CanvasPen(this.canvas, this.lines.width, this.view);
    this.paint(pen, this.element.scrollTop);
  }

  paint(pen, scroll) { this.lines.draw(pen, { ...this.look, pointed: this.pointed, cursor: this.canvas.matches(":focus-visible") ? this.cursor : null, scroll, tall: this.view }); }

  get drawing() { return { width: this.lines.across, height: this.view, draw: (pen) => this.paint(pen, this.element.scrollTop) }; }
}

export class WordsStage {
  constructor(theme, does) {
    Object.assign(this, { does, words: new Words(theme, does) });
    this.element = h("div", { class: "stage" }, this.words.element);
  }

  show(grid, chosen, by) {
    this.words.show(grid, chosen, by);
    this.does.says(this.words.reading());
  }

  draw() {}

  get drawing() { return { width: this.words.element.offsetWidth, height: this.words.element.offsetHeight, draw: (pen) => this.words.draw(pen) }; }
}

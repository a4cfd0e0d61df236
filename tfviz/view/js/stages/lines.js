// Two columns of words, queries left and keys right, and a line for each weight; a colour for each head.

import { following } from "../base/elements.js";
import { label, measure } from "../base/pen.js";

const PITCH = 18;
const TOP = 24;

export class Lines {
  constructor(theme, axes = ["query", "key"]) {
    this.theme = theme;
    this.axes = axes;
  }

  // shown: [{ grid, ink, name }], all of the same words.
  place(shown, width) {
    const { grid } = shown[0];
    this.labels = [grid.rows, grid.cols].map((words) => words.map((word) => label(word, 24)));
    const [one, two] = this.labels.map((words) =>
      Math.min(0.34 * width, Math.max(30, ...words.slice(0, 2000).map((word) => measure(word, 12, true))) + 14),
    );
    const between = Math.min(width - one - two, 560);
    this.shown = shown;
    this.width = width;
    this.left = one;
    this.right = one + between;
    this.across = one + between + two;
    this.height = TOP + PITCH * Math.max(grid.rows.length, grid.cols.length) + 6;
    return this.height;
  }

  y(index) {
    return TOP + (index + 0.5) * PITCH;
  }

  // The word under a point: ["rows" or "cols", index]
  word(x, y) {
    const side = x < (this.left + this.right) / 2 ? "rows" : "cols";
    const index = Math.floor((y - TOP) / PITCH);
    return index >= 0 && index < this.shown[0].grid[side].length && (x < this.left + 12 || x > this.right - 12)
      ? [side, index]
      : null;
  }

  // The weights to show: [row, col, value], at least `least`, the `most` strongest of a word.
  chosen(grid, { rows, cols, least, most, from, to }) {
    const found = [];
    const keep = (pairs, make) =>
      pairs.filter(([, value]) => value >= least).forEach(([other, value]) => found.push([...make(other), value]));
    if (cols.length) {
      const only = new Set(rows);
      for (const col of cols)
        keep(
          grid
            .strongest(col, "col", only.size ? grid.rows.length : most)
            .filter(([row]) => !only.size || only.has(row)),
          (row) => [row, col],
        );
      return found;
    }
    const asked = rows.length ? rows : grid.rows.map((_, row) => row).filter((row) => row >= from && row < to);
    for (const row of asked) keep(grid.strongest(row, "row", most), (col) => [row, col]);
    return found;
  }

  // Which colour is whose, in the middle of the head line, as far as there is room.
  legend(pen, y) {
    const { theme } = this;
    const widths = this.shown.map(({ name }) => 24 + measure(name) + 14);
    let x = Math.max(this.left + 10, (this.left + this.right - widths.reduce((sum, one) => sum + one, 0)) / 2);
    for (const [place, { ink, name }] of this.shown.entries()) {
      if (x + widths[place] > this.right) break;
      pen.line(x, y, x + 18, y, { stroke: theme.head(ink), thick: 3 });
      pen.text(x + 24, y, name, { fill: theme.soft });
      x += widths[place];
    }
  }

  // scroll: how far down the part that is drawn begins; tall: how much is drawn.
  draw(
    pen,
    { rows = [], cols = [], pointed = null, least = 0.05, most = 5, scroll = 0, tall = Infinity, cursor = null },
  ) {
    const { theme } = this;
    const [from, to] = [Math.floor((scroll - TOP) / PITCH) - 1, Math.ceil((scroll + tall - TOP) / PITCH) + 1];
    const asked = pointed
      ? { rows: pointed[0] === "rows" ? [pointed[1]] : [], cols: pointed[0] === "cols" ? [pointed[1]] : [] }
      : { rows, cols };
    pen.text(this.left - 8, 10 - scroll, this.axes[0], { fill: theme.soft, align: "right" });
    pen.text(this.right + 8, 10 - scroll, this.axes[1], { fill: theme.soft });
    const touched = { rows: new Map(), cols: new Map() };
    if (this.shown.length > 1) this.legend(pen, 10 - scroll);
    for (const { grid, ink } of this.shown) {
      for (const [row, col, value] of this.chosen(grid, { ...asked, least, most, from, to })) {
        for (const [side, i] of [
          ["rows", row],
          ["cols", col],
        ])
          touched[side].set(i, Math.max(touched[side].get(i) ?? 0, value));
        const strength = Math.sqrt(value);
        pen.line(this.left, this.y(row) - scroll, this.right, this.y(col) - scroll, {
          stroke: theme.head(ink),
          thick: 0.5 + 4.5 * strength,
          alpha: 0.15 + 0.75 * strength,
          bend: 0.45,
        });
      }
    }
    const busy = asked.rows.length || asked.cols.length;
    for (const [axis, locked] of [rows, cols].entries()) {
      const side = ["rows", "cols"][axis];
      const count = this.shown[0].grid[side].length;
      for (let i = Math.max(0, from); i < Math.min(count, to); i++) {
        const at = asked[side].includes(i);
        const lit = at || !busy || touched[side].has(i);
        const text = this.labels[axis][i] + (locked.includes(i) ? " ●" : "");
        pen.text(axis ? this.right + 8 : this.left - 8, this.y(i) - scroll, text, {
          size: 12,
          bold: at,
          fill: lit ? theme.ink : theme.faint,
          align: axis ? "left" : "right",
        });
        if (cursor && cursor[0] === side && cursor[1] === i)
          pen.rect(
            axis ? this.right + 3 : 2,
            this.y(i) - scroll - PITCH / 2,
            axis ? this.across - this.right - 6 : this.left - 4,
            PITCH,
            { stroke: theme.focus, thick: 2 },
          );
      }
    }
  }

  // handlers: { point(word), lock(side, index), leave(), reveal(y) }; scroll(): how far down the drawing begins
  listen(canvas, handlers, scroll) {
    let cursor = null;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return this.word(event.clientX - box.left, event.clientY - box.top + scroll());
    };
    following(
      canvas,
      (event) => handlers.point(place(event), null),
      () => handlers.point(null, null),
    );
    canvas.onclick = (event) => {
      const word = place(event);
      if (word) handlers.lock(...word);
    };
    canvas.onblur = () => handlers.point(null, null);
    canvas.onfocus = () => {
      cursor ??= ["rows", 0];
      if (canvas.matches(":focus-visible")) handlers.point(cursor, cursor);
    };
    canvas.onkeydown = (event) => {
      cursor ??= ["rows", 0];
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (step) cursor = [cursor[0], cursor[1] + step * (event.shiftKey ? 10 : 1)];
      else if (event.key === "ArrowLeft" || event.key === "ArrowRight")
        cursor = [event.key === "ArrowLeft" ? "rows" : "cols", cursor[1]];
      else if (event.key === "Enter" || event.key === " ") handlers.lock(...cursor);
      else if (event.key === "Escape") handlers.leave();
      else return;
      cursor = [cursor[0], Math.max(0, Math.min(this.shown[0].grid[cursor[0]].length - 1, cursor[1]))];
      handlers.reveal(this.y(cursor[1]));
      handlers.point(cursor, cursor);
      event.preventDefault();
      event.stopPropagation();
    };
  }
}

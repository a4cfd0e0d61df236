// A search as a tree: a column for each step, the best text on top; every word a button.

import { h } from "../base/elements.js";
import { fixed } from "../base/numbers.js";
import { CanvasPen, label, measure } from "../base/pen.js";
import { scoreOf, wayTo } from "./beams.js";

const STEP_ROW = 38; // pixels
const STEP_GAP = 26; // between two columns
const ROOT_LEFT = 14;
const NODE_LETTERS = 16; // of a word

export class SearchTree {
  columns = [];
  alpha = 0;
  chosen = null;

  // handlers: { choose(column, rank) }
  constructor(theme, handlers) {
    this.theme = theme;
    this.handlers = handlers;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.nodes = h("div", {
      class: "nodes",
      role: "group",
      "aria-label": "Search: a column for each step, the best text on top",
    });
    this.element = h("div", { class: "search", tabIndex: -1 }, this.canvas, this.nodes);
    this.nodes.onclick = ({ target }) => {
      const button = target.closest("button");
      if (button) handlers.choose(...nodePlace(button));
    };
    this.nodes.onkeydown = (event) => this.key(event);
  }

  // columns: of the search; word: id -> how it is shown; forced: how many columns were asked for
  show({ columns, alpha, chosen, word, forced }) {
    const grown = columns.length !== this.columns.length;
    this.columns = columns;
    this.alpha = alpha;
    this.chosen = chosen;
    this.word = word;
    this.forced = forced;
    this.element.hidden = !columns.length;
    this.measure();
    this.way = columns.length ? wayTo(columns, ...chosen) : [];
    this.draw(new CanvasPen(this.canvas, this.width, this.height), false);
    const focused = this.nodes.getRootNode().activeElement;
    const held = this.nodes.contains(focused) ? nodePlace(focused) : null;
    this.nodes.style.height = `${this.height}px`;
    this.nodes.replaceChildren(
      ...columns.flatMap((column, step) =>
        column.flatMap((text, rank) => (text.over ? [] : [this.node(text, step, rank)])),
      ),
    );
    if (held) this.at(...held)?.focus();
    if (grown) this.element.scrollLeft = this.element.scrollWidth;
  }

  measure() {
    this.lefts = [];
    this.wide = [];
    let x = ROOT_LEFT + STEP_GAP;
    for (const column of this.columns) {
      const fresh = column.filter(({ over }) => !over);
      const wide = Math.max(34, ...fresh.map((text) => measure(this.said(text), 13, true) + 14));
      this.lefts.push(x);
      this.wide.push(Math.ceil(wide));
      x += Math.ceil(wide) + STEP_GAP;
    }
    this.width = x;
    this.height = STEP_ROW * Math.max(1, ...this.columns.map((column) => column.length)) + 6;
  }

  said(text) {
    return label(this.word(text.tokens.at(-1)), NODE_LETTERS);
  }

  node(text, step, rank) {
    const [column, place] = this.chosen;
    const classes = ["node", this.way[step] === rank && "on", step < this.forced && "forced"].filter(Boolean).join(" ");
    const here = step === column && rank === place;
    const button = h(
      "button",
      {
        type: "button",
        class: classes,
        "aria-pressed": String(here),
        tabIndex: here ? 0 : -1,
        "data-place": `${step} ${rank}`,
      },
      h("span", { dir: "auto" }, this.said(text)),
      h("small", {}, fixed(scoreOf(text, this.alpha), 2)),
    );
    Object.assign(button.style, {
      left: `${this.lefts[step]}px`,
      top: `${rank * STEP_ROW + 2}px`,
      width: `${this.wide[step]}px`,
    });
    return button;
  }

  at(step, rank) {
    return this.nodes.querySelector(`[data-place="${step} ${rank}"]`);
  }

  key(event) {
    if (!event.target.dataset.place) return;
    const [step, rank] = nodePlace(event.target);
    const { columns } = this;
    const ranks = [...(columns[step + 1]?.keys() ?? [])].filter(
      (at) => columns[step + 1][at].parent === rank && !columns[step + 1][at].over,
    );
    const next = {
      ArrowLeft: () => [step - 1, columns[step][rank].parent],
      ArrowRight: () => [step + 1, ranks[0]],
      ArrowUp: () => [step, rank - 1],
      ArrowDown: () => [step, rank + 1],
      Home: () => [0, this.way[0]],
      End: () => [this.chosen[0], this.chosen[1]],
    }[event.key];
    if (!next) return;
    const button = this.at(...next());
    button?.focus();
    button?.scrollIntoView({ block: "nearest", inline: "nearest" });
    event.preventDefault();
    event.stopPropagation();
  }

  // Lines from text to text; the words too, where there are no buttons.
  draw(pen, words = true) {
    const { theme } = this;
    const middle = (rank) => rank * STEP_ROW + 2 + 16;
    pen.dot(ROOT_LEFT, middle(0), 3.5, { fill: theme.ink });
    this.columns.forEach((column, step) =>
      column.forEach((text, rank) => {
        const on = this.way[step] === rank;
        const from = step ? this.lefts[step - 1] + this.wide[step - 1] : ROOT_LEFT;
        const to = this.lefts[step] + (text.over ? this.wide[step] : 0);
        const inks = { stroke: on ? theme.ink : theme.soft, thick: on ? 2 : 1, alpha: text.over ? 0.35 : 1 };
        pen.line(from, middle(text.parent), text.over ? this.lefts[step] : to, middle(rank), { ...inks, bend: 0.5 });
        if (text.over) pen.line(this.lefts[step], middle(rank), to, middle(rank), inks);
        if (!words || text.over) return;
        const x = this.lefts[step] + this.wide[step] / 2;
        pen.text(x, middle(rank) - 6, this.said(text), {
          fill: on ? theme.ink : theme.soft,
          size: 13,
          align: "center",
          bold: on,
        });
        pen.text(x, middle(rank) + 9, fixed(scoreOf(text, this.alpha), 2), {
          fill: theme.soft,
          size: 10,
          align: "center",
        });
      }),
    );
  }
}

const nodePlace = (button) => (button.dataset.place ?? "0 0").split(" ").map(Number);

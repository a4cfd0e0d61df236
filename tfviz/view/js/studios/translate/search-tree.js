// A component that draws a beam search as a tree: a column for each step, the best text on top, and a button for each
// word.

import { button, focusedIn, h } from "../../base/elements.js";
import { consume } from "../../base/events.js";
import { formatFixed } from "../../base/numbers.js";
import { CanvasPen, textWidth } from "../../base/pen.js";
import { label } from "../../base/visible-text.js";
import { ranksUpTo, scoreOf } from "./beam-search.js";
import { joinPresent } from "../small-elements.js";
import { isSpecial, tokenPhrase, withoutSpace } from "../../base/token-names.js";

/** @import { Hypothesis } from "./beam-search.js" */
/** @import { Pen } from "../../types.js" */

const STEP_HEIGHT = 46;
const NODE_SIZE = { height: 38, sides: 18 }; // pixels of a word's box, and of both paddings beside it
const STEP_GAP = 26; // between two columns
const ROOT_LEFT = 14;
const MAX_NODE_LENGTH = 16; // letters of a word in a box

/** A tree of the texts of a beam search. */
export class SearchTree {
  /** @type {Hypothesis[][]} */
  columns = [];
  lengthPenalty = 0;
  /** @type {number[]} column and rank of the selected text */
  chosen = [0, 0];
  forced = 0;
  /** @type {number[]} the rank of the selected text at each step */
  ranks = [];
  /** @type {number[]} the left edge of each column; `widths`: its width */
  lefts = [];
  /** @type {number[]} */
  widths = [];
  width = 0;
  height = 0;
  /** @type {(id: number) => string} */
  word = String;

  /**
   * @param {import("../../base/theme.js").Theme} theme
   * @param {{ choose(column: number, rank: number): void }} handlers
   */
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
    this.nodes.onclick = (/** @type {any} */ { target }) => {
      const node = target.closest("button");
      if (!node) return;
      const [column, rank] = stepAndRank(node);
      handlers.choose(column, rank);
    };
    this.nodes.onkeydown = (/** @type {KeyboardEvent} */ event) => this.press(event);
  }

  /**
   * @param {{ columns: Hypothesis[][], lengthPenalty: number, chosen: number[] | null, searching: boolean, word: (id: number) => string,
   *   forced: number }} search searching: whether it goes on; forced: the number of columns with a forced token
   */
  show({ columns, lengthPenalty, chosen, searching, word, forced }) {
    const added = columns.length - this.columns.length;
    this.columns = columns;
    this.lengthPenalty = lengthPenalty;
    this.chosen = chosen ?? [0, 0];
    this.word = word;
    this.forced = forced;
    this.element.hidden = !columns.length;
    this.measureColumns();
    this.ranks = columns.length ? ranksUpTo(columns, this.chosen[0], this.chosen[1]) : [];
    this.draw(new CanvasPen(this.canvas, this.width, this.height), false);
    const focused = focusedIn(this.nodes);
    const focusedNode = this.nodes.contains(focused) ? stepAndRank(focused) : null;
    this.nodes.style.height = `${this.height}px`;
    this.nodes.replaceChildren(
      ...columns.flatMap((column, step) =>
        column.flatMap((text, rank) => (text.endedBefore ? [] : [this.makeNode(text, step, rank)])),
      ),
    );
    if (focusedNode) this.nodeAt(focusedNode[0], focusedNode[1])?.focus();
    this.element.classList.toggle("overflows", this.width > this.element.clientWidth);
    // a search that runs or goes on is followed; one that is done is read from its first word
    if (added) this.element.scrollLeft = searching || added === 1 ? this.element.scrollWidth : 0;
  }

  measureColumns() {
    this.lefts = [];
    this.widths = [];
    let x = ROOT_LEFT + STEP_GAP;
    for (const column of this.columns) {
      const open = column.filter(({ endedBefore }) => !endedBefore);
      const boxWidth = Math.max(48, ...open.map((text) => textWidth(this.wordOf(text), 13, true) + NODE_SIZE.sides));
      this.lefts.push(x);
      this.widths.push(Math.ceil(boxWidth));
      x += Math.ceil(boxWidth) + STEP_GAP;
    }
    this.width = x;
    this.height = STEP_HEIGHT * Math.max(1, ...this.columns.map((column) => column.length)) + 6;
  }

  /** @param {Hypothesis} text */
  wordOf(text) {
    const word = this.word(Number(text.tokens.at(-1)));
    return isSpecial(word) ? tokenPhrase(word) : label(withoutSpace(word), MAX_NODE_LENGTH);
  }

  /** @param {Hypothesis} text @param {number} step @param {number} rank */
  makeNode(text, step, rank) {
    const [column, chosenRank] = this.chosen;
    const classes = joinPresent(["node", this.ranks[step] === rank && "on", step < this.forced && "forced"]);
    const current = step === column && rank === chosenRank;
    const words = [
      h("span", { dir: "auto" }, this.wordOf(text)),
      h("small", {}, formatFixed(scoreOf(text, this.lengthPenalty), 2)),
    ];
    const node = button(words, null, {
      class: classes,
      "aria-pressed": String(current),
      tabIndex: current ? 0 : -1,
      "data-node": `${step} ${rank}`,
    });
    Object.assign(node.style, {
      left: `${this.lefts[step]}px`,
      top: `${rank * STEP_HEIGHT + 2}px`,
      width: `${this.widths[step]}px`,
    });
    return node;
  }

  /** @param {number} step @param {number} rank @returns {HTMLElement | null} */
  nodeAt(step, rank) {
    return this.nodes.querySelector(`[data-node="${step} ${rank}"]`);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!target.dataset.node) return;
    const [step, rank] = stepAndRank(target);
    const { columns } = this;
    const children = [...(columns[step + 1]?.keys() ?? [])].filter(
      (at) => columns[step + 1][at].parent === rank && !columns[step + 1][at].endedBefore,
    );
    /** @type {Record<string, () => (number | undefined)[]>} */
    const nodesByKey = {
      ArrowLeft: () => [step - 1, columns[step][rank].parent],
      ArrowRight: () => [step + 1, children[0]],
      ArrowUp: () => [step, rank - 1],
      ArrowDown: () => [step, rank + 1],
      Home: () => [0, this.ranks[0]],
      End: () => [this.chosen[0], this.chosen[1]],
    };
    const next = nodesByKey[event.key]?.();
    if (!next) return;
    const node = this.nodeAt(Number(next[0]), Number(next[1]));
    node?.focus();
    node?.scrollIntoView({ block: "nearest", inline: "nearest" });
    consume(event);
  }

  /**
   * Draw lines from text to text; the words too, where there are no buttons.
   * @param {Pen} pen
   * @param {boolean} [words]
   */
  draw(pen, words = true) {
    const { theme } = this;
    /** @param {number} rank */
    const middle = (rank) => rank * STEP_HEIGHT + 2 + NODE_SIZE.height / 2;
    pen.dot(ROOT_LEFT, middle(0), 3.5, { fill: theme.ink });
    this.columns.forEach((column, step) =>
      column.forEach((text, rank) => {
        const on = this.ranks[step] === rank;
        const from = step ? this.lefts[step - 1] + this.widths[step - 1] : ROOT_LEFT;
        const to = this.lefts[step] + (text.endedBefore ? this.widths[step] : 0);
        const style = {
          stroke: on ? theme.ink : theme.soft,
          lineWidth: on ? 2 : 1,
          alpha: text.endedBefore ? 0.35 : 1,
        };
        pen.line(from, middle(text.parent), text.endedBefore ? this.lefts[step] : to, middle(rank), {
          ...style,
          bend: 0.5,
        });
        if (text.endedBefore) pen.line(this.lefts[step], middle(rank), to, middle(rank), style);
        if (!words || text.endedBefore) return;
        const x = this.lefts[step] + this.widths[step] / 2;
        pen.text(x, middle(rank) - 6, this.wordOf(text), {
          fill: on ? theme.ink : theme.soft,
          size: 13,
          align: "center",
          bold: on,
        });
        pen.text(x, middle(rank) + 10, formatFixed(scoreOf(text, this.lengthPenalty), 2), {
          fill: theme.soft,
          size: 12,
          align: "center",
        });
      }),
    );
  }
}

/** @param {HTMLElement} node @returns {number[]} */
const stepAndRank = (node) => (node.dataset.node ?? "0 0").split(" ").map(Number);

// A component that shows a text as words, shaded by the attention weights from or to one of them.

import { h } from "../base/elements.js";
import { consume, hasModifier } from "../base/events.js";
import { FORBIDDEN, SCALES } from "../base/grid.js";
import { clamp, formatCount, formatNumber } from "../base/numbers.js";
import { quoted, visibleText } from "../base/visible-text.js";

/** @import { AnyGrid, Handlers, Pen, Side } from "../types.js" */
/** @type {Record<string, number>} */
const WORD_STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity };
/** @typedef {{ element: HTMLElement, spans: HTMLElement[] }} Sentence a paragraph and the elements of its words */
/**
 * @typedef {object} WordChoice
 * @property {(index: number) => void} choose what a click or a key does; with keys an index may lie beyond the ends of the list
 * @property {boolean} [hover] whether a word is also chosen where the pointer is
 * @property {() => void} [leave] what Escape does
 */

const NO_SENTENCE = () => ({ element: document.createElement("p"), spans: [] });
const MAX_WORDS = 1200; // on the page at once

/** An element with the words of one or both sides of a map, in which a word can be chosen. */
export class ShadedWords {
  /** @type {AnyGrid | null} */
  grid = null;
  /** The index of the word whose weights are shown. */
  at = 0;
  by = false;
  /** @type {Record<Side, number>} the first word of each side that is on the page */
  start = { rows: 0, columns: 0 };
  /** @type {Sentence} whose words are chosen */
  choosable = NO_SENTENCE();
  /** @type {Sentence} whose words are shaded */
  shaded = this.choosable;
  /** @type {[string, boolean, boolean] | null} */
  key = null;

  /** @param {import("../base/theme.js").Theme} theme @param {Pick<Handlers, "lock" | "leave">} handlers */
  constructor(theme, handlers) {
    this.theme = theme;
    this.handlers = handlers;
    this.element = h("div", { class: "words" });
  }

  /**
   * Show a grid's weights for a word. `by`: whether to show the weights to the chosen key rather than from the chosen query.
   * @param {AnyGrid} grid
   * @param {number} chosen
   * @param {boolean} by
   */
  show(grid, chosen, by) {
    const same = grid.rows.length === grid.columns.length && grid.rows.every((word, i) => word === grid.columns[i]);
    /** @type {[string, boolean, boolean]} */
    const key = [JSON.stringify([grid.rows, grid.columns]), same, by];
    if (String(key) !== String(this.key)) this.build(grid, same, by, chosen);
    this.key = key;
    const side = by ? "columns" : "rows";
    const count = grid[side].length;
    const at = Math.min(chosen, count - 1);
    if (at < this.start[side] || at >= this.start[side] + MAX_WORDS)
      return void ((this.key = null), this.show(grid, at, by));
    this.grid = grid;
    this.at = at;
    this.by = by;
    const { toFraction } = SCALES[grid.scale];
    this.shaded.spans.forEach((span, i) => {
      const j = i + this.start[by ? "rows" : "columns"];
      const [row, col] = by ? [j, at] : [at, j];
      const value = grid.at(row, col);
      const code = Math.round(255 * clamp(toFraction(value), 0, 1));
      span.style.background = this.theme.colour(grid, code);
      span.style.color = code > 140 ? this.theme.page : this.theme.ink;
      span.classList.toggle("hidden", grid.stateAt(row, col) === FORBIDDEN);
      span.title = grid.stateAt(row, col) === FORBIDDEN ? "may not look" : formatNumber(value);
    });
    this.choosable.spans.forEach((span, i) => {
      const picked = i + this.start[side] === at;
      span.classList.toggle("picked", picked);
      span.setAttribute("aria-selected", String(picked));
      span.tabIndex = picked ? 0 : -1;
    });
    return undefined;
  }

  reading() {
    const { grid, at, by } = this;
    if (!grid) return "";
    /** @param {string[]} words @param {number} i */
    const name = (words, i) => quoted(words[i]);
    const [pickedWords, other] = by ? [grid.columns, grid.rows] : [grid.rows, grid.columns];
    const top = grid
      .strongestPairs(at, by ? "col" : "row", 3)
      .map(([i, value]) => `${name(other, i)} ${formatNumber(value)}`);
    return `${name(pickedWords, at)} ${by ? "←" : "→"} ${top.join(", ") || "nothing"}`;
  }

  /**
   * @param {AnyGrid} grid
   * @param {boolean} same whether both sides are the same sentence
   * @param {boolean} by
   * @param {number} chosen
   */
  build(grid, same, by, chosen) {
    /** @param {string[]} words */
    const begin = (words) =>
      words.length <= MAX_WORDS ? 0 : clamp(chosen - MAX_WORDS / 2, 0, words.length - MAX_WORDS);
    this.start = { rows: begin(grid.rows), columns: begin(grid.columns) };
    /** @type {Side[]} */
    const [pick, other] = by ? ["columns", "rows"] : ["rows", "columns"];
    const [picks, shaded] = by ? ["choose a key", "queries"] : ["choose a query", "keys"];
    this.choosable = this.sentence(grid, pick, same ? "the sentence: choose a word" : picks, {
      choose: (index) => this.handlers.lock(pick, clamp(index + this.start[pick], 0, grid[pick].length - 1)),
      leave: this.handlers.leave,
    });
    this.shaded = same ? this.choosable : this.sentence(grid, other, shaded);
    this.element.replaceChildren(...new Set([this.choosable.element, this.shaded.element]));
  }

  /** @param {AnyGrid} grid @param {Side} side @param {string} name @param {WordChoice} [choice] @returns {Sentence} */
  sentence(grid, side, name, choice) {
    const start = this.start[side];
    const words = grid[side].slice(start, start + MAX_WORDS);
    const left = grid[side].length - start - words.length;
    const sentence = wordList(words, name, choice);
    if (start) sentence.element.prepend(`… ${formatCount(start, "word")} before … `);
    if (left) sentence.element.append(` … ${formatCount(left, "word")} more`);
    return sentence;
  }

  /** Draw the words with a pen, at their positions in the browser's layout. @param {Pen} pen */
  draw(pen) {
    drawTokens(pen, this.element, this.theme);
  }
}

/**
 * Make a list of words that reads as running text where the words carry their own spaces.
 * @param {string[]} words
 * @param {string} name of the list
 * @param {WordChoice} [choice] if words can be chosen
 * @returns {Sentence}
 */
export function wordList(words, name, choice) {
  const loose = !words.some((word) => /^[\s▁Ġ]/.test(word)) && words.some((word) => [...word].length > 1);
  const spans = words.map((word) => h("span", { role: "option", class: "word" }, runningText(word)));
  const element = h("p", {
    class: loose ? "sentence loose" : "sentence",
    role: "listbox",
    "aria-label": name,
    dir: "auto",
  });
  const gap = () => (loose ? " " : h("wbr"));
  words.forEach((word, i) => element.append(spans[i], word.endsWith("\n") ? h("br") : gap()));
  if (choice) listenToWords(element, spans, choice);
  return { element, spans };
}

/** @param {HTMLElement} element @param {HTMLElement[]} spans @param {WordChoice} choice */
function listenToWords(element, spans, { choose, hover, leave }) {
  element.onclick = ({ target }) => {
    const index = spans.indexOf(/** @type {HTMLElement} */ (target));
    if (index >= 0) choose(index);
  };
  if (hover) element.onpointerover = element.onclick;
  element.onkeydown = (event) => {
    const step = WORD_STEPS[event.key];
    if (event.key === "Escape" && leave) leave();
    else if (!step || hasModifier(event)) return;
    else {
      const index = spans.findIndex(({ tabIndex }) => !tabIndex) + step; // the chosen word is the only tab stop
      choose(index);
      spans[clamp(index, 0, spans.length - 1)].focus();
    }
    consume(event);
  };
}

/**
 * Draw the words inside an element with a pen, each piece of text where the browser has put it.
 * @param {Pen} pen
 * @param {HTMLElement} element
 * @param {import("../base/theme.js").Theme} theme
 */
export function drawTokens(pen, element, theme) {
  const box = element.getBoundingClientRect();
  for (const span of /** @type {NodeListOf<HTMLElement>} */ (element.querySelectorAll(".word"))) {
    for (const { left, top, width, height } of span.getClientRects()) {
      const shaded = span.style.background;
      const [x, y] = [left - box.left, top - box.top];
      if (span.classList.contains("hidden")) pen.rect(x, y, width, height, { fill: theme.line, alpha: 0.4 });
      else if (shaded) pen.rect(x, y, width, height, { fill: shaded });
      if (span.classList.contains("picked")) pen.rect(x, y, width, height, { stroke: theme.ink, lineWidth: 2 });
    }
    const [first] = span.getClientRects();
    if (first)
      pen.text(first.left - box.left + 2, first.top - box.top + first.height / 2, span.textContent ?? "", {
        size: 15,
        fill: span.style.color || theme.ink,
      });
  }
}

/**
 * Write a token within running text: spaces stay spaces, invisible characters get a sign, a WordPiece loses its mark.
 * @param {string} word
 */
function runningText(word) {
  const text = word.replace(/^[Ġ▁]/, " ").replace(/^##/, "");
  return text === "" ? "∅" : visibleText(text);
}

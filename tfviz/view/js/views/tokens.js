// A view of a running text, each token shaded by its number.

import { h } from "../base/elements.js";
import { Grid } from "../base/grid.js";
import { clamp, formatNumber } from "../base/numbers.js";
import { CanvasPen } from "../base/pen.js";
import { quoted } from "../base/visible-text.js";
import { Frame } from "../controls/frame.js";
import { table } from "../controls/table.js";
import { legend } from "./legend.js";
import { drawTokens, wordList } from "./shaded-words.js";

/** @import { TokensDocument, TokensState } from "../documents.js" */
/** @import { Choices, Drawing, ViewOptions } from "../types.js" */

const TOKEN_SHORTCUTS = [["arrows", "go to the next token"]];
const LEGEND_SIZE = { width: 90, height: 130 };

export class Tokens {
  /**
   * @param {HTMLElement} host
   * @param {import("../base/page-data.js").PageData<TokensDocument>} source
   * @param {Choices<TokensState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    const { tokens, data, scale, limit, unit } = source.viewDocument;
    this.store = store;
    this.tokens = tokens;
    this.unit = unit;
    const values = source.numbers(data);
    this.grid = Grid.of([unit || "number"], tokens, values, new Uint8Array(values.length), { scale, limit });
    this.frame = new Frame(host, source.viewDocument, store, {
      ...options,
      shortcuts: TOKEN_SHORTCUTS,
      grids: () => [{ name: "", grid: this.grid }],
      drawing: () => this.drawing,
      tables: () => [table({ name: "", grid: this.grid, axes: ["", "token"] })],
      redraw: () => this.refresh(),
    });
    const { element, spans } = wordList(tokens, "tokens", {
      choose: (index) => store.set({ token: clamp(index, 0, tokens.length - 1) }),
      hover: true,
    });
    this.spans = spans;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.stage = h("div", { class: "stage tokens" }, element, this.canvas);
    this.close = this.frame.open();
  }

  refresh() {
    const { theme } = this.frame;
    const token = this.store.get("token");
    this.spans.forEach((span, i) => {
      const { background, ink } = theme.shadeOfText(this.grid, this.grid.codes[i]);
      span.style.background = background;
      span.style.color = ink;
      span.title = formatNumber(this.grid.at(0, i));
      span.classList.toggle("picked", i === token);
      span.setAttribute("aria-selected", String(i === token));
      span.tabIndex = i === token ? 0 : -1;
    });
    legend(
      new CanvasPen(this.canvas, LEGEND_SIZE.width, LEGEND_SIZE.height),
      theme,
      this.grid,
      2,
      8,
      LEGEND_SIZE.height - 16,
    );
    this.frame.showStage(this.stage, "");
    this.frame.announce(
      `${quoted(this.tokens[token])} ${formatNumber(this.grid.at(0, token))}${this.unit && ` ${this.unit}`}`,
    );
    this.frame.updateTable();
  }

  /** @returns {Drawing} */
  get drawing() {
    const { width, height } = this.stage.getBoundingClientRect();
    return { width, height, draw: (pen) => drawTokens(pen, this.stage, this.frame.theme) };
  }
}

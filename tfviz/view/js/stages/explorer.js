// A view of heads: the reader's choices in, one of four ways to look out.

import { formatted } from "../base/numbers.js";
import { Choice } from "../controls/choice.js";
import { Controls, MODES } from "../controls/controls.js";
import { Frame } from "../controls/frame.js";
import { linear } from "../base/grid.js";
import { HeadStage } from "./head-stage.js";
import { ImageStage } from "./image-overlay.js";
import { spreadAll } from "../base/patch-grid.js";
import { describeCell, describeLocked } from "./aria-text.js";
import { sharpness } from "./sheet.js";
import { LinesStage, SheetStage, WordsStage } from "./head-modes.js";
import { headTable, table } from "../controls/table.js";
import { TiledGrid } from "../base/tiled-grid.js";

/**
 * @typedef {import("./head-stage.js").StageHandlers & {
 *   open(layer: number, head: number): void,
 *   mark(layer: number, head: number): void,
 * }} Handlers
 */
/** @import { HeadMode, HeadsState } from "../documents.d.ts" */
/** @import { Grid } from "../base/grid.js" */
/** @import { HeadMaps } from "../controls/choice.js" */
/** @import { AnyGrid, Choices, GridPanel, Point, Side, ViewOptions } from "../types.d.ts" */

/** @type {Record<string, number>} */
const HEAD_STEPS = { "[": -1, "]": 1 };
/** @type {Record<string, number>} */
const LAYER_STEPS = { PageUp: -1, PageDown: 1 };
const OFTEN = 120; // milliseconds between two drawings of a sheet whose heads still arrive

export class Explorer {
  /** @type {Map<number, Map<string, AnyGrid>>} by part, then by "layer.head": those that have arrived */
  grids = new Map();
  turn = 0;
  /** @type {GridPanel[] | null} what stands side by side; null on the sheet */
  panels = null;
  /** @type {HeadMode | null} the mode that the keyboard goes along to */
  focusMode = null;

  /**
   * @param {HTMLElement} host
   * @param {HeadMaps} source
   * @param {Choices<HeadsState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    this.source = source;
    this.store = store;
    this.choice = new Choice(source, store);
    this.frame = new Frame(host, source.document, store, {
      ...options,
      keys: source.document.picture ? [...HEAD_KEYS, ...PICTURE_KEYS] : HEAD_KEYS,
      grids: () => this.exactPanels,
      drawing: () => this.stage.drawing,
      tables: () => this.tables(),
      redraw: () => this.refresh(),
    });
    this.stages = this.build(source.document);
    this.controls = new Controls(this.choice, store, this.frame.theme);
    this.frame.body.append(this.controls.element);
    this.frame.zoom((factor) => this.stages.head.zoom(factor));
    this.frame.body.onkeydown = (event) => this.key(event);
    this.close = this.frame.open();
  }

  /** Show the new maps of the source. */
  renew() {
    this.grids.clear();
    return this.refresh();
  }

  /** @param {HeadMaps["document"]} document */
  build({ axes, head_names: names, picture }) {
    const { theme } = this.frame;
    /** @type {Handlers} */
    const handlers = {
      lock: (side, index) => this.frame.lock(side, index),
      leave: () => this.leave(),
      announce: (text) => this.frame.announce(text),
      reading: (grid, cell, name) => this.reading(grid, cell, name),
      open: (layer, head) => this.open(layer, head),
      mark: (layer, head) => this.controls.toggle(head, layer),
    };
    return {
      sheet: new SheetStage(theme, handlers, names, (row) => this.store.set({ rows: [row] })),
      head: new HeadStage(theme, handlers, { axes, numbers: true }),
      lines: new LinesStage(theme, handlers, axes),
      words: new WordsStage(theme, {
        ...handlers,
        lock: (/** @type {Side} */ side, /** @type {number} */ index) => this.store.set({ [side]: [index] }),
      }),
      picture: picture
        ? new ImageStage(theme, { ...handlers, choose: (side, index) => this.choose(side, index) }, picture)
        : null,
    };
  }

  get mode() {
    const mode = this.store.get("mode");
    const { sheet } = this.choice;
    if (this.stages[mode] && (mode !== "sheet" || sheet)) return mode;
    return sheet ? "sheet" : "head";
  }

  get stage() {
    return this.stages[this.mode] ?? this.stages.sheet;
  }

  /**
   * Switch to another mode, and move the focus there.
   * @param {HeadMode} mode
   * @param {Partial<HeadsState>} [more]
   */
  go(mode, more = {}) {
    this.focusMode = mode;
    this.store.set({ mode, ...more });
  }

  /** @param {number} layer @param {number} head */
  open(layer, head) {
    const marked = this.store.get("marked");
    const isMarked = marked.length > 1 && marked.some(([l, h]) => l === layer && h === head);
    this.go("head", { layer, head, marked: isMarked ? marked : [] });
  }

  /**
   * Choose the token whose weights the picture shows.
   * @param {Side} side
   * @param {number} index
   */
  choose(side, index) {
    this.store.set({ direction: side === "rows" ? "at" : "by", [side]: [index] });
  }

  leave() {
    if (this.mode === "picture") this.go(this.choice.alone ? "head" : "sheet");
    else if (this.store.get("rows").length || this.store.get("cols").length) this.store.set({ rows: [], cols: [] });
    else if (!this.choice.alone && this.choice.sheet) this.go("sheet");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (/** @type {Element} */ (event.target).matches("input, select")) return;
    const { layers, heads } = this.choice.shape;
    /** @param {"layer" | "head"} name @param {number} step @param {number} count */
    const turn = (name, step, count) => ({ [name]: (this.store.get(name) + step + count) % count, marked: [] });
    const head = HEAD_STEPS[event.key];
    const layer = LAYER_STEPS[event.key];
    const mode = MODES[Number(event.key) - 1]?.[0];
    if (head) this.store.set(turn("head", head, heads));
    else if (layer) this.store.set(turn("layer", layer, layers));
    else if (
      mode &&
      this.stages[mode] &&
      mode !== this.mode &&
      !(mode === "sheet" && (this.choice.alone || !this.choice.sheet))
    )
      this.go(mode);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {AnyGrid} grid @param {Point} cell @param {string} [name] */
  reading(grid, cell, name = "") {
    return describeCell(grid, cell, name, Boolean(this.choice.part.top));
  }

  async refresh() {
    const turn = ++this.turn;
    this.controls.show();
    try {
      await this.show(turn, false);
      if (this.mode !== "sheet" && this.choice.partly && turn === this.turn) {
        this.frame.busy(true);
        await this.show(turn, true);
        this.frame.busy(false);
      }
    } catch (error) {
      this.frame.failed(/** @type {Error} */ (error));
    }
    if (turn !== this.turn) return;
    if (this.focusMode === this.mode) focusStage(this.stage.element);
    this.focusMode = null;
    this.frame.renewTable();
  }

  /**
   * Show the stage of a turn. The last turn wins: what arrives for an earlier one is dropped.
   * @param {number} turn
   * @param {boolean} full whether heads have to have all cells
   */
  async show(turn, full) {
    const { mode, choice, frame } = this;
    if (mode === "sheet") return this.sheet(turn);
    const sideBySide = mode === "head" || mode === "picture";
    const panels = sideBySide ? await choice.panels(full) : await choice.single(full);
    const separate = mode === "lines" ? await choice.resolveGrids(choice.at, false, full) : [];
    if (turn !== this.turn) return undefined;
    this.panels = panels;
    frame.stage(this.stage.element, choice.caption(mode));
    frame.buttons.hidden = mode !== "head";
    if (mode === "head") return this.head(panels);
    if (mode === "picture") return this.picture(panels);
    return mode === "lines" ? this.lines(separate) : this.words(panels[0].grid);
  }

  /** @param {GridPanel[]} panels */
  async head(panels) {
    const within = this.choice.within(panels[0].grid);
    await Promise.all(
      panels.flatMap(({ grid }) => (grid instanceof TiledGrid ? within.rows.map((i) => grid.row(i)) : [])),
    );
    if (this.panels !== panels) return;
    const linearPanels = panels.map((panel) => ({ ...panel, grid: linear(panel.grid) }));
    const { gold = [], dividers = [] } = this.source.document;
    this.stages.head.show(
      linearPanels,
      { ...within, outlined: gold, dividers: linearPanels.map(() => dividers) },
      this.frame.width,
    );
    if (within.rows.length || within.cols.length) this.frame.announce(describeLocked(panels[0].grid, within));
  }

  /** @param {GridPanel[]} panels */
  async picture(panels) {
    const { token } = this.choice;
    if (token.side === "rows")
      await Promise.all(panels.map(({ grid }) => grid instanceof TiledGrid && grid.row(token.index)));
    const { picture } = this.stages;
    if (!picture) return;
    const isCurrent = () => this.panels === panels && this.mode === "picture";
    if (isCurrent()) await picture.show(panels, this.choice.part, token, this.frame.width, isCurrent);
    if (isCurrent() && this.choice.alone) this.frame.stage(picture.element, picture.question);
  }

  /** @param {AnyGrid[]} separate */
  lines(separate) {
    const { heads } = this.choice;
    const headLines = separate.map((grid, i) => {
      const [layer, head] = heads[i];
      return { grid, ink: this.choice.ink(layer, head), name: `${layer}.${head}` };
    });
    const limits = { least: this.store.get("least"), most: this.store.get("most") };
    this.stages.lines.show(headLines, { ...this.choice.within(separate[0]), ...limits }, this.frame.width);
  }

  /** @param {AnyGrid} grid */
  words(grid) {
    const by = this.store.get("direction") === "by";
    const last = this.choice.within(grid).cols.at(-1);
    this.stages.words.show(grid, by ? (last ?? 0) : this.choice.row(grid), by);
  }

  /** Show the sheet. Heads appear as they arrive; it is drawn a few times on the way. @param {number} turn */
  async sheet(turn) {
    const { choice, frame } = this;
    const { at } = choice;
    const part = { ...choice.part, ...choice.shape, ...(choice.arrange === "steps" ? choice.largest : {}) };
    /** @type {Map<string, AnyGrid>} */
    const grids = this.grids.get(at) ?? new Map();
    this.grids.set(at, grids);
    const show = () => {
      const [chosen] = choice.heads;
      const onto = choice.pictured && spreadAll(grids, part, choice.token);
      const grid = grids.get(chosen.join("."));
      // the text stands above maps of tokens whose weights are there in full
      const row = onto || !grid || grid instanceof TiledGrid || grid.block > 1 ? null : choice.row(grid);
      this.stages.sheet.show({ part, grids, chosen, marked: this.store.get("marked"), row, ...onto }, frame.width);
    };
    frame.stage(this.stage.element, choice.caption("sheet"));
    frame.buttons.hidden = true;
    this.panels = null;
    for (let i = 0, lastDraw = performance.now(); i < part.layers * part.heads; i++) {
      const [layer, head] = [Math.floor(i / part.heads), i % part.heads];
      const key = `${layer}.${head}`;
      if (!grids.has(key)) grids.set(key, await choice.grid(at, layer, head, false));
      if (turn !== this.turn) return;
      if (performance.now() - lastDraw < OFTEN) continue;
      show();
      lastDraw = performance.now();
    }
    show();
  }

  /**
   * The panels whose numbers can be exported: of a head that is too large to be held, the rows that were loaded.
   * @returns {GridPanel<Grid>[] | null}
   */
  get exactPanels() {
    if (this.mode === "picture") return this.stages.picture?.numbers ?? [];
    const exact = (/** @type {AnyGrid} */ grid) => (grid instanceof TiledGrid ? grid.exact : grid);
    return this.panels?.map((panel) => ({ ...panel, grid: exact(panel.grid) })) ?? null;
  }

  tables() {
    if (this.mode !== "sheet") return (this.exactPanels ?? []).map(table);
    const grids = this.grids.get(this.choice.at);
    /** @param {number} layer @param {number} head */
    const value = (layer, head) => {
      const grid = grids?.get(`${layer}.${head}`);
      return grid ? formatted(sharpness(grid)) : "…";
    };
    return [headTable(this.choice.shape, value)];
  }
}

/** Focus the drawing of a stage, or what the keyboard reaches first in one without. @param {Element} element */
function focusStage(element) {
  const target = element.querySelector("canvas[tabindex='0']") ?? element.querySelector("[tabindex='0']");
  /** @type {HTMLElement | null} */ (target)?.focus();
}

const HEAD_KEYS = [
  ["1 2 3 4", "all heads, one head, lines, words"],
  ["arrows", "move (with Shift by ten)"],
  ["Enter", "open a head; lock a row"],
  ["Space, C", "lock a row, a column; mark a head"],
  ["[ ]", "head before, after"],
  ["PageUp, PageDown", "layer before, after"],
  ["+ − 0", "closer, farther, all"],
  ["Esc", "unlock; back to all heads"],
];
const PICTURE_KEYS = [
  ["5", "on the picture"],
  ["P", "the picture alone, or with weights"],
];

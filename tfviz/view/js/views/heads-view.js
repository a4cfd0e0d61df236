// A view of attention heads, in one of several modes: all heads, one head as a heatmap, lines, words, or on a picture.

import { consume } from "../base/events.js";
import { LOCKS, NO_LOCKS } from "../base/locks.js";
import { clamp, formatNumber } from "../base/numbers.js";
import { HeadSelection } from "../controls/head-selection.js";
import { HeadControls, MODES } from "../controls/head-controls.js";
import { Frame } from "../controls/frame.js";
import { Grid, linear } from "../base/grid.js";
import { LatestRequest } from "../base/latest-request.js";
import { throttle } from "../base/throttle.js";
import { tokenPhrase } from "../base/token-names.js";
import { HeadKinds } from "./head-kinds.js";
import { isAttention, sharpestQuery, strongestQuerySentence } from "./head-summary.js";
import { HeadStage } from "./head-stage.js";
import { ImageStage } from "./image-stage.js";
import { spreadAll } from "../base/patch-grid.js";
import { describeCell, describeLocked } from "./aria-text.js";
import { sharpness } from "./sheet.js";
import { LinksStage, WordsStage } from "./head-modes.js";
import { drawRowBars } from "./row-bars.js";
import { SheetStage } from "./sheet-stage.js";
import { h } from "../base/elements.js";
import { headTable, table } from "../controls/table.js";
import { TiledGrid } from "../base/tiled-grid.js";

/**
 * @typedef {import("./head-stage.js").StageHandlers & {
 *   open(layer: number, head: number): void,
 *   mark(layer: number, head: number): void,
 * }} Handlers
 */
/** @import { Divider, HeadMode, HeadsState } from "../documents.js" */
/** @import { HeadMaps } from "../controls/head-selection.js" */
/** @import { AnyGrid, Choices, GridPanel, Point, Side, ViewOptions } from "../types.js" */

/** @type {Record<string, number>} */
const HEAD_STEPS = { "[": -1, "]": 1 };
/** @type {Record<string, number>} */
const LAYER_STEPS = { PageUp: -1, PageDown: 1 };
const DRAW_INTERVAL = 120; // milliseconds between two drawings of a sheet while its heads arrive

const HINTS = ["Point at a map, a token or a cell to read it; click a head to open it.", "Point at a cell to read it."];
const TOUCH_HINTS = ["Tap a token to read it, or a head to open it.", "Tap a cell to read it."];
const MAP = { maxNumberedCell: 52, flatNames: true };
const [MIN_MAP_HEIGHT, MAX_MAP_HEIGHT, HEIGHT_AROUND_MAP] = [360, 660, 260]; // pixels: one head fits into the window with what stands above it
const LARGE_MAP = { maxCell: 56, maxNumberedCell: 64, flatNames: true }; // pixels of a cell of the only map

/** A view of heads that shows the reader's choices in the current mode. */
export class HeadsView {
  /** @type {Map<number, Map<string, AnyGrid>>} by part, then by "layer.head": those that have arrived */
  grids = new Map();
  requests = new LatestRequest();
  /** @type {Frame} */
  frame;
  /** @type {GridPanel[] | null} the panels side by side; null on the sheet */
  panels = null;
  /** @type {HeadMode | null} the mode whose stage will get the keyboard focus */
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
    this.selection = new HeadSelection(source, store);
    this.frame = new Frame(host, source.viewDocument, store, {
      ...options,
      shortcuts: source.viewDocument.image ? [...HEAD_SHORTCUTS, ...PICTURE_SHORTCUTS] : HEAD_SHORTCUTS,
      grids: () => this.exactPanels,
      drawing: () => this.stage.drawing,
      tables: () => this.tables(),
      redraw: () => this.refresh(),
    });
    this.large = Boolean(options.large);
    this.frame.body.classList.toggle("inner", this.large);
    this.stages = this.makeStages(source.viewDocument);
    this.controls = new HeadControls(this.selection, store, this.frame.theme);
    this.kinds = new HeadKinds((layer, head) => this.store.set({ layer, head, selected_heads: [] }));
    this.controls.element.append(this.kinds.element);
    this.finding = h("p", { class: "finding", hidden: true });
    this.frame.body.append(this.controls.element, this.finding);
    this.frame.enableZoom((factor) => this.stages.head.zoom(factor));
    this.frame.body.onkeydown = (event) => this.press(event);
    this.close = this.frame.open();
    const hints = matchMedia("(hover: none)").matches ? TOUCH_HINTS : HINTS;
    this.frame.status.dataset.hint = hints[Number(this.selection.hasOneHead)];
  }

  /** Show the new maps of the source. */
  update() {
    this.grids.clear();
    return this.refresh();
  }

  /** @param {HeadMaps["viewDocument"]} viewDocument */
  makeStages({ axes, head_names: names, image, unit }) {
    const { theme } = this.frame;
    /** @type {Handlers} */
    const handlers = {
      lock: (side, index) => this.frame.lock(side, index),
      leave: () => this.leave(),
      announce: (text) => this.frame.announce(text),
      reading: (grid, cell, name) => this.reading(grid, cell, name),
      open: (layer, head) => this.openHead(layer, head),
      mark: (layer, head) => this.controls.toggle(head, layer),
    };
    return {
      sheet: new SheetStage(theme, handlers, { names, axes, unit }, (row) => this.store.set({ locked_rows: [row] })),
      head: new HeadStage(
        theme,
        { ...handlers, describe: (query) => this.describeQuery(query) },
        { axes, numbers: true, maxHeight: mapHeight(), drawList: drawRowBars, ...(this.large ? LARGE_MAP : MAP) },
      ),
      links: new LinksStage(theme, handlers, axes),
      words: new WordsStage(theme, {
        ...handlers,
        lock: (/** @type {Side} */ side, /** @type {number} */ index) => this.store.set({ [LOCKS[side]]: [index] }),
      }),
      picture: image
        ? new ImageStage(theme, { ...handlers, choose: (side, index) => this.chooseToken(side, index) }, image)
        : null,
    };
  }

  get mode() {
    const mode = this.store.get("mode");
    const { hasSheet } = this.selection;
    if (this.stages[mode] && (mode !== "sheet" || hasSheet)) return mode;
    return hasSheet ? "sheet" : "head";
  }

  get stage() {
    return this.stages[this.mode] ?? this.stages.sheet;
  }

  /**
   * Switch to another mode, and move the focus there.
   * @param {HeadMode} mode
   * @param {Partial<HeadsState>} [more]
   */
  switchMode(mode, more = {}) {
    this.focusMode = mode;
    this.store.set({ mode, ...more });
  }

  /** @param {number} layer @param {number} head */
  openHead(layer, head) {
    const selected = this.store.get("selected_heads");
    const isSelected = selected.length > 1 && selected.some(([l, h]) => l === layer && h === head);
    this.switchMode("head", { layer, head, selected_heads: isSelected ? selected : [] });
  }

  /**
   * Choose the token whose weights the picture shows.
   * @param {Side} side
   * @param {number} index
   */
  chooseToken(side, index) {
    this.store.set({ direction: side === "rows" ? "from" : "to", [LOCKS[side]]: [index] });
  }

  leave() {
    if (this.mode === "picture") this.switchMode(this.selection.hasOneHead ? "head" : "sheet");
    else if (Object.values(LOCKS).some((name) => this.store.get(name).length)) this.store.set(NO_LOCKS);
    else if (!this.selection.hasOneHead && this.selection.hasSheet) this.switchMode("sheet");
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (/** @type {Element} */ (event.target).matches("input, select")) return;
    const { layers, heads } = this.selection.shape;
    /** @param {"layer" | "head"} name @param {number} step @param {number} count */
    const turn = (name, step, count) => ({ [name]: (this.store.get(name) + step + count) % count, selected_heads: [] });
    const head = HEAD_STEPS[event.key];
    const layer = LAYER_STEPS[event.key];
    const mode = MODES[Number(event.key) - 1]?.[0];
    if (head) this.store.set(turn("head", head, heads));
    else if (layer) this.store.set(turn("layer", layer, layers));
    else if (
      mode &&
      this.stages[mode] &&
      mode !== this.mode &&
      !(mode === "sheet" && (this.selection.hasOneHead || !this.selection.hasSheet))
    )
      this.switchMode(mode);
    else return;
    consume(event);
  }

  /** @param {AnyGrid} grid @param {Point} cell @param {string} [name] */
  reading(grid, cell, name = "") {
    return describeCell(grid, cell, name, Boolean(this.selection.part.top));
  }

  async refresh() {
    const isCurrent = this.requests.begin();
    this.controls.show();
    if (this.mode !== "sheet") this.kinds.element.hidden = true;
    try {
      await this.show(isCurrent, false);
      if (this.mode !== "sheet" && this.selection.isPartial && isCurrent()) {
        this.frame.showLoading(true);
        await this.show(isCurrent, true);
        this.frame.showLoading(false);
      }
    } catch (error) {
      this.frame.showError(/** @type {Error} */ (error));
    }
    if (!isCurrent()) return;
    if (this.focusMode === this.mode) focusStage(this.stage.element);
    this.focusMode = null;
    this.frame.updateTable();
  }

  /**
   * Show the stage, unless another state is requested meanwhile.
   * @param {() => boolean} isCurrent
   * @param {boolean} full whether heads have to have all cells
   */
  async show(isCurrent, full) {
    const { mode, selection, frame } = this;
    if (mode === "sheet") return this.showSheet(isCurrent);
    const sideBySide = mode === "head" || mode === "picture";
    const panels = sideBySide ? await selection.panels(full) : await selection.singlePanel(full);
    const separate = mode === "links" ? await selection.resolveGrids(selection.partIndex, false, full) : [];
    if (!isCurrent()) return undefined;
    this.panels = panels;
    frame.showStage(this.stage.element, selection.caption(mode));
    frame.zoomGroup.hidden = mode !== "head";
    this.finding.hidden = true;
    if (mode === "head") return this.showHead(panels, isCurrent);
    if (mode === "picture") return this.showPicture(panels, isCurrent);
    return mode === "links" ? this.showLinks(separate) : this.showWords(panels[0].grid);
  }

  /** @param {GridPanel[]} panels @param {() => boolean} isCurrent */
  async showHead(panels, isCurrent) {
    const within = this.selection.lockedIn(panels[0].grid);
    await Promise.all(
      panels.flatMap(({ grid }) => (grid instanceof TiledGrid ? within.rows.map((i) => grid.row(i)) : [])),
    );
    if (!isCurrent()) return;
    const linearPanels = panels.map((panel) => ({ ...panel, grid: linear(panel.grid) }));
    const { outlined = [], dividers = [] } = this.source.viewDocument;
    const { current } = this.source;
    const query = this.queryToDescribe(
      panels,
      within.rows.at(-1) ?? current ?? outlined[0]?.[0] ?? rowBetween(dividers),
    );
    this.stages.head.show(
      linearPanels,
      { ...within, current, outlined, dividers: linearPanels.map(() => dividers), query },
      this.frame.width,
    );
    this.frame.zoomGroup.hidden = this.stages.head.panels.every(({ map }) => map.numbered && !map.zoomed);
    if (query !== null) this.describeQuery(query);
    if (within.rows.length || within.columns.length) this.frame.announce(describeLocked(panels[0].grid, within));
  }

  /**
   * Return the query that is described, by default that with the largest weight; null unless one map of weights is shown.
   * @param {GridPanel[]} panels
   * @param {number} [chosen]
   */
  queryToDescribe([{ grid }, ...others], chosen) {
    if (!(grid instanceof Grid) || grid.poolSize > 1 || others.length) return null;
    if (this.source.viewDocument.unit !== undefined || !isAttention(grid)) return null;
    return chosen !== undefined && chosen < grid.rows.length ? chosen : sharpestQuery(grid);
  }

  /** Say what the head looks at most from a query; a studio has a sentence of its own. @param {number} query */
  describeQuery(query) {
    const grid = this.panels?.[0].grid;
    if (this.large || !(grid instanceof Grid)) return;
    const none = `${tokenPhrase(grid.rows[query])} looks at nothing here.`; // an empty line would move the map
    this.finding.textContent = strongestQuerySentence(grid, query) || none;
    this.finding.hidden = false;
  }

  /** @param {GridPanel[]} panels @param {() => boolean} isCurrent */
  async showPicture(panels, isCurrent) {
    const { token } = this.selection;
    if (token.side === "rows")
      await Promise.all(panels.map(({ grid }) => grid instanceof TiledGrid && grid.row(token.index)));
    const { picture } = this.stages;
    if (!picture) return;
    if (isCurrent()) await picture.show(panels, this.selection.part, token, this.frame.width, isCurrent);
    if (isCurrent() && this.selection.hasOneHead) this.frame.showStage(picture.element, picture.question);
  }

  /** @param {AnyGrid[]} separate */
  showLinks(separate) {
    const { heads } = this.selection;
    const headLinks = separate.map((grid, i) => {
      const [layer, head] = heads[i];
      return { grid, ink: this.selection.colourIndex(layer, head), name: `${layer}.${head}` };
    });
    const limits = { minWeight: this.store.get("min_weight"), maxLinks: this.store.get("max_links") };
    this.stages.links.show(headLinks, { ...this.selection.lockedIn(separate[0]), ...limits }, this.frame.width);
  }

  /** @param {AnyGrid} grid */
  showWords(grid) {
    const by = this.store.get("direction") === "to";
    const last = this.selection.lockedIn(grid).columns.at(-1);
    this.stages.words.show(grid, by ? (last ?? 0) : this.selection.row(grid), by);
  }

  /** Show the sheet, drawn several times while heads arrive. @param {() => boolean} isCurrent */
  async showSheet(isCurrent) {
    const { selection, frame } = this;
    const { partIndex } = selection;
    const part = { ...selection.part, ...selection.shape, ...(selection.arrange === "steps" ? selection.largest : {}) };
    /** @type {Map<string, AnyGrid>} */
    const grids = this.grids.get(partIndex) ?? new Map();
    this.grids.set(partIndex, grids);
    const show = () => {
      const [chosen] = selection.heads;
      const onto = selection.hasPicture && spreadAll(grids, part, selection.token);
      const grid = grids.get(chosen.join("."));
      // the text stands above maps of tokens whose weights are there in full
      const row = onto || !grid || grid instanceof TiledGrid || grid.poolSize > 1 ? null : selection.row(grid);
      const { outlined } = this.source.viewDocument;
      this.stages.sheet.show(
        { part, grids, chosen, marked: this.store.get("selected_heads"), row, outlined, ...onto },
        frame.width,
      );
    };
    frame.showStage(this.stage.element, selection.caption("sheet"));
    frame.zoomGroup.hidden = this.finding.hidden = true;
    this.panels = null;
    const showProgress = throttle(show, DRAW_INTERVAL);
    for (let i = 0; i < part.layers * part.heads; i++) {
      const [layer, head] = [Math.floor(i / part.heads), i % part.heads];
      const key = `${layer}.${head}`;
      if (!grids.has(key)) grids.set(key, await selection.grid(partIndex, layer, head, false));
      if (!isCurrent()) return;
      showProgress();
    }
    show();
    this.kinds.show(grids);
  }

  /**
   * The panels whose numbers can be exported: of a head that is too large to be held, the rows that were loaded.
   * @returns {GridPanel<Grid>[] | null}
   */
  get exactPanels() {
    if (this.mode === "picture") return this.stages.picture?.numbers ?? [];
    const exact = (/** @type {AnyGrid} */ grid) => (grid instanceof TiledGrid ? grid.exactGrid : grid);
    return this.panels?.map((panel) => ({ ...panel, grid: exact(panel.grid) })) ?? null;
  }

  tables() {
    if (this.mode !== "sheet") return (this.exactPanels ?? []).map(table);
    const grids = this.grids.get(this.selection.partIndex);
    /** @param {number} layer @param {number} head */
    const value = (layer, head) => {
      const grid = grids?.get(`${layer}.${head}`);
      return grid ? formatNumber(sharpness(grid)) : "…";
    };
    return [headTable(this.selection.shape, value)];
  }
}

/** Return the row that two dividers outline; undefined if there is none. @param {Divider[]} dividers */
function rowBetween(dividers) {
  const [above, below] = dividers.filter(([side]) => side === "rows").map(([, at]) => at);
  return below === above + 1 ? above : undefined;
}

/** Focus the drawing of a stage, or its first focusable element if it has no drawing. @param {Element} element */
function focusStage(element) {
  const target = element.querySelector("canvas[tabindex='0']") ?? element.querySelector("[tabindex='0']");
  /** @type {HTMLElement | null} */ (target)?.focus();
}

const HEAD_SHORTCUTS = [
  ["1 2 3 4", "all heads, one head, lines, words"],
  ["arrows", "move (with Shift by ten)"],
  ["Enter", "open a head; lock a row"],
  ["Space, C", "lock a row, a column; mark a head"],
  ["[ ]", "head before, after"],
  ["PageUp, PageDown", "layer before, after"],
  ["+ − 0", "closer, farther, all"],
  ["Esc", "unlock; back to all heads"],
];
const PICTURE_SHORTCUTS = [
  ["5", "on the picture"],
  ["P", "the picture alone, or with weights"],
];

/** Return the height that a map of one head may have, in pixels. */
const mapHeight = () => clamp((globalThis.innerHeight ?? 0) - HEIGHT_AROUND_MAP, MIN_MAP_HEIGHT, MAX_MAP_HEIGHT);

// A view of heads: the reader's choices in, one of four ways to look out.

import { formatted } from "../base/numbers.js";
import { Choice } from "../controls/choice.js";
import { Controls, MODES } from "../controls/controls.js";
import { Frame } from "../controls/frame.js";
import { linear } from "../base/grid.js";
import { HeadStage } from "./headstage.js";
import { ImageStage } from "./image-overlay.js";
import { spreadAll } from "../base/places.js";
import { describeCell, describeLocked } from "./aria-text.js";
import { sharpness } from "./sheet.js";
import { LinesStage, SheetStage, WordsStage } from "./modes.js";
import { headTable, table } from "../controls/table.js";

const OFTEN = 120; // milliseconds between two drawings of a sheet whose heads still arrive

export class Explorer {
  grids = new Map();
  turn = 0;

  constructor(host, source, store, options) {
    this.source = source;
    this.store = store;
    this.choice = new Choice(source, store);
    this.frame = new Frame(host, source.document, store, {
      ...options,
      keys: source.document.picture ? [...HEAD_KEYS, ...PICTURE_KEYS] : HEAD_KEYS,
      shown: () => this.shown,
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

  // Its source has other maps now.
  renew() {
    this.grids.clear();
    return this.refresh();
  }

  build({ axes, names, picture }) {
    const { theme } = this.frame;
    const handlers = {
      lock: (side, index) => this.frame.lock(side, index),
      leave: () => this.leave(),
      announce: (text) => this.frame.announce(text),
      reading: (...cell) => this.reading(...cell),
      open: (layer, head) => this.open(layer, head),
      mark: (layer, head) => this.controls.toggle(head, layer),
    };
    return {
      sheet: new SheetStage(theme, handlers, names),
      head: new HeadStage(theme, handlers, { axes, numbers: true }),
      lines: new LinesStage(theme, handlers, axes),
      words: new WordsStage(theme, { ...handlers, lock: (side, index) => this.store.set({ [side]: [index] }) }),
      picture: picture && new ImageStage(theme, { ...handlers, choose: (...token) => this.choose(...token) }, picture),
    };
  }

  get mode() {
    const mode = this.store.get("mode");
    return this.stages[mode] ? mode : "sheet";
  }

  get stage() {
    return this.stages[this.mode];
  }

  // Go to another way to look, and take the keyboard there.
  go(mode, more = {}) {
    this.wanted = mode;
    this.store.set({ mode, ...more });
  }

  open(layer, head) {
    const marked = this.store.get("marked");
    const among = marked.length > 1 && marked.some(([l, h]) => l === layer && h === head);
    this.go("head", { layer, head, marked: among ? marked : [] });
  }

  // Another token whose weights the picture shows.
  choose(side, index) {
    this.store.set({ direction: side === "rows" ? "at" : "by", [side]: [index] });
  }

  leave() {
    if (this.mode === "picture") this.go(this.choice.alone ? "head" : "sheet");
    else if (this.store.get("rows").length || this.store.get("cols").length) this.store.set({ rows: [], cols: [] });
    else if (!this.choice.alone) this.go("sheet");
  }

  key(event) {
    if (event.target.matches("input, select")) return;
    const { layers, heads } = this.choice.shape;
    const turn = (name, step, count) => ({ [name]: (this.store.get(name) + step + count) % count, marked: [] });
    const head = { "[": -1, "]": 1 }[event.key];
    const layer = { PageUp: -1, PageDown: 1 }[event.key];
    const mode = MODES[Number(event.key) - 1]?.[0];
    if (head) this.store.set(turn("head", head, heads));
    else if (layer) this.store.set(turn("layer", layer, layers));
    else if (this.stages[mode] && mode !== this.mode && !(mode === "sheet" && this.choice.alone)) this.go(mode);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

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
      this.frame.failed(error);
    }
    if (turn !== this.turn) return;
    if (this.wanted === this.mode) this.stage.element.querySelector("[tabindex='0']")?.focus();
    this.wanted = null;
    this.frame.renewTable();
  }

  // Whatever was asked for last wins: what arrives for an earlier turn is dropped.
  async show(turn, whole) {
    const { mode, choice, frame } = this;
    if (mode === "sheet") return this.sheet(turn);
    const beside = mode === "head" || mode === "picture";
    const panels = beside ? await choice.panels(whole) : await choice.single(whole);
    const separate = mode === "lines" ? await choice.made(choice.at, false, whole) : [];
    if (turn !== this.turn) return undefined;
    this.panels = panels;
    frame.stage(this.stage.element, choice.named(mode));
    frame.buttons.hidden = mode !== "head";
    if (mode === "head") return this.head(panels);
    if (mode === "picture") return this.picture(panels);
    return mode === "lines" ? this.lines(separate) : this.words(panels[0].grid);
  }

  async head(panels) {
    const within = this.choice.within(panels[0].grid);
    await Promise.all(panels.flatMap(({ grid }) => (grid.row ? within.rows.map((i) => grid.row(i)) : [])));
    if (this.panels !== panels) return;
    const drawn = panels.map((panel) => ({ ...panel, grid: linear(panel.grid) }));
    const { gold = [], borders = [] } = this.source.document;
    this.stage.show(drawn, { ...within, outlined: gold, borders: drawn.map(() => borders) }, this.frame.width);
    if (within.rows.length || within.cols.length) this.frame.announce(describeLocked(panels[0].grid, within));
  }

  async picture(panels) {
    const { token } = this.choice;
    if (token.side === "rows") await Promise.all(panels.map(({ grid }) => grid.row?.(token.index)));
    const { picture } = this.stages;
    const here = () => this.panels === panels && this.mode === "picture";
    if (here()) await picture.show(panels, this.choice.part, token, this.frame.width, here);
    if (here() && this.choice.alone) this.frame.stage(picture.element, picture.question);
  }

  lines(separate) {
    const { heads } = this.choice;
    const shown = separate.map((grid, i) => ({ grid, ink: this.choice.ink(...heads[i]), name: heads[i].join(".") }));
    const limits = { least: this.store.get("least"), most: this.store.get("most") };
    this.stage.show(shown, { ...this.choice.within(separate[0]), ...limits }, this.frame.width);
  }

  words(grid) {
    const by = this.store.get("direction") === "by";
    const { rows, cols } = this.choice.within(grid);
    const [last] = (by ? cols : rows).slice(-1);
    this.stage.show(grid, last ?? (by ? 0 : grid.rows.length - 1), by);
  }

  // Heads appear as they arrive; the sheet is drawn a few times on the way.
  async sheet(turn) {
    const { choice, frame } = this;
    const { at } = choice;
    const part = { ...choice.part, ...choice.shape, ...(choice.arrange === "steps" ? choice.largest : {}) };
    const grids = this.grids.get(at) ?? new Map();
    this.grids.set(at, grids);
    const show = () => {
      const [chosen] = choice.heads;
      const onto = choice.pictured && spreadAll(grids, part, choice.token);
      this.stage.show({ part, grids, chosen, marked: this.store.get("marked"), ...onto }, frame.width);
    };
    frame.stage(this.stage.element, choice.named("sheet"));
    frame.buttons.hidden = true;
    this.panels = null;
    for (let i = 0, drawn = performance.now(); i < part.layers * part.heads; i++) {
      const [layer, head] = [Math.floor(i / part.heads), i % part.heads];
      const key = `${layer}.${head}`;
      if (!grids.has(key)) grids.set(key, await choice.grid(at, layer, head, false));
      if (turn !== this.turn) return;
      if (performance.now() - drawn < OFTEN) continue;
      show();
      drawn = performance.now();
    }
    show();
  }

  // The grids whose numbers can be taken away: of a head that is too large to be held, the rows that were asked for.
  get shown() {
    if (this.mode === "picture") return this.stage.numbers;
    return this.panels?.map((panel) => ({ ...panel, grid: panel.grid.exact ?? panel.grid }));
  }

  tables() {
    if (this.mode !== "sheet") return (this.shown ?? []).map(table);
    const grids = this.grids.get(this.choice.at);
    const value = (layer, head) => {
      const grid = grids?.get(`${layer}.${head}`);
      return grid ? formatted(sharpness(grid)) : "…";
    };
    return [headTable(this.choice.shape, value)];
  }
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

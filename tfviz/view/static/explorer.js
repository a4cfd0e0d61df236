// A view of heads: from the reader's choices to grids, from grids to one of four ways to look.

import { Controls, MODES } from "./controls.js";
import { Frame } from "./frame.js";
import { ABSENT, Grid, combine, difference, merge, sinks, without } from "./grid.js";
import { quoted, two } from "./pen.js";
import { sharpness } from "./sheet.js";
import { HeadStage, LinesStage, SheetStage, WordsStage } from "./stages.js";
import { headTable, table } from "./table.js";

const SEPARATORS = /^(\[SEP\]|\[CLS\]|\[PAD\]|<\/?s>|<pad>|<bos>|<eos>|<\|.*\|>|[.,;:!?\n])$/;

export class Explorer {
  constructor(host, source, store, takes) {
    Object.assign(this, { source, store, grids: new Map(), turn: 0 });
    this.frame = new Frame(host, source.document, store, { ...takes, keys: HEAD_KEYS, shown: () => this.panelsShown, drawing: () => this.stage.drawing, tables: () => this.tables(), redraw: () => this.refresh() });
    const { theme } = this.frame, { axes } = source.document;
    const does = { lock: (side, index) => this.lock(side, index), leave: () => this.leave(), says: (text) => this.frame.says(text), reading: (...cell) => this.reading(...cell) };
    this.stages = {
      sheet: new SheetStage(theme, { ...does, open: (layer, head) => this.open(layer, head), mark: (layer, head) => this.controls.toggle(head, layer) }, source.document.names),
      head: new HeadStage(theme, does, { axes }),
      lines: new LinesStage(theme, does, axes),
      words: new WordsStage(theme, { ...does, lock: (side, index) => store.set({ [side]: [index] }) }),
    };
    this.controls = new Controls(source, store, theme);
    this.frame.body.append(this.controls.element);
    this.frame.zoom((factor) => this.stages.head.zoom(factor));
    this.frame.body.onkeydown = (event) => this.key(event);
    this.close = this.frame.open();
  }

  get part() { return Math.min(this.store.get("part"), this.source.parts.length - 1); }
  get axes() { return this.source.document.axes; }
  get stage() { return this.stages[this.mode]; }
  get mode() { const mode = this.store.get("mode"); return MODES.some(([key]) => key === mode) ? mode : "sheet"; }

  open(layer, head) {
    const marked = this.store.get("marked");
    this.store.set({ mode: "head", layer, head, marked: marked.length > 1 && marked.some(([l, h]) => l === layer && h === head) ? marked : [] });
    this.stages.head.panels[0]?.canvas.focus();
    this.wanted = "head";
  }

  lock(side, index) {
    const locked = this.store.get(side);
    this.store.set({ [side]: locked.includes(index) ? locked.filter((other) => other !== index) : [...locked, index] });
  }

  leave() {
    if (this.store.get("rows").length || this.store.get("cols").length) return this.store.set({ rows: [], cols: [] });
    if (this.source.parts[this.part].layers * this.source.parts[this.part].heads === 1) return undefined;
    this.wanted = "sheet";
    return this.store.set({ mode: "sheet" });
  }

  key(event) {
    const { layers, heads } = this.source.parts[this.part], turn = (now, step, count) => (now + step + count) % count;
    const step = { "[": -1, "]": 1 }[event.key], jump = { PageUp: -1, PageDown: 1 }[event.key];
    if (event.target.matches("input, select")) return;
    if (step) this.store.set({ head: turn(this.store.get("head"), step, heads), marked: [] });
    else if (jump) this.store.set({ layer: turn(this.store.get("layer"), jump, layers), marked: [] });
    else if (/^[1-4]$/.test(event.key)) {
      const [mode] = MODES[event.key - 1];
      if (mode === this.mode || (mode === "sheet" && layers * heads === 1)) return;
      this.wanted = mode;
      this.store.set({ mode });
    }
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  reading(grid, [row, col], name = "") {
    const { rows, cols } = grid, kind = grid.state[row * cols.length + col], before = name ? `${name}: ` : "";
    const value = kind === 0 ? (grid.block > 1 ? `at most ${two(grid.at(row, col))}` : two(grid.at(row, col))) : kind === ABSENT ? "not there yet" : "may not look";
    return `${before}${quoted(rows[row], 200)} → ${quoted(cols[col], 200)}  ${value}`;
  }

  // Which heads are shown together.
  get heads() {
    const marked = this.store.get("marked"), { layers, heads } = this.source.parts[this.part], within = (at, count) => Math.max(0, Math.min(count - 1, at));
    return marked.length ? marked.map(([l, h]) => [within(l, layers), within(h, heads)]) : [[within(this.store.get("layer"), layers), within(this.store.get("head"), heads)]];
  }

  async grid(part, layer, head, whole) {
    const grid = await (whole ? this.source.whole(part, layer, head) : this.source.head(part, layer, head));
    return this.source.document.arrange === "steps" ? stretched(grid, this.largest) : grid;
  }

  // How many words, and which, the largest of all steps has.
  get largest() {
    const longest = (side) => this.source.parts.reduce((words, part) => (part[side].length > words.length ? part[side] : words), []);
    this.longest ??= { rows: longest("rows"), cols: longest("cols") };
    return this.longest;
  }

  // Heads of a part, each as it is to be shown, or all as one.
  async made(part, together, whole) {
    const grids = await Promise.all(this.heads.map(([layer, head]) => this.grid(part, layer, head, whole)));
    const coarsest = Math.min(...grids.map((grid) => grid.rows.length));
    const alike = grids.map((grid) => { let made = grid; while (made.rows.length > coarsest) made = made.half(); return made; });
    return (together ? [combine(alike, this.store.get("how"))] : alike).map((grid) => this.filtered(grid, part));
  }

  filtered(grid, part) {
    const { groups } = this.source.parts[part], hide = this.store.get("hide");
    const hidden = { nothing: () => [], first: () => [0], separators: () => grid.cols.map((word, i) => (SEPARATORS.test(word.trim() || word) ? i : -1)).filter((i) => i >= 0), sinks: () => sinks(grid), chosen: () => this.store.get("hidden") }[hide]?.() ?? [];
    const left = without(grid, new Set(hidden));
    if (!this.store.get("merged") || !groups || grid.rows.length !== groups.rows.length) return left;
    return merge(left, groups.rows, left.kept ? dense(left.kept.map((i) => groups.cols[i])) : groups.cols);
  }

  async refresh() {
    const turn = ++this.turn, { frame, store } = this;
    if (frame.theme.renew()) this.grids.theme = frame.theme.key;
    this.controls.show();
    const partly = this.mode !== "sheet" && this.heads.some(([layer, head]) => this.source.partly(this.part, layer, head));
    try {
      await this.showing(turn, false);
      if (partly && turn === this.turn) { frame.busy(true); await this.showing(turn, true); frame.busy(false); }
    } catch (error) { frame.failed(error); }
    if (turn !== this.turn) return;
    if (this.wanted === store.get("mode")) { this.wanted = null; this.stage.element.querySelector("[tabindex='0']")?.focus(); }
    frame.renewTable();
  }

  async showing(turn, whole) {
    const { store, frame, mode } = this, width = frame.width, look = () => ({ rows: store.get("rows"), cols: store.get("cols"), outlined: this.source.document.gold ?? [] });
    if (mode === "sheet") return this.sheet(turn, width);
    const together = await this.made(this.part, true, whole), panels = await this.panels(together[0], whole);
    const separate = mode === "lines" ? await this.made(this.part, false, whole) : null;
    if (turn !== this.turn) return undefined;
    [this.shown] = together;
    this.panelsShown = mode === "head" ? panels : [{ name: "", grid: this.shown, axes: this.axes }];
    const { rows, cols } = look(), within = { rows: rows.filter((i) => i < this.shown.rows.length), cols: cols.filter((i) => i < this.shown.cols.length) };
    frame.stage(this.stage.element, this.named());
    frame.buttons.hidden = mode !== "head";
    if (mode === "head") this.stage.show(panels, { ...look(), ...within }, width);
    else if (mode === "lines") this.stage.show(separate.map((grid, i) => ({ grid, head: this.heads[i][1], name: `${this.heads[i].join(".")}` })), { ...within, least: store.get("least"), most: store.get("most") }, width);
    else this.words(within);
    if (mode === "head" && (within.rows.length || within.cols.length)) frame.says(this.locked(within));
    return undefined;
  }

  words({ rows, cols }) {
    const by = this.store.get("direction") === "by", [last] = (by ? cols : rows).slice(-1);
    this.stage.show(this.shown, last ?? (by ? 0 : this.shown.rows.length - 1), by);
  }

  // What the locked words look at most, and what looks most at the locked keys.
  locked({ rows, cols }) {
    const { shown } = this, name = (side, i) => quoted(shown[side][i], 40);
    const top = (side, other, along) => (i) => `${name(side, i)} ${along === "row" ? "→" : "←"} ${shown.strongest(i, along, 3).map(([j, value]) => `${name(other, j)} ${two(value)}`).join(", ") || "nothing"}`;
    return [...rows.map(top("rows", "cols", "row")), ...cols.map(top("cols", "rows", "col"))].slice(0, 8).join("\n");
  }

  async panels(first, whole) {
    const { arrange, parts } = this.source.document;
    if (arrange !== "compare") return [{ name: "", grid: first, axes: this.axes }];
    const grids = await Promise.all(parts.map(async (_, i) => (await this.made(i, true, whole))[0]));
    const panels = grids.map((grid, i) => ({ name: parts[i].name, grid })), [a, b] = grids;
    const alike = a.rows.length === b.rows.length && a.cols.length === b.cols.length && String(a.kept) === String(b.kept);
    return alike ? [...panels, { name: `${parts[1].name} − ${parts[0].name}`, grid: difference(a, b) }] : panels;
  }

  // Heads appear as they arrive; the sheet is drawn a few times on the way.
  async sheet(turn, width) {
    const part = this.source.parts[this.part], grids = this.grids.get(this.part) ?? new Map();
    this.grids.set(this.part, grids);
    const show = () => this.stage.show({ part: this.source.document.arrange === "steps" ? { ...part, ...this.largest } : part, grids, chosen: this.heads[0], marked: this.store.get("marked") }, width);
    this.frame.stage(this.stage.element, this.named());
    this.frame.buttons.hidden = true;
    let drawn = performance.now();
    for (let i = 0; i < part.layers * part.heads; i++) {
      const [layer, head] = [Math.floor(i / part.heads), i % part.heads], key = `${layer}.${head}`;
      if (!grids.has(key)) grids.set(key, await this.grid(this.part, layer, head, false));
      if (turn !== this.turn) return;
      if (performance.now() - drawn > 120) { show(); drawn = performance.now(); }
    }
    show();
    this.shown = this.panelsShown = null;
  }

  named() {
    const marked = this.store.get("marked"), part = this.source.parts.length > 1 && this.source.document.arrange !== "compare" ? `${this.source.parts[this.part].name}, ` : "";
    const { layers, heads } = this.source.parts[this.part];
    if (this.mode === "sheet") return `${part}${layers} layers × ${heads} heads${marked.length ? `, ${marked.length} marked` : ""}`;
    if (layers * heads === 1) return part.replace(/, $/, "");
    if (marked.length > 1) return `${part}${this.mode === "lines" ? "" : `${this.store.get("how")} of `}heads ${marked.map((at) => at.join(".")).join(", ")}`;
    return `${part}layer ${this.heads[0][0]}, head ${this.heads[0][1]}`;
  }

  tables() {
    const grids = this.grids.get(this.part);
    if (this.mode === "sheet") return [headTable(this.source.parts[this.part], (layer, head) => { const grid = grids?.get(`${layer}.${head}`); return grid ? two(sharpness(grid)) : "…"; })];
    return (this.panelsShown ?? []).map(table);
  }
}

const HEAD_KEYS = [["1 2 3 4", "all heads, one head, lines, words"], ["arrows", "move (with Shift by ten)"], ["Enter", "open a head; lock a row"], ["Space, C", "lock a row, a column; mark a head"],
  ["[ ]", "head before, after"], ["PageUp, PageDown", "layer before, after"], ["+ − 0", "closer, farther, all"], ["Esc", "unlock; back to all heads"]];

// Groups 3, 3, 5 as 0, 0, 1: numbered without gaps.
const dense = (groups) => groups.map((group) => [...new Set(groups)].indexOf(group));

// A step's grid in the frame of the largest: what does not exist yet is absent, not zero.
function stretched(grid, { rows, cols }) {
  if (grid.rows.length === rows.length && grid.cols.length === cols.length) return grid;
  const codes = new Uint8Array(rows.length * cols.length), state = new Uint8Array(codes.length).fill(ABSENT), m = grid.cols.length;
  for (let row = 0; row < grid.rows.length; row++) {
    codes.set(grid.codes.subarray(row * m, (row + 1) * m), row * cols.length);
    state.set(grid.state.subarray(row * m, (row + 1) * m), row * cols.length);
  }
  return new Grid([...grid.rows, ...rows.slice(grid.rows.length)], [...grid.cols, ...cols.slice(m)], codes, state);
}

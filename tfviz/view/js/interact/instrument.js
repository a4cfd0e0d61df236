// The base class of instruments: controls for the arguments of a function above, panels with its results below. Each
// change of a control leads to one evaluation, after which all panels are drawn.

import { h } from "../base/elements.js";
import { textWidth } from "../base/pen.js";
import { label } from "../base/visible-text.js";
import { Frame } from "../controls/frame.js";
import { TopBar } from "../controls/top-bar.js";
import STUDIO_CSS from "../controls/studio.css";
import { table } from "../controls/table.js";
import { CONTROLS } from "./control-kinds.js";
import INTERACT_CSS from "./interact.css";
import { PANELS } from "./panel-kinds.js";
import { scaleOf } from "./scales.js";
import { KEYS_HELP } from "./keys-help.js";

/** @import { DrawingKind, InteractDocument, InteractState } from "../documents.d.ts" */
/** @import { Choices, Drawing, Side, Tensor, ViewOptions } from "../types.d.ts" */
/** @import { Control } from "./control.js" */
/** @import { Panel, PanelContent } from "./panel.js" */
/** @typedef {import("../base/page-data.js").PageData<InteractDocument>} Data */

/** @type {Partial<Record<DrawingKind, number>>} of a result, but for leading ones of size 1 */
const MAX_AXES = { number: 0, bars: 1, words: 1 };
const BESIDE = 4; // knobs above the results; more stand beside them
const PANE = 18; // pixels around the results
const LINE_ABOVE = 24; // pixels of the line above a drawing that is taken away

/**
 * A view of a function's arguments and results. A subclass implements `answer(values)`, which returns a promise of the
 * results by name, or of null if a later call made this one obsolete.
 */
export class Instrument {
  /** @type {Record<string, any>} what the controls stood at when the outputs were computed */
  values = {};
  /** @type {Panel[]} */
  panelViews = [];
  /** @type {Map<string, Tensor>} what the panels showed before, by their keys */
  earlierTensors = new Map();
  /** @type {Record<string, Tensor> | null} */
  outputs = null;
  /** @type {string | null} the values that were asked for last, and below those of the outputs */
  requested = null;
  /** @type {string | null} */
  computed = null;
  changed = "";
  requestedTurn = 0;
  computedTurn = 0;
  ended = false;
  close = () => {};

  /**
   * @param {HTMLElement} host
   * @param {Data} source
   * @param {Choices<InteractState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    const { controls, panels } = source.document;
    this.source = source;
    this.store = store;
    this.panels = panels;
    /** @type {Set<string>} */
    const kinds = new Set(Object.values(controls).map(({ kind }) => kind));
    this.frame = new Frame(host, source.document, store, {
      ...options,
      keys: KEYS_HELP.filter(([kind]) => kind === "" || kinds.has(kind)).map(([, key, text]) => [key, text]),
      grids: () => this.panelViews.map(({ title, grid }) => ({ name: title, grid })),
      drawing: () => this.drawing,
      tables: () => this.panelViews.map(({ title, grid }) => table({ name: title, grid, axes: ["", ""] })),
      redraw: () => this.refresh(),
    });
    const { frame } = this;
    /** @type {Record<string, Control<any>>} */
    this.controls = Object.fromEntries(
      Object.entries(controls).map(([name, spec]) => [
        name,
        new /** @type {any} */ (CONTROLS[spec.kind])(
          { name, ...spec },
          (/** @type {any} */ value) => this.set(name, value),
          frame.theme,
          (/** @type {string} */ text) => frame.announce(text),
        ),
      ]),
    );
    this.stage = h("div", { class: "stage panels results" });
    const parts = Object.values(this.controls).map(({ element }) => element);
    const flat = parts.filter((element) => !element.matches(".control")); // in a line, before those that are tall
    const tall = parts.filter((element) => !flat.includes(element));
    this.knobs = h("div", { class: "controls knobs" });
    for (const line of [flat, tall]) if (line.length) this.knobs.append(h("div", { class: "knobs" }, ...line));
    frame.body.classList.add("studio", "instrument");
    frame.body.before(h("style", {}, STUDIO_CSS + INTERACT_CSS));
    frame.stagePlace.setAttribute("role", "group");
    // A few knobs lie above what comes of them; what is tall, or many, stands beside it.
    const beside = tall.length > 0 || flat.length > BESIDE;
    this.desk = h("div", { class: beside ? "bench beside" : "bench" }, this.knobs, this.stage);
    this.bar = new TopBar(
      frame,
      source.document.state,
      ["values"],
      Boolean(options.page) && options.addressed !== false,
    );
    const tries = (source.document.tries ?? []).map(([name, values]) => {
      const act = () => this.store.set({ values: { ...this.store.get("values"), ...values } });
      const onclick = () => this.bar.history.group(act); // a step of its own, however soon it comes
      return h("button", { type: "button", onclick }, name);
    });
    if (tries.length)
      frame.body.append(
        h("div", { class: "tries", role: "group", "aria-label": "Try" }, h("span", {}, "Try"), ...tries),
      );
  }

  /** The width of the pane of results. */
  get width() {
    return Math.max(220, (this.stage.clientWidth || this.frame.width) - 2 * PANE);
  }

  /** @abstract @returns {Promise<Record<string, Tensor> | null>} @param {InteractState["values"]} _values */
  async answer(_values) {
    return null;
  }

  begin() {
    const closeFrame = this.frame.open();
    this.end = this.end.bind(this);
    this.close = () => {
      closeFrame();
      this.bar.close();
      this.end();
    };
  }

  end() {
    this.ended = true;
  }

  /** @param {string} name @param {any} value */
  set(name, value) {
    this.changed = name;
    this.store.set({ values: { ...this.store.get("values"), [name]: value } });
  }

  async refresh() {
    const values = this.store.get("values");
    for (const [name, control] of Object.entries(this.controls)) control.show(values[name]);
    this.frame.showStage(this.desk, "");
    const key = JSON.stringify(values);
    if (key === this.requested) return this.show(); // only the width or the colours are others
    this.requested = key;
    const turn = ++this.requestedTurn;
    this.stage.ariaBusy = "true";
    try {
      const outputs = key === this.computed ? this.outputs : await this.answer(values);
      if (!outputs || this.ended || turn < this.computedTurn) return undefined; // a later change is on its way, or done
      this.computedTurn = turn;
      const [before, last] = [this.outputs, this.values];
      [this.outputs, this.computed, this.values] = [outputs, key, values];
      this.show();
      if (before) this.announceChange(last, values);
      this.frame.renewTable();
    } catch (error) {
      if (this.requested === key) this.frame.announce(/** @type {Error} */ (error).message);
    }
    if (this.requested === key) this.stage.ariaBusy = "false";
    return undefined;
  }

  /**
   * Announce the changed control and the largest change of each panel.
   * @param {InteractState["values"]} last
   * @param {InteractState["values"]} values
   */
  announceChange(last, values) {
    const control = this.controls[this.changed];
    if (!control) return;
    const changes = this.panelViews
      .map((panel) => panel.describeChange(this.earlierTensors.get(panel.key)))
      .filter(Boolean);
    const messages = [control.describeChange(last[this.changed], values[this.changed]), ...changes.slice(0, 3)];
    this.frame.announce(messages.filter(Boolean).join("; "));
  }

  /** @param {string | string[]} named @param {Side} side @returns {string[]} */
  axisWords(named, side) {
    if (typeof named !== "string") return named;
    return this.controls[named][side === "cols" ? "columns" : "words"](this.values[named]);
  }

  /**
   * Yield the results as panels; one with three axes has a panel for each table.
   * @returns {Generator<PanelContent & { key: string, kind: DrawingKind }>}
   */
  *panelContents() {
    for (const panel of this.panels) {
      const output = this.outputs?.[panel.result];
      if (!output) continue;
      const { kind, positions, filled, top } = panel;
      const tensor = withoutLeadingOnes(output, MAX_AXES[kind] ?? 2);
      const content = {
        kind,
        rows: this.axisWords(panel.rows, "rows"),
        cols: this.axisWords(panel.cols, "cols"),
        ...scaleOf(output, panel),
        positions: typeof positions === "string" ? this.values[positions] : positions,
        filled,
        top,
      };
      if (tensor.shape.length < 3) yield { ...content, key: panel.result, title: panel.title, tensor };
      else
        for (let at = 0; at < tensor.shape[0]; at++)
          yield {
            ...content,
            key: `${panel.result} ${at}`,
            title: `${panel.title} ${at}`.trim(),
            tensor: tableAt(tensor, at),
          };
    }
  }

  show() {
    if (!this.outputs) return;
    this.earlierTensors = new Map(this.panelViews.map(({ key, tensor }) => [key, tensor]));
    const parts = [...this.panelContents()];
    const announce = (/** @type {string} */ text) => this.frame.announce(text);
    this.panelViews = parts.map(({ key, kind }) => {
      const known = this.panelViews.find((other) => other.key === key);
      return known ?? Object.assign(new PANELS[kind](this.frame.theme, announce), { key });
    });
    const canvases = this.panelViews.map(({ canvas }) => canvas);
    if (
      canvases.some((canvas, i) => this.stage.children[i] !== canvas) ||
      this.stage.childElementCount !== canvases.length
    )
      this.stage.replaceChildren(...canvases);
    const { width } = this;
    parts.forEach((part, i) => this.panelViews[i].show(part, width));
  }

  /** The drawing of all panels, below a line that says how the controls stand. @returns {Drawing} */
  get drawing() {
    const from = this.stage.getBoundingClientRect();
    const line = Object.entries(this.controls)
      .map(([name, control]) => `${label(name, 40)} = ${control.describe(this.values[name])}`)
      .join("   ");
    const available = Math.max(this.width, 240);
    const caption =
      textWidth(line, 12) > available
        ? `${line.slice(0, Math.max(20, Math.floor((line.length * available) / textWidth(line, 12)) - 1))}…`
        : line;
    const placed = this.panelViews.map((panel) => {
      const { left, top } = panel.canvas.getBoundingClientRect();
      return /** @type {[Panel, number, number]} */ ([panel, left - from.left, top - from.top + LINE_ABOVE]);
    });
    return {
      width: Math.max(textWidth(caption, 12), ...placed.map(([panel, x]) => x + panel.width)),
      height: Math.max(LINE_ABOVE, ...placed.map(([panel, , y]) => y + panel.height)),
      draw: (pen) => {
        pen.text(0, 8, caption, { fill: this.frame.theme.soft, size: 12 });
        for (const [panel, x, y] of placed) {
          pen.setOrigin(x, y);
          panel.paint(pen);
          pen.setOrigin(0, 0);
        }
      },
    };
  }
}

/**
 * Remove leading axes of size 1, such as the batch, while there are more than `maxAxes`.
 * @param {Tensor} tensor
 * @param {number} maxAxes
 */
function withoutLeadingOnes(tensor, maxAxes) {
  const shape = [...tensor.shape];
  while (shape.length > maxAxes && shape[0] === 1) shape.shift();
  return { ...tensor, shape };
}

/** @param {Tensor} tensor @param {number} at @returns {any} */
function tableAt({ shape, dtype, data }, at) {
  const size = shape[1] * shape[2];
  return { shape: shape.slice(1), dtype, data: data.subarray(at * size, (at + 1) * size) };
}

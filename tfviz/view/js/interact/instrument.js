// The base class of instruments: controls for the arguments of a function above, panels with its results below. Each
// change of a control leads to one evaluation, after which all panels are drawn.

import { h } from "../base/elements.js";
import { textWidth } from "../base/pen.js";
import { excerpt, label } from "../base/visible-text.js";
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
const GAP = 18; // pixels around the results
const BETWEEN = 36; // pixels between them
const LINE_ABOVE = 24; // pixels of the line above a drawing that is taken away
const LARGE = 1340; // pixels of a screen that shows all of it larger
const ENLARGED = 1.25; // times
const KNOBS = 340; // pixels of the controls beside the results
const FIGURES = 200; // pixels of the numbers beside the pictures
const LEAST = 230; // pixels of a picture beside others
const WIDEST = [0, 600, 440, 380]; // pixels of each, by how many stand side by side
const NARROWEST_CARD = 760;
/** @type {Record<string, string>} what there is to do with a kind of control */
const ACTS = {
  slider: "drag a slider",
  points: "drag a point",
  cells: "change a number",
  switches: "press a cell",
  text: "type a text",
  order: "move a word",
  angle: "turn the dial",
  menu: "choose from the list",
  switch: "tick the box",
};

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
  large = false;
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
    const flat = parts.filter((element) => !element.matches(".control")); // one below another, before those that are tall
    const tall = parts.filter((element) => !flat.includes(element));
    this.knobs = h("div", { class: "controls knobs" });
    if (flat.length) this.knobs.append(h("div", { class: "knobs flat" }, ...flat));
    if (tall.length) this.knobs.append(h("div", { class: "knobs tall" }, ...tall));
    this.pictures = h("div", { class: "pictures" });
    this.figures = h("div", { class: "figures" });
    this.stage.append(this.pictures, this.figures);
    frame.body.classList.add("studio", "instrument");
    frame.body.before(h("style", {}, STUDIO_CSS + INTERACT_CSS));
    frame.stagePlace.setAttribute("role", "group");
    this.desk = h("div", { class: "bench" }, this.knobs, this.stage);
    this.purpose = h("p", { class: "purpose" }, this.purposeText);
    frame.header.after(this.purpose);
    // A screen may grow without the card, which is as wide as what it holds.
    this.screen = new ResizeObserver(([{ contentRect }]) => this.fitScreen(contentRect.width));
    this.screen.observe(host);
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

  /** What there is to do: what the author says, or what follows a colon in the title, or the controls tell. */
  get purposeText() {
    const { purpose, title, controls } = this.source.document;
    if (purpose) return purpose;
    if (title.includes(": ")) return "";
    const acts = [...new Set(Object.values(controls).map(({ kind }) => ACTS[kind]))];
    const [last] = acts.slice(-1);
    const text = acts.length > 1 ? `${acts.slice(0, -1).join(", ")} or ${last}` : last;
    return `${text[0].toUpperCase()}${text.slice(1)}: the results follow.`;
  }

  /** Write the title; what follows its colon stands below it, as the line that says what there is to see. */
  showTitle() {
    const { title, purpose } = this.source.document;
    const at = title.indexOf(": ");
    if (at < 0 || purpose) return;
    this.frame.title.replaceChildren(
      title.slice(0, at),
      h("span", { class: "colon" }, ": "),
      h("span", { class: "subtitle" }, title.slice(at + 2)),
    );
  }

  /** Cap the card where what it holds is small, and show all of it larger on a large screen. @param {number} screen */
  fitScreen(screen) {
    const large = screen >= LARGE;
    const pictures = this.panels.filter(({ kind }) => kind !== "number").length;
    const across = Math.min(pictures, WIDEST.length - 1);
    const natural =
      KNOBS +
      2 * GAP +
      across * WIDEST[across] * (large ? ENLARGED : 1) +
      Math.max(0, across - 1) * BETWEEN +
      (pictures < this.panels.length ? FIGURES + BETWEEN : 0);
    this.frame.body.style.maxWidth = `${Math.max(NARROWEST_CARD, natural)}px`;
    if (large === this.large) return;
    this.large = large;
    this.frame.body.classList.toggle("large", large);
    this.show();
  }

  /** The width of the pane of results. */
  get width() {
    return Math.max(220, (this.stage.clientWidth || this.frame.width) - 2 * GAP);
  }

  /** Return how many pictures stand side by side, and the width of each, in rows as even as can be. */
  get columns() {
    const count = this.panelViews.filter((panel) => !(panel instanceof PANELS.number)).length;
    const fits = (/** @type {number} */ width) =>
      Math.max(1, Math.min(count, 3, Math.floor((width + BETWEEN) / (LEAST + BETWEEN))));
    const [alone, narrower] = [this.width, this.width - FIGURES - BETWEEN];
    const beside = count > 0 && count < this.panelViews.length && narrower >= LEAST && fits(narrower) === fits(alone);
    const width = beside ? narrower : alone;
    const across = Math.ceil(count / Math.ceil(count / fits(width))) || 1;
    return { across, wide: Math.floor((width - (across - 1) * BETWEEN) / across), beside };
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
      this.screen.disconnect();
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
    this.showTitle();
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
    const { across, wide, beside } = this.columns;
    this.stage.classList.toggle("beside", beside);
    this.pictures.style.setProperty("--across", String(across));
    const isFigure = (/** @type {Panel} */ panel) => panel instanceof PANELS.number;
    keep(
      this.pictures,
      this.panelViews.filter((panel) => !isFigure(panel)),
    );
    keep(this.figures, this.panelViews.filter(isFigure));
    parts.forEach((part, i) => {
      Object.assign(
        this.panelViews[i],
        this.large ? { letters: 15, enlarged: ENLARGED } : { letters: 13, enlarged: 1 },
      );
      this.panelViews[i].show(part, isFigure(this.panelViews[i]) ? FIGURES : wide);
    });
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
      const { top: above } = panel.element.getBoundingClientRect();
      const place = [left - from.left, top - from.top + LINE_ABOVE, above - from.top + LINE_ABOVE];
      return /** @type {[Panel, number, number, number]} */ ([panel, ...place]);
    });
    return {
      width: Math.max(textWidth(caption, 12), ...placed.map(([panel, x]) => x + panel.width)),
      height: Math.max(LINE_ABOVE, ...placed.map(([panel, , y]) => y + panel.height)),
      draw: (pen) => {
        pen.text(0, 8, caption, { fill: this.frame.theme.soft, size: 12 });
        for (const [panel, x, y, above] of placed) {
          const lines = wrapped(excerpt(panel.title, 120), Math.max(panel.width, LEAST), 13);
          lines.forEach((text, n) =>
            pen.text(x, above + 9 + 19 * n, text, { fill: this.frame.theme.ink, size: 13, bold: true }),
          );
          pen.setOrigin(x, y);
          panel.paint(pen);
          pen.setOrigin(0, 0);
        }
      },
    };
  }
}

/**
 * Put the elements of panels into a place, unless they stand there.
 * @param {HTMLElement} place
 * @param {Panel[]} panels
 */
function keep(place, panels) {
  place.hidden = !panels.length;
  const known =
    panels.length === place.childElementCount && panels.every((one, i) => place.children[i] === one.element);
  if (!known) place.replaceChildren(...panels.map(({ element }) => element));
}

/**
 * Break a text into lines of a width in pixels, at its spaces.
 * @param {string} text
 * @param {number} width
 * @param {number} size
 */
function wrapped(text, width, size) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines[lines.length - 1]} ${word}`.trimStart();
    if (textWidth(longer, size, true) <= width || longer === word) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
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

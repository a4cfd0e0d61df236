// The base class of instruments: controls for a function's arguments, panels of its results, and a sentence about them;
// each change triggers one evaluation.

import { h } from "../base/elements.js";
import { LatestRequest } from "../base/latest-request.js";
import { textWidth } from "../base/pen.js";
import { excerpt, label } from "../base/visible-text.js";
import { exampleButtons } from "../controls/example-buttons.js";
import { Frame } from "../controls/frame.js";
import { TopBar } from "../controls/top-bar.js";
import STUDIO_CSS from "../controls/studio.css";
import WIDTHS_CSS from "../controls/studio-widths.css";
import { table } from "../controls/table.js";
import { CONTROLS, PANELS } from "./kinds.js";
import { purposeText, shortcutsOf, titleParts } from "./instructions.js";
import INTERACT_CSS from "./interact.css";
import { LegendPanel, scaleLegends } from "./legend-panel.js";
import { scalesOf } from "./scales.js";
import { sentences, statedCells } from "./sentences.js";

/** @import { DrawingKind, InteractDocument, InteractState } from "../documents.js" */
/** @import { Choices, Drawing, Side, Tensor, ViewOptions } from "../types.js" */
/** @import { Control } from "./control.js" */
/** @import { Panel, PanelContent } from "./panel.js" */
/** @typedef {import("../base/page-data.js").PageData<InteractDocument>} Data */

/** @type {Partial<Record<DrawingKind, number>>} of a result, not counting leading axes of size 1 */
const MAX_AXES = { number: 0, bars: 1, words: 1, stack: 1 };
const RESULTS_PADDING = 18; // around the results
const RESULTS_GAP = 28; // between two results
const CAPTION_HEIGHT = 24; // of the line above a drawing
const NORMAL_WIDTH = 1280; // of the page; on a wider one the instrument is enlarged
const MAX_ZOOM = 1.35;
const CONTROLS_WIDTH = 340; // of sliders, menus and switches, beside the results
const HIGH_CONTROLS_WIDTH = 380; // of tables and planes, beside the results
const MAX_CONTROLS_ABOVE = 2; // sliders, menus and switches that stand above the results
const NUMBERS_WIDTH = 200; // of the numbers, beside the pictures
const MIN_PICTURE_WIDTH = 200; // of a picture beside others
const MAX_PICTURE_WIDTHS = [0, 680, 480, 380, 300]; // by the number of pictures side by side
const MIN_CARD_WIDTH = 860;

/**
 * A view of a function's arguments and results. A subclass implements `evaluate(values)`, which returns a promise of the
 * results by name, or of null if a later call made this one obsolete.
 */
export class Instrument {
  /** @type {Record<string, any>} the values of the controls for which the outputs were computed */
  values = {};
  /** @type {Panel[]} */
  panelViews = [];
  /** @type {LegendPanel[]} */
  legendPanels = [];
  /** @type {Map<string, Tensor>} what the panels showed before, by their keys */
  earlierTensors = new Map();
  /** @type {Record<string, Tensor> | null} */
  outputs = null;
  /** @type {string | null} the last requested values as JSON; `computed`: those of the outputs */
  requested = null;
  /** @type {string | null} */
  computed = null;
  changed = "";
  resting = "";
  requests = new LatestRequest();
  zoom = 1;
  close = () => {};

  /**
   * @param {HTMLElement} host
   * @param {Data} source
   * @param {Choices<InteractState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    const { controls, panels } = source.viewDocument;
    this.source = source;
    this.store = store;
    this.panels = panels;
    this.frame = new Frame(host, source.viewDocument, store, {
      ...options,
      shortcuts: shortcutsOf(source.viewDocument),
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
        new CONTROLS[spec.kind](
          { name, ...spec },
          (value) => this.set(name, value),
          frame.theme,
          (text) => frame.announce(text),
        ),
      ]),
    );
    this.stage = h("div", { class: "stage panels results" });
    const parts = Object.values(this.controls).map(({ element }) => element);
    const flat = parts.filter((element) => !element.matches(".control")); // one below another, before those that are high
    const high = parts.filter((element) => !flat.includes(element));
    this.isHigh = high.length > 0;
    this.isAbove = !high.length && flat.length <= MAX_CONTROLS_ABOVE;
    this.purpose = h("p", { class: "purpose" }, purposeText(source.viewDocument));
    this.argumentPane = h("div", { class: "controls arguments" }, this.purpose);
    const checks = flat.filter((element) => element.matches(".check"));
    const groups = { high, flat: flat.filter((element) => !checks.includes(element)), checks };
    for (const [kind, elements] of Object.entries(groups))
      if (elements.length) this.argumentPane.append(h("div", { class: `arguments ${kind}` }, ...elements));
    this.picturePane = h("div", { class: "pictures" });
    this.numberPane = h("div", { class: "numbers" });
    this.stage.append(this.picturePane, this.numberPane);
    frame.body.classList.add("studio", "instrument");
    frame.caption.hidden = true;
    frame.body.before(h("style", {}, STUDIO_CSS, WIDTHS_CSS, INTERACT_CSS));
    frame.stageBox.setAttribute("role", "group");
    this.body = h("div", { class: this.isAbove ? "layout over" : "layout" }, this.argumentPane, this.stage);
    this.sentence = h("p", { class: "summary" });
    frame.header.after(this.sentence);
    // The screen may grow while the card keeps its width.
    this.screen = new ResizeObserver(([{ contentRect }]) => this.fitScreen(contentRect.width));
    this.screen.observe(host);
    this.bar = new TopBar(
      frame,
      source.viewDocument.state,
      ["values"],
      Boolean(options.page) && options.addressed !== false,
    );
    this.makeExamples();
  }

  /** Add the author's buttons that set the controls, if there are any. */
  makeExamples() {
    const examples = (this.source.viewDocument.examples ?? []).map(([name, values]) => ({
      name,
      act: () => this.store.set({ values: { ...this.store.get("values"), ...values } }),
    }));
    if (examples.length) this.frame.body.append(exampleButtons(examples, this.bar));
  }

  /** Limit the width of a card with few results, and enlarge it on a large screen. @param {number} screen */
  fitScreen(screen) {
    const zoom = Math.min(MAX_ZOOM, Math.max(1, Math.round((20 * screen) / NORMAL_WIDTH) / 20));
    const pictures = this.panels.filter(({ kind }) => kind !== "number").length;
    const columnCount = Math.min(pictures, MAX_PICTURE_WIDTHS.length - 1);
    const controls = this.isHigh ? HIGH_CONTROLS_WIDTH : CONTROLS_WIDTH;
    const natural =
      (this.isAbove ? 0 : controls) +
      2 * RESULTS_PADDING +
      columnCount * MAX_PICTURE_WIDTHS[columnCount] +
      Math.max(0, columnCount - 1) * RESULTS_GAP +
      (pictures < this.panels.length ? NUMBERS_WIDTH + RESULTS_GAP : 0);
    this.frame.body.style.maxWidth = `${zoom * Math.max(MIN_CARD_WIDTH, natural)}px`;
    for (const control of Object.values(this.controls)) control.fit(screen, zoom);
    if (zoom === this.zoom) return;
    this.zoom = zoom;
    this.frame.body.style.setProperty("--zoom", String(zoom));
    this.show();
  }

  /** The width of the pane of results. */
  get width() {
    const padding = Number.parseFloat(getComputedStyle(this.stage).paddingLeft) || RESULTS_PADDING;
    return Math.max(220, (this.stage.clientWidth || this.frame.width) - 2 * padding);
  }

  /** Return how many pictures stand side by side, and the width of each, in rows as even as can be. */
  get columns() {
    const count = this.panelViews.filter((panel) => !(panel instanceof PANELS.number)).length;
    const least = this.zoom * MIN_PICTURE_WIDTH;
    const fits = (/** @type {number} */ width) =>
      Math.max(1, Math.min(count, 4, Math.floor((width + RESULTS_GAP) / (least + RESULTS_GAP))));
    const [fullWidth, narrower] = [this.width, this.width - this.zoom * NUMBERS_WIDTH - RESULTS_GAP];
    const beside =
      count > 0 && count < this.panelViews.length && narrower >= least && fits(narrower) === fits(fullWidth);
    const width = beside ? narrower : fullWidth;
    const columnCount = Math.ceil(count / Math.ceil(count / fits(width))) || 1;
    return { columnCount, columnWidth: Math.floor((width - (columnCount - 1) * RESULTS_GAP) / columnCount), beside };
  }

  /** @abstract @returns {Promise<Record<string, Tensor> | null>} @param {InteractState["values"]} _values */
  async evaluate(_values) {
    return null;
  }

  begin() {
    const closeFrame = this.frame.open();
    this.close = () => {
      closeFrame();
      this.screen.disconnect();
      this.bar.close();
      this.end();
    };
  }

  end() {
    this.requests.end();
  }

  /** @param {string} name @param {any} value */
  set(name, value) {
    this.changed = name;
    this.store.set({ values: { ...this.store.get("values"), [name]: value } });
  }

  async refresh() {
    const values = this.store.get("values");
    for (const [name, control] of Object.entries(this.controls)) control.show(values[name]);
    this.frame.showStage(this.body, "");
    this.frame.title.textContent = titleParts(this.source.viewDocument).main;
    const key = JSON.stringify(values);
    if (key === this.requested) return this.show(); // only the width or the colours have changed
    this.requested = key;
    const { isCurrent, accept } = this.requests.beginInOrder();
    this.stage.ariaBusy = "true";
    try {
      const outputs = key === this.computed ? this.outputs : await this.evaluate(values);
      if (!outputs || !accept()) return undefined; // a later change is being computed, or done
      const [before, last] = [this.outputs, this.values];
      [this.outputs, this.computed, this.values] = [outputs, key, values];
      this.show();
      if (before) this.announceChange(last, values);
      this.frame.updateTable();
    } catch (error) {
      if (!isCurrent()) return undefined;
      this.requested = this.computed; // the same values may be tried again
      this.frame.announce(/** @type {Error} */ (error).message);
    } finally {
      if (isCurrent()) this.stage.ariaBusy = "false";
    }
    return undefined;
  }

  /** Announce what is seen as long as nothing is pointed at. @param {string} text */
  rest(text) {
    this.resting = text;
    this.frame.announce(text);
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
    this.rest(messages.filter(Boolean).join("; "));
  }

  /** @param {string | string[]} named @param {Side} side @returns {string[]} */
  axisWords(named, side) {
    if (typeof named !== "string") return named;
    return this.controls[named][side === "columns" ? "columns" : "words"](this.values[named]);
  }

  /**
   * Yield the results as panels; one with three axes has a panel for each table.
   * @returns {Generator<PanelContent & { key: string, kind: DrawingKind }>}
   */
  *panelContents() {
    const scales = scalesOf(this.panels, this.outputs ?? {});
    for (const panel of this.panels) {
      const output = this.outputs?.[panel.result];
      if (!output) continue;
      const { result, kind, rows, columns, positions, ends, hatched } = panel;
      const tensor = withoutLeadingOnes(output, MAX_AXES[kind] ?? 2);
      const content = {
        ...panel,
        rows: this.axisWords(rows, "rows"),
        columns: this.axisWords(columns, "columns"),
        ...scales[result],
        positions: typeof positions === "string" ? this.values[positions] : positions,
        keyed: Boolean(ends ?? hatched),
      };
      if (tensor.shape.length < 3) yield { ...content, key: result, tensor };
      else
        for (let at = 0; at < tensor.shape[0]; at++)
          yield {
            ...content,
            key: `${result} ${at}`,
            title: `${panel.title} ${at}`.trim(),
            tensor: tableAt(tensor, at),
          };
    }
  }

  show() {
    if (!this.outputs) return;
    this.earlierTensors = new Map(this.panelViews.map(({ key, tensor }) => [key, tensor]));
    const parts = [...this.panelContents()];
    const announce = (/** @type {string} */ text) => this.frame.announce(text || this.resting);
    this.panelViews = parts.map(({ key, kind }) => {
      const known = this.panelViews.find((other) => other.key === key);
      return known ?? Object.assign(new PANELS[kind](this.frame.theme, announce), { key });
    });
    const { columnCount, columnWidth, beside } = this.columns;
    this.stage.classList.toggle("beside", beside);
    this.picturePane.style.setProperty("--across", String(columnCount));
    const isNumber = (/** @type {Panel} */ panel) => panel instanceof PANELS.number;
    const legends = scaleLegends(parts);
    this.legendPanels = legends.map((_, i) => this.legendPanels[i] ?? new LegendPanel(this.frame.theme));
    keep(this.picturePane, [...this.panelViews.filter((panel) => !isNumber(panel)), ...this.legendPanels]);
    keep(this.numberPane, this.panelViews.filter(isNumber));
    for (const one of [...this.panelViews, ...this.legendPanels]) one.zoom = this.zoom;
    for (const one of this.panelViews) one.stacked = columnCount === 1;
    legends.forEach((legend, i) => this.legendPanels[i].show(legend));
    const stated = statedCells(parts);
    parts.forEach((part, i) => {
      const width = isNumber(this.panelViews[i]) ? this.zoom * NUMBERS_WIDTH : columnWidth;
      this.panelViews[i].show({ ...part, stated: stated[i] }, width);
    });
    this.sentence.textContent = sentences(parts);
  }

  /** The drawing of all panels, below a line that says how the controls stand. @returns {Drawing} */
  get drawing() {
    const from = this.stage.getBoundingClientRect();
    const line = Object.entries(this.controls)
      .map(([name, control]) => `${label(control.name, 40)} = ${control.describe(this.values[name])}`)
      .join("   ");
    const available = Math.max(this.width / this.zoom, 240);
    const caption =
      textWidth(line, 12) > available
        ? `${line.slice(0, Math.max(20, Math.floor((line.length * available) / textWidth(line, 12)) - 1))}…`
        : line;
    const placed = [...this.panelViews, ...this.legendPanels].map((panel) => {
      const { left, top } = panel.canvas.getBoundingClientRect();
      const { top: above } = panel.element.getBoundingClientRect();
      const offsets = [left - from.left, top - from.top, above - from.top].map((at) => at / this.zoom);
      const moved = [offsets[0], offsets[1] + CAPTION_HEIGHT, offsets[2] + CAPTION_HEIGHT];
      return /** @type {[Panel | LegendPanel, number, number, number]} */ ([panel, ...moved]);
    });
    return {
      width: Math.max(textWidth(caption, 12), ...placed.map(([panel, x]) => x + panel.width)),
      height: Math.max(CAPTION_HEIGHT, ...placed.map(([panel, , y]) => y + panel.height)),
      draw: (pen) => {
        pen.text(0, 8, caption, { fill: this.frame.theme.soft, size: 12 });
        for (const [panel, x, y, above] of placed) {
          const lines = wrapped(excerpt(panel.title, 120), Math.max(panel.width, MIN_PICTURE_WIDTH), 13);
          lines.forEach((text, n) =>
            pen.text(x, above + 9 + 19 * n, text, { fill: this.frame.theme.ink, size: 13, bold: true }),
          );
          pen.drawAt(x, y, () => panel.paint(pen));
        }
      },
    };
  }
}

/**
 * Put the elements of panels into a container, unless they are there already.
 * @param {HTMLElement} container
 * @param {(Panel | LegendPanel)[]} panels
 */
function keep(container, panels) {
  container.hidden = !panels.length;
  const known =
    panels.length === container.childElementCount && panels.every((one, i) => container.children[i] === one.element);
  if (!known) container.replaceChildren(...panels.map(({ element }) => element));
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

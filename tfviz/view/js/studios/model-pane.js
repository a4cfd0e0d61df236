// A component that draws all heads of a model as small maps: layers are columns. One head is selected; any can be
// switched off.

/** @import { Theme } from "../base/theme.js" */

import { clamp, formatFixed } from "../base/numbers.js";
import { smallMapTheme } from "../base/theme.js";
import { button, h } from "../base/elements.js";
import { consume, hasModifier } from "../base/events.js";
import { ABSENT, Grid, ALLOWED } from "../base/grid.js";
import { paint } from "../base/paint.js";
import { cornerTag } from "../views/head-tags.js";

const MAX_SIDE = 128; // pixels
const [TAG_SIZE, MIN_TAGGED_SIDE] = [12, 72]; // pixels of a letter of a tag; of a map with room for one
const [TAGGING_DELAY, MAX_TAGGED_LENGTH] = [200, 300]; // milliseconds after the last change; tokens: of more, tags would take too long
const MIN_SIDE = 22;
const [WIDE, MIN_GROWTH, MAX_GROWTH] = [464, 1.1, 1.5]; // the width of several groups on a large screen, and how much larger their maps may be there
export const MIN_NAMED_SIDE = 40; // of maps that have room for "layer" and "head" beside a number
const MIN_CROSSED_SIDE = 56; // of maps that have room for a cross in a corner
const [MAX_WIDTH, MAX_HEIGHT] = [368, 344]; // pixels of the pane, where all maps fit
const [GAP, BAR_GAP, GROUP_GAP] = [6, 10, 18]; // pixels between maps, with room for a bar, and between groups

/**
 * @typedef {{ name: string, sites: string[], heads: number }} Group layers whose heads are shown together
 * @typedef {{ part: number, layer: number, head: number }} HeadAddress
 * @typedef {object} Handlers
 * @property {(address: HeadAddress) => void} select
 * @property {(address: HeadAddress) => void} toggleHead select a head, and switch it off, or on
 * @property {(site: string, heads: number[]) => void} toggle switch these heads of a layer off, or on if all are off
 */

/** A table of small maps with a button for each head. */
export class ModelPane {
  /** @type {Group[]} */
  groups = [];
  /** @type {Map<string, HTMLElement>} by "part.layer.head" */
  cells = new Map();
  key = "";
  side = MAX_SIDE; // pixels of a map's side
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  tagging = undefined;
  cellSide = 0; // the same as the page lays it out, larger on a large screen; 0: not measured

  /**
   * @param {Theme} theme
   * @param {Handlers} handlers
   */
  constructor(theme, handlers) {
    this.theme = theme;
    this.handlers = handlers;
    this.element = h("div", { class: "model", role: "group", "aria-label": "Heads of the model" });
    this.element.onkeydown = (/** @type {KeyboardEvent} */ event) => this.press(event);
    this.watcher = new ResizeObserver(() => (this.cellSide = 0));
  }

  /**
   * @param {object} state
   * @param {Group[]} state.groups
   * @param {(address: HeadAddress) => Grid} state.grid the map of a head
   * @param {any[][]} state.ablatedHeads [site, head]
   * @param {HeadAddress} state.selected the head that is looked at
   * @param {(address: HeadAddress) => number | null} state.row a query to mark in the map of a head
   */
  show({ groups, grid, ablatedHeads, selected, row }) {
    this.groups = groups;
    this.makeCells();
    const without = new Set(ablatedHeads.map(String));
    this.measure();
    for (const [key, cell] of this.cells) {
      const address = addressOf(key);
      const isAblated = without.has(`${groups[address.part].sites[address.layer]},${address.head}`);
      this.markCell(cell, address, isAblated, selected);
      const canvas = /** @type {HTMLCanvasElement} */ (cell.querySelector("canvas"));
      this.drawCell(canvas, grid(address), isAblated ? null : row(address));
    }
    for (const layer of this.element.querySelectorAll(".layer > button")) {
      const { site, heads } = /** @type {HTMLElement} */ (layer).dataset;
      const all = Array.from({ length: Number(heads) }, (_, head) => without.has(`${site},${head}`));
      layer.setAttribute("aria-pressed", String(all.every(Boolean)));
    }
    clearTimeout(this.tagging); // a key must not wait for the tags
    this.tagging = setTimeout(() => this.tagCells(grid), TAGGING_DELAY);
  }

  /** Return the side of a map as the page lays it out, in pixels, measured again after a change; 0 outside of a page. */
  measure() {
    const [firstCell] = this.cells.values();
    this.cellSide ||= firstCell?.clientWidth ?? 0;
    return this.cellSide;
  }

  /** Write into each map what its head looks at, where there is room. @param {(address: HeadAddress) => Grid} grid */
  tagCells(grid) {
    const side = this.measure() || this.side;
    for (const [key, cell] of this.cells) {
      const map = grid(addressOf(key));
      const isLong = map.rows.length > MAX_TAGGED_LENGTH;
      cell.dataset.tag = isLong || side < MIN_TAGGED_SIDE ? "" : cornerTag(map, side, TAG_SIZE);
    }
  }

  /**
   * Show below each map, as a bar, what the answer loses without its head; a gain is a hollow bar.
   * @param {Map<string, number>} losses by the key of the address; without bars if it is empty
   * @param {number} limit the loss of a full bar
   * @param {string} unit
   */
  showImportance(losses, limit, unit) {
    this.element.classList.toggle("measured", losses.size > 0);
    for (const [key, cell] of this.cells) {
      const loss = losses.get(key);
      cell.classList.toggle("gain", (loss ?? 0) < 0);
      cell.style.setProperty("--loss", loss === undefined || !limit ? "0" : String(Math.abs(loss) / limit));
      const head = /** @type {HTMLButtonElement} */ (cell.firstChild);
      if (loss === undefined) continue;
      const change = `${formatFixed(Math.abs(loss), 2)} ${unit} ${loss < 0 ? "gained" : "lost"}`;
      head.title = `${head.title.split("\n")[0]}\nwithout it: ${change}`;
    }
  }

  /** Make the elements, anew only for another model. */
  makeCells() {
    const key = JSON.stringify(this.groups);
    if (key === this.key) return;
    this.key = key;
    this.cells.clear();
    const columns = this.groups.reduce((sum, { sites }) => sum + sites.length, 0);
    const rows = Math.max(...this.groups.map(({ heads }) => heads));
    const fitting = (/** @type {number} */ available, /** @type {number} */ count, gap = GAP) =>
      Math.floor((available - gap * (count - 1)) / count);
    const width = MAX_WIDTH - (GROUP_GAP - GAP) * (this.groups.length - 1);
    this.side = clamp(Math.min(fitting(width, columns), fitting(MAX_HEIGHT, rows, BAR_GAP)), MIN_SIDE, MAX_SIDE);
    this.element.style.setProperty("--side", `${this.side}px`);
    const gaps = MAX_WIDTH - width + GAP * (columns - 1);
    const growth = clamp((WIDE - gaps) / (columns * this.side), MIN_GROWTH, MAX_GROWTH);
    this.element.style.setProperty("--wide", growth.toFixed(2));
    this.element.style.setProperty("--columns", String(columns));
    this.element.style.setProperty("--groups", String(this.groups.length));
    this.element.classList.toggle("several", this.groups.length > 1);
    this.element.classList.toggle("small", this.side < MIN_CROSSED_SIDE);
    this.element.replaceChildren(...this.groups.map((group, part) => this.makeGroup(group, part)));
    this.cellSide = 0;
    this.watcher.disconnect();
    const [firstCell] = this.cells.values();
    if (firstCell) this.watcher.observe(firstCell);
  }

  /**
   * @param {Group} group
   * @param {number} part
   */
  makeGroup({ name, sites, heads }, part) {
    const layers = sites.map((site, layer) => {
      const toggle = () => this.handlers.toggle(site, [...Array(heads).keys()]);
      const title = `${this.prefixOf(part)}layer ${layer}: switch all its heads off or on`;
      const word = this.side < MIN_NAMED_SIDE ? null : h("span", {}, "layer\u00a0"); // left out on a narrow screen
      return h(
        "div",
        { class: "layer" },
        button([word, String(layer)], toggle, { title, "aria-label": title, "data-site": site, "data-heads": heads }),
        ...Array.from({ length: heads }, (_, head) => this.makeCell({ part, layer, head })),
      );
    });
    const several = this.groups.length > 1;
    const numbered = part === 0 || heads !== this.groups[0].heads; // groups beside each other share their names
    const columns = [...(numbered ? [this.makeNames(heads)] : []), ...layers];
    const layersElement = h("div", { class: "layers", style: `--heads: ${heads}` }, ...columns);
    return h("div", { class: "heads" }, several ? h("b", {}, name) : null, layersElement);
  }

  /** Make the names of the rows of maps. @param {number} heads */
  makeNames(heads) {
    const name = (/** @type {number} */ head) => (this.side < MIN_NAMED_SIDE ? String(head) : `head ${head}`);
    const names = Array.from({ length: heads }, (_, head) => h("span", {}, name(head)));
    return h("div", { class: "head-names", "aria-hidden": "true" }, h("span", {}), ...names);
  }

  /** @param {HeadAddress} address */
  makeCell(address) {
    const look = button(h("canvas", {}), () => this.handlers.select(address), { class: "head" });
    const off = button("×", () => this.handlers.toggleHead(address), {
      class: "ablate",
      tabIndex: -1,
      "aria-hidden": "true",
    });
    const cell = h("div", { class: "cell" }, look, off, h("span", { class: "importance", "aria-hidden": "true" }));
    this.cells.set(keyOf(address), cell);
    return cell;
  }

  /** @param {number} part */
  prefixOf(part) {
    return this.groups.length > 1 ? `${this.groups[part].name}, ` : "";
  }

  /**
   * @param {HTMLElement} cell
   * @param {HeadAddress} address
   * @param {boolean} isAblated
   * @param {HeadAddress} selected
   */
  markCell(cell, address, isAblated, selected) {
    const chosen = keyOf(address) === keyOf(selected);
    const head = /** @type {HTMLButtonElement} */ (cell.firstChild);
    const cross = /** @type {HTMLButtonElement} */ (cell.children[1]);
    cross.textContent = isAblated ? "+" : "×";
    cross.title = isAblated ? "switch it on" : "switch it off";
    cell.classList.toggle("off", isAblated);
    cell.classList.toggle("chosen", chosen);
    const name = `${this.prefixOf(address.part)}head ${address.head} of layer ${address.layer}, ${isAblated ? "off" : "on"}`;
    head.setAttribute("aria-label", name);
    head.title = `${name}: click to look, x to switch it ${isAblated ? "on" : "off"}`;
    head.toggleAttribute("aria-current", chosen);
    if (chosen) head.setAttribute("aria-current", "true");
    head.tabIndex = chosen ? 0 : -1;
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Grid} grid
   * @param {number | null} row
   */
  drawCell(canvas, grid, row) {
    const ratio = globalThis.devicePixelRatio || 1;
    const side = Math.round((this.cellSide || this.side) * ratio);
    if (canvas.width !== side) [canvas.width, canvas.height] = [side, side];
    const state = grid.state.map((kind) => (kind === ALLOWED ? ALLOWED : ABSENT)); // a small map has no room for hatching
    const unhatched = new Grid(grid.rows, grid.columns, grid.codes, state);
    const window = { x: 0, y: 0, width: grid.columns.length, height: grid.rows.length };
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.putImageData(paint(unhatched, window, side, side, smallMapTheme(this.theme), ratio), 0, 0);
    if (row === null || row >= grid.rows.length) return;
    const rowHeight = side / grid.rows.length;
    pen.strokeStyle = this.theme.soft;
    pen.lineWidth = ratio;
    pen.strokeRect(ratio / 2, row * rowHeight - ratio / 2, side - ratio, rowHeight + ratio);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const cell = /** @type {HTMLElement} */ (event.target).closest(".cell");
    if (!cell || hasModifier(event)) return;
    const [key] = [...this.cells].find(([, other]) => other === cell) ?? [""];
    const address = addressOf(key);
    if (event.key === "x") this.handlers.toggleHead(address);
    else if (!this.moveFocus(event.key, address)) return;
    consume(event);
  }

  /**
   * Move the focus to a neighbour.
   * @param {string} key
   * @param {HeadAddress} address
   */
  moveFocus(key, { part, layer, head }) {
    /** @type {Record<string, HeadAddress>} */
    const addresses = {
      ArrowUp: { part, layer, head: head - 1 },
      ArrowDown: { part, layer, head: head + 1 },
      ArrowLeft: layer
        ? { part, layer: layer - 1, head }
        : { part: part - 1, layer: (this.groups[part - 1]?.sites.length ?? 0) - 1, head },
      ArrowRight:
        layer + 1 < this.groups[part].sites.length
          ? { part, layer: layer + 1, head }
          : { part: part + 1, layer: 0, head },
    };
    const next = addresses[key];
    if (!next) return false;
    /** @type {HTMLElement | null | undefined} */ (this.cells.get(keyOf(next))?.firstChild)?.focus();
    return true;
  }
}

/** @type {(address: HeadAddress) => string} */
export const keyOf = ({ part, layer, head }) => `${part}.${layer}.${head}`;

/** @type {(key: string) => HeadAddress} */
function addressOf(key) {
  const [part, layer, head] = key.split(".").map(Number);
  return { part, layer, head };
}

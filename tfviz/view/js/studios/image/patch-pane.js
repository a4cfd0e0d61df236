// A pane with a picture whose patches are shaded by numbers, and can be pointed at and hidden by pointer and keys.

import { chartCanvas, h } from "../../base/elements.js";
import { cellAfterKey, consume, followPointer, hasModifier } from "../../base/events.js";
import { clamp, formatFixed } from "../../base/numbers.js";
import { CanvasPen, devicePixels } from "../../base/pen.js";
import { SourceImage, reveal, tint } from "../../base/source-image.js";
import { gradient } from "../small-elements.js";

/** @import { ImageSpec, Patches } from "../../documents.js" */
/** @import { Grid } from "../../base/grid.js" */
/** @import { Theme } from "../../base/theme.js" */
/** @import { Pen } from "../../types.js" */
/**
 * @typedef {object} PatchHandlers
 * @property {(patch: number | null) => void} point
 * @property {(hidden: number[]) => void} hide the patches that are hidden now
 * @property {(stroke: () => Promise<void>) => void} group makes a stroke one step of the history
 */

const [MAX_WIDTH, MAX_HEIGHT] = [480, 372]; // pixels
// On a telephone the answer stands below the picture, on one screen; on a large screen both are larger.
const SIZES = [
  { maxWidth: 420, scale: 0.68 },
  { maxWidth: 640, scale: 1 },
  { maxWidth: Infinity, scale: 1.45 },
];
const INITIAL_WIDTH = 300;
const BADGE = 14; // pixels of the square with a patch's rank
const SMALL_PATCH = 36; // pixels: its outline is thinner
const GRID_LINES = [
  ["#fff", 0.6, -0.5],
  ["#000", 0.3, 0],
];

/** A pane with a picture and a cursor over its patches. */
export class PatchPane {
  /** @type {number | null} the patch under the pointer or the cursor */
  pointed = null;
  /** The position of the keyboard cursor. */
  cursor = 0;
  /** @type {Set<number>} */
  hidden = new Set();
  /** @type {number[]} the patches that are looked at most, strongest first */
  attended = [];
  /** @type {Grid | null} what the patches are shaded by */
  grid = null;
  /** @type {{ hides: boolean, earlier: number[], end: () => void } | null} a stroke of the pointer */
  stroke = null;
  /** @type {{ key: string, image: ImageData } | null} the pixels drawn last */
  painted = null;
  width = INITIAL_WIDTH;
  height = INITIAL_WIDTH;

  /** @param {Theme} theme @param {ImageSpec} picture @param {Patches} patches @param {PatchHandlers} handlers */
  constructor(theme, picture, patches, handlers) {
    this.theme = theme;
    this.patches = patches;
    this.handlers = handlers;
    this.source = new SourceImage(picture);
    const { rows, columns } = patches;
    const name = `Picture in ${rows} × ${columns} patches: arrows move, Space hides a patch or brings it back`;
    this.canvas = chartCanvas(name);
    this.element = h("div", { class: "patches" }, this.canvas);
    followPointer(
      this.canvas,
      (event) => this.pointerMoved(event),
      () => this.stroke || this.point(null),
    );
    this.canvas.addEventListener("pointerdown", (event) => this.beginStroke(event));
    this.canvas.onpointerup = (event) => this.endStroke(event);
    this.canvas.onpointercancel = () => this.cancelStroke();
    this.canvas.onkeydown = (event) => this.press(event);
    this.canvas.onfocus = () => this.canvas.matches(":focus-visible") && this.point(this.cursor);
    this.canvas.onblur = () => this.point(null);
  }

  /** @param {PointerEvent} event */
  patchAt({ clientX, clientY }) {
    const { rows, columns } = this.patches;
    const box = this.canvas.getBoundingClientRect();
    const at = (/** @type {number} */ share, /** @type {number} */ count) =>
      clamp(Math.floor(share * count), 0, count - 1);
    return at((clientY - box.top) / box.height, rows) * columns + at((clientX - box.left) / box.width, columns);
  }

  /** @param {number | null} patch */
  point(patch) {
    if (patch === this.pointed) return;
    this.pointed = patch;
    if (patch !== null) this.cursor = patch;
    this.handlers.point(patch);
  }

  /** @param {PointerEvent} event */
  pointerMoved(event) {
    const patch = this.patchAt(event);
    if (this.stroke) for (const crossed of this.between(this.cursor, patch)) this.setHidden(crossed, this.stroke.hides);
    this.point(patch);
  }

  /**
   * Return the patches on the line from one to another, both included, since a fast pointer skips some.
   * @param {number} from
   * @param {number} to
   */
  between(from, to) {
    const { columns } = this.patches;
    const [row, column] = [Math.floor(from / columns), from % columns];
    const [rowStep, columnStep] = [Math.floor(to / columns) - row, (to % columns) - column];
    const steps = Math.max(1, Math.abs(rowStep), Math.abs(columnStep));
    return Array.from({ length: steps + 1 }, (_, i) => {
      const [y, x] = [rowStep, columnStep].map((step) => Math.round((step * i) / steps));
      return (row + y) * columns + column + x;
    });
  }

  /**
   * Begin a stroke, which hides or shows all patches that it crosses, depending on the first.
   * @param {PointerEvent} event
   */
  beginStroke(event) {
    if (event.button) return;
    const patch = this.patchAt(event);
    const earlier = [...this.hidden];
    this.cursor = patch;
    this.canvas.setPointerCapture(event.pointerId);
    this.handlers.group(
      () =>
        new Promise((end) => {
          this.stroke = { hides: !this.hidden.has(patch), earlier, end };
          this.setHidden(patch, this.stroke.hides);
        }),
    );
  }

  /** @param {PointerEvent} event */
  endStroke({ pointerType }) {
    this.stroke?.end();
    this.stroke = null;
    if (pointerType === "touch") this.point(null);
  }

  /** Revert a stroke that turned out to be a scroll of the page. */
  cancelStroke() {
    if (this.stroke) this.handlers.hide(this.stroke.earlier);
    this.endStroke(/** @type {PointerEvent} */ ({ pointerType: "touch" }));
  }

  /** @param {number} patch @param {boolean} hides */
  setHidden(patch, hides) {
    if (this.hidden.has(patch) === hides) return;
    if (hides) this.hidden.add(patch);
    else this.hidden.delete(patch);
    this.handlers.hide([...this.hidden]);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (hasModifier(event)) return;
    const { rows, columns } = this.patches;
    const cell = [Math.floor(this.cursor / columns), this.cursor % columns];
    const next = cellAfterKey(event.key, cell, [rows, columns]);
    if (next) this.point(next[0] * columns + next[1]);
    else if (HIDE_KEYS.has(event.key)) {
      this.point(this.cursor);
      this.handlers.group(async () => this.setHidden(this.cursor, !this.hidden.has(this.cursor)));
    } else if (event.key === "Escape") this.point(null);
    else return;
    consume(event);
  }

  /** @param {number[]} hidden @param {Grid | null} grid @param {number[]} attended the patches that are outlined and numbered */
  show(hidden, grid, attended = []) {
    this.attended = attended;
    this.hidden = new Set(hidden);
    this.grid = grid;
    const { width, height } = this.source;
    const maxWidth = this.element.clientWidth || INITIAL_WIDTH;
    const scale = SIZES.find((size) => maxWidth < size.maxWidth)?.scale ?? 1;
    this.width = Math.floor(Math.min(maxWidth, scale * MAX_WIDTH, (scale * MAX_HEIGHT * width) / height));
    this.height = Math.round((this.width * height) / width);
    this.paint(new CanvasPen(this.canvas, this.width, this.height));
  }

  /** @param {Pen} pen */
  paint(pen) {
    const { theme, patches, hidden, attended, pointed } = this;
    const [patchWidth, patchHeight] = [this.width / patches.columns, this.height / patches.rows];
    pen.image(this.pixels(pen.ratio), 0, 0);
    // a light line beside a dark one is seen on any picture
    for (const [fill, alpha, shift] of /** @type {[string, number, number][]} */ (GRID_LINES)) {
      for (let row = 1; row < patches.rows; row++)
        pen.rect(0, row * patchHeight + shift, this.width, 0.5, { fill, alpha });
      for (let column = 1; column < patches.columns; column++)
        pen.rect(column * patchWidth + shift, 0, 0.5, this.height, { fill, alpha });
    }
    const corner = (/** @type {number} */ patch) => [
      (patch % patches.columns) * patchWidth,
      Math.floor(patch / patches.columns) * patchHeight,
    ];
    for (const patch of hidden) {
      const [x, y] = corner(patch);
      pen.line(x + 0.3 * patchWidth, y + 0.3 * patchHeight, x + 0.7 * patchWidth, y + 0.7 * patchHeight, {
        stroke: theme.ink,
        lineWidth: 1.5,
      });
      pen.line(x + 0.3 * patchWidth, y + 0.7 * patchHeight, x + 0.7 * patchWidth, y + 0.3 * patchHeight, {
        stroke: theme.ink,
        lineWidth: 1.5,
      });
    }
    const halo = Math.min(patchWidth, patchHeight) < SMALL_PATCH ? 4.5 : 5.5;
    const outline = (/** @type {number} */ patch, /** @type {string} */ stroke) => {
      const [x, y] = corner(patch);
      for (const [ink, lineWidth] of /** @type {[string, number][]} */ ([
        [theme.page, halo],
        [stroke, halo - 3],
      ]))
        pen.rect(x + 1, y + 1, patchWidth - 2, patchHeight - 2, { stroke: ink, lineWidth });
    };
    for (const patch of attended) outline(patch, theme.ramp);
    // no outline of another patch lies over a number
    if (attended.length > 1) attended.forEach((patch, i) => this.number(pen, i + 1, corner(patch)));
    if (pointed !== null) outline(pointed, theme.ink);
  }

  /** Write a patch's rank into its corner. @param {Pen} pen @param {number} rank @param {number[]} corner */
  number(pen, rank, [x, y]) {
    const { theme } = this;
    pen.rect(x + 1, y + 1, BADGE, BADGE, { fill: theme.ramp });
    pen.text(x + 1 + BADGE / 2, y + 1.5 + BADGE / 2, String(rank), { fill: theme.page, align: "center", bold: true });
  }

  /**
   * Return the picture's pixels, painted anew only where content, size or colours have changed.
   * @param {number} ratio
   */
  pixels(ratio) {
    const { grid, theme, patches, hidden } = this;
    const [width, height] = devicePixels([this.width, this.height], ratio);
    const key = `${width} ${height} ${theme.key} ${[...hidden]} ${grid?.scale} ${grid?.limit} ${grid?.codes}`;
    if (this.painted?.key === key) return this.painted.image;
    const cells = [...hidden].map((patch) => [Math.floor(patch / patches.columns), patch % patches.columns]);
    const covered = { ...patches, cells };
    const image = this.source.paint(grid, width, height, theme, ratio, covered, grid?.diverging ? tint : reveal);
    this.painted = { key, image };
    return image;
  }
}

const HIDE_KEYS = new Set([" ", "Enter", "Delete", "Backspace"]);

/**
 * Make the elements of a colour scale.
 * @param {Theme} theme
 * @param {Grid} grid
 * @param {string} label the label whose log-odds change
 */
export function scaleParts(theme, grid, label) {
  if (grid.diverging) {
    const title = `full colour: ${formatFixed(grid.limit, 1)} of log-odds`;
    const [low, high] = ["less likely", "more likely"].map((text) => h("output", {}, text));
    return [h("span", { title }, `Each patch makes ${label}`), low, gradient(theme.lut(grid)), high];
  }
  return ["Darkened where the chosen head looks less."]; // how much is said by the small maps
}

// The input of a heatmap's canvas: mouse, touch and key events become calls of `handlers`. Nothing is listened to outside
// the canvas.

import {
  ARROW_STEPS,
  cellAfterKey,
  consume,
  followPointer,
  followWheel,
  hasModifier,
  pointIn,
} from "../base/events.js";
import { clamp } from "../base/numbers.js";

/** @import { Cell, Handlers, Point } from "../types.js" */
/** @import { Heatmap } from "./heatmap.js" */
/**
 * @typedef {Pick<Handlers, "lock" | "leave"> & { point(cell: Point | null): void, changed(): void }} PointingHandlers
 */

const MIN_DRAG = 4; // pixels; a shorter way is a click
const ZOOM_STEP = 1.5;
const [STEP, LONG_STEP] = [1, 10]; // cells of an arrow key

/** A listener to pointer and keys on the canvas of a heatmap. */
export class HeatmapInput {
  /** @type {Point | null} the cell that the keys start from */
  cursor = null;
  /** @type {{ from: [number, number], isDragged: boolean, isFirstTap: boolean } | null} a button that is held */
  press = null;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Heatmap} map
   * @param {PointingHandlers} handlers
   */
  constructor(canvas, map, handlers) {
    this.canvas = canvas;
    this.map = map;
    this.handlers = handlers;
    canvas.onpointerdown = (event) => this.startPress(event);
    canvas.onpointerup = (event) => this.endPress(event);
    followPointer(
      canvas,
      (event) => this.movePointer(event),
      () => handlers.point(null),
    );
    followWheel(canvas, (factor, event) => {
      map.zoom(factor, ...this.fractions(pointIn(canvas, event)));
      handlers.changed();
    });
    canvas.onkeydown = (event) => this.pressKey(event);
    canvas.onfocus = () => this.pointAt(this.start);
    canvas.onblur = () => handlers.point(null);
  }

  /** The cell under the cursor, within the map; the first one before there is a cursor. @returns {Point} */
  get start() {
    const { rows, columns } = this.map.grid;
    const [row, col] = this.cursor ?? [0, 0];
    return [Math.min(row, rows.length - 1), Math.min(col, columns.length - 1)];
  }

  /** @param {PointerEvent} event */
  startPress(event) {
    const from = pointIn(this.canvas, event);
    const cell = this.map.cell(...from);
    const isFirstTap = event.pointerType === "touch" && isCell(cell) && String(cell) !== String(this.cursor);
    this.press = { from, isDragged: false, isFirstTap };
    if (this.map.zoomed) this.canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  movePointer(event) {
    const point = pointIn(this.canvas, event);
    if (this.drag(point, event.buttons)) return;
    const cell = this.map.cell(...point);
    if (isCell(cell)) this.pointAt(cell);
    else this.handlers.point(null);
  }

  /**
   * Pan a map that is zoomed while a button is held; return whether it moved.
   * @param {[number, number]} point
   * @param {number} buttons
   */
  drag(point, buttons) {
    const { map, press } = this;
    if (!press || !map.zoomed || !buttons) return false;
    const [dx, dy] = [press.from[0] - point[0], press.from[1] - point[1]];
    if (!press.isDragged && Math.abs(dx) + Math.abs(dy) <= MIN_DRAG) return false;
    map.pan((dx / map.mapWidth) * map.window.width, (dy / map.mapHeight) * map.window.height);
    this.press = { ...press, from: point, isDragged: true };
    this.handlers.changed();
    return true;
  }

  /** Lock what was clicked, but after neither a drag nor a first tap, which reads the cell. @param {PointerEvent} event */
  endPress(event) {
    const { press } = this;
    this.press = null;
    if (press?.isDragged || press?.isFirstTap) return;
    const [row, col] = this.map.cell(...pointIn(this.canvas, event));
    if (row !== null && (col === null || !event.shiftKey)) this.handlers.lock("rows", row);
    else if (col !== null) this.handlers.lock("columns", col);
  }

  /** @param {KeyboardEvent} event */
  pressKey(event) {
    if (hasModifier(event) && !(event.ctrlKey && !event.metaKey && !event.altKey && ARROW_STEPS[event.key])) return;
    const cell = this.cellAfter(event);
    if (cell) {
      this.map.reveal(cell);
      this.pointAt(cell);
    } else if (this.act(event)) this.handlers.changed();
    else return;
    consume(event);
  }

  /** Do what a key stands for; return whether it stands for anything. @param {KeyboardEvent} event */
  act({ key, shiftKey }) {
    const { map, handlers, start } = this;
    const [axis, index] = shiftKey ? /** @type {const} */ (["columns", 1]) : /** @type {const} */ (["rows", 0]);
    /** @type {Record<string, () => void>} */
    const actions = {
      "+": () => this.zoom(ZOOM_STEP),
      "=": () => this.zoom(ZOOM_STEP),
      "-": () => this.zoom(1 / ZOOM_STEP),
      0: () => map.fit(),
      Enter: () => handlers.lock("rows", start[0]),
      " ": () => handlers.lock(axis, start[index]),
      c: () => handlers.lock("columns", start[1]),
      Escape: () => handlers.leave(),
    };
    const action = actions[key] ?? actions[key.toLowerCase()];
    action?.();
    return Boolean(action);
  }

  /** Zoom in on the cell under the cursor, or out from it. @param {number} factor */
  zoom(factor) {
    const [row, col] = this.start;
    const [across, down] = this.fractions(this.map.box(row + 0.5, col + 0.5));
    this.map.zoom(factor, clamp(across, 0, 1), clamp(down, 0, 1));
  }

  /** Return the cell that a key leads to; null for other keys. @param {KeyboardEvent} event @returns {Point | null} */
  cellAfter({ key, shiftKey, ctrlKey }) {
    if (!this.cursor && ARROW_STEPS[key]) return this.start; // the first arrow shows where the cursor is
    const { rows, columns } = this.map.grid;
    return cellAfterKey(key, this.start, [rows.length, columns.length], shiftKey || ctrlKey ? LONG_STEP : STEP);
  }

  /** Move the cursor to a cell, and point at it. @param {Point} cell */
  pointAt(cell) {
    this.cursor = cell;
    this.handlers.point(cell);
  }

  /** Return where a point of the canvas lies in the map, as fractions. @param {number[]} point @returns {[number, number]} */
  fractions([x, y]) {
    const { left, top, mapWidth, mapHeight } = this.map;
    return [(x - left) / mapWidth, (y - top) / mapHeight];
  }
}

/** @param {Cell} cell @returns {cell is [number, number]} whether it lies on neither axis's words */
const isCell = (cell) => !cell.includes(null);

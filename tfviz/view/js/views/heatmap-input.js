// A function that translates mouse, touch and key events on a heatmap's canvas into calls of `handlers`. Nothing is
// listened to outside the canvas.

import { ARROW_STEPS, consume, followPointer, pointIn } from "../base/events.js";
import { clamp } from "../base/numbers.js";

/** @import { Cell, Handlers, Point } from "../types.js" */
/**
 * @typedef {Pick<Handlers, "lock" | "leave"> & { point(cell: Point | null): void, changed(): void }} PointingHandlers
 */

/**
 * Listen to pointer and keys on the canvas of a heatmap.
 * @param {HTMLCanvasElement} canvas
 * @param {import("./heatmap.js").Heatmap} map
 * @param {PointingHandlers} handlers
 */
export function listenToHeatmap(canvas, map, handlers) {
  /** @type {{ at: number[], moved: boolean, reads: boolean } | null} */
  let held = null;
  /** @type {Point | null} */
  let cursor = null;

  /** @param {MouseEvent} event @returns {[number, number]} */
  const place = (event) => pointIn(canvas, event);
  /** @param {number[]} point */
  const share = ([x, y]) => [(x - map.left) / map.mapWidth, (y - map.top) / map.mapHeight];

  canvas.onpointerdown = (event) => {
    const cell = map.cell(...place(event));
    const reads = event.pointerType === "touch" && isCell(cell) && String(cell) !== String(cursor);
    held = { at: place(event), moved: false, reads }; // a first tap reads a cell, a second locks its row
    if (map.zoomed) canvas.setPointerCapture(event.pointerId);
  };
  /** @param {PointerEvent} event */
  const points = (event) => {
    const [x, y] = place(event);
    if (held && map.zoomed && event.buttons) {
      const [dx, dy] = [held.at[0] - x, held.at[1] - y];
      if (held.moved || Math.abs(dx) + Math.abs(dy) > 4) {
        map.pan((dx / map.mapWidth) * map.window.width, (dy / map.mapHeight) * map.window.height);
        held = { ...held, at: [x, y], moved: true };
        return handlers.changed();
      }
    }
    const cell = map.cell(x, y);
    cursor = isCell(cell) ? cell : cursor;
    return handlers.point(isCell(cell) ? cell : null);
  };
  followPointer(canvas, points, () => handlers.point(null));
  canvas.onpointerup = (event) => {
    const read = held?.moved || held?.reads;
    held = null;
    if (read) return;
    const [row, col] = map.cell(...place(event));
    if (row !== null && (col === null || !event.shiftKey)) handlers.lock("rows", row);
    else if (col !== null) handlers.lock("cols", col);
  };
  canvas.onwheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
    event.preventDefault();
    const [across, down] = share(place(event));
    map.zoom(2 ** (-event.deltaY / 200), across, down);
    handlers.changed();
  };

  /** @type {Record<string, (event: KeyboardEvent) => void>} */
  const keys = {
    "+": () => zoom(1.5),
    "=": () => zoom(1.5),
    "-": () => zoom(1 / 1.5),
    0: () => map.fit(),
    Enter: () => handlers.lock("rows", at()[0]),
    " ": (event) => (event.shiftKey ? handlers.lock("cols", at()[1]) : handlers.lock("rows", at()[0])),
    c: () => handlers.lock("cols", at()[1]),
    Escape: () => handlers.leave(),
  };
  /** @returns {Point} */
  const at = () =>
    (cursor = [
      Math.min(cursor?.[0] ?? 0, map.grid.rows.length - 1),
      Math.min(cursor?.[1] ?? 0, map.grid.cols.length - 1),
    ]);
  /** Zoom in on the cell under the cursor, or out from it. @param {number} factor */
  const zoom = (factor) => {
    const [x, y] = map.box(at()[0] + 0.5, at()[1] + 0.5);
    const [across, down] = share([x, y]).map((v) => clamp(v, 0, 1));
    map.zoom(factor, across, down);
  };

  /** Return the cell that a key leads to; null for other keys. @param {KeyboardEvent} event @returns {Point | null} */
  const cellAfterKey = ({ key, shiftKey, ctrlKey }) => {
    const [lastRow, lastCol] = [map.grid.rows.length - 1, map.grid.cols.length - 1];
    if (key === "Home") return [at()[0], 0];
    if (key === "End") return [at()[0], lastCol];
    if (!ARROW_STEPS[key]) return null;
    if (!cursor) return at(); // the first arrow shows where the cursor is
    const by = shiftKey || ctrlKey ? 10 : 1;
    const [row, col] = at();
    const [down, right] = ARROW_STEPS[key];
    return [clamp(row + down * by, 0, lastRow), clamp(col + right * by, 0, lastCol)];
  };

  canvas.onkeydown = (event) => {
    if (event.metaKey || event.altKey || (event.ctrlKey && !ARROW_STEPS[event.key])) return;
    const cell = cellAfterKey(event);
    const act = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (cell) {
      cursor = cell;
      map.reveal(cell);
      handlers.point(cell);
    } else if (act) {
      act(event);
      handlers.changed();
    } else return;
    consume(event);
  };
  canvas.onfocus = () => handlers.point(at());
  canvas.onblur = () => handlers.point(null);
}

/** @param {Cell} cell @returns {cell is [number, number]} whether it lies on neither axis's words */
const isCell = (cell) => !cell.includes(null);

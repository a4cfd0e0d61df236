// Mouse, touch and keys on a heatmap. What they mean is told to `handlers`; nothing is listened to outside the canvas.

import { following } from "../base/elements.js";

export const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

// handlers: { point(cell), lock(axis, index), changed(), leave() }
export function pointing(canvas, map, handlers) {
  let held = null;
  let cursor = null;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  /** @param {number[]} point */
  const share = ([x, y]) => [(x - map.left) / map.wide, (y - map.top) / map.tall];

  canvas.onpointerdown = (event) => {
    const cell = map.cell(...place(event));
    const reads = event.pointerType === "touch" && !cell.includes(null) && String(cell) !== String(cursor);
    held = { at: place(event), moved: false, reads }; // a first tap reads a cell, a second locks its row
    if (map.zoomed) canvas.setPointerCapture(event.pointerId);
  };
  const points = (event) => {
    const [x, y] = place(event);
    if (held && map.zoomed && event.buttons) {
      const [dx, dy] = [held.at[0] - x, held.at[1] - y];
      if (held.moved || Math.abs(dx) + Math.abs(dy) > 4) {
        map.pan((dx / map.wide) * map.window.wide, (dy / map.tall) * map.window.tall);
        held = { ...held, at: [x, y], moved: true };
        return handlers.changed();
      }
    }
    const cell = map.cell(x, y);
    cursor = cell.includes(null) ? cursor : cell;
    return handlers.point(cell.includes(null) ? null : cell);
  };
  following(canvas, points, () => handlers.point(null));
  canvas.onpointerup = (event) => {
    const { moved, reads } = held ?? {};
    held = null;
    if (moved || reads) return;
    const [row, col] = map.cell(...place(event));
    if (row !== null && (col === null || !event.shiftKey)) handlers.lock("rows", row);
    else if (col !== null) handlers.lock("cols", col);
  };
  canvas.onwheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // a plain wheel scrolls the page
    event.preventDefault();
    map.zoom(2 ** (-event.deltaY / 200), ...share(place(event)));
    handlers.changed();
  };

  const keys = {
    "+": () => map.zoom(1.5, ...middle()),
    "=": () => map.zoom(1.5, ...middle()),
    "-": () => map.zoom(1 / 1.5, ...middle()),
    0: () => map.fit(),
    Enter: () => handlers.lock("rows", at()[0]),
    " ": (event) => (event.shiftKey ? handlers.lock("cols", at()[1]) : handlers.lock("rows", at()[0])),
    c: () => handlers.lock("cols", at()[1]),
    Escape: () => handlers.leave(),
  };
  const at = () =>
    (cursor = [
      Math.min(cursor?.[0] ?? 0, map.grid.rows.length - 1),
      Math.min(cursor?.[1] ?? 0, map.grid.cols.length - 1),
    ]);
  const middle = () => {
    const [x, y] = map.box(at()[0] + 0.5, at()[1] + 0.5);
    return share([x, y]).map((v) => Math.min(1, Math.max(0, v)));
  };

  canvas.onkeydown = (event) => {
    if (event.metaKey || event.altKey || (event.ctrlKey && !STEPS[event.key])) return;
    const [n, m] = [map.grid.rows.length, map.grid.cols.length];
    if (STEPS[event.key]) {
      const by = event.shiftKey || event.ctrlKey ? 10 : 1;
      const [row, col] = cursor ? at() : [at()[0] - STEPS[event.key][0] * by, at()[1] - STEPS[event.key][1] * by];
      cursor = [
        Math.min(n - 1, Math.max(0, row + STEPS[event.key][0] * by)),
        Math.min(m - 1, Math.max(0, col + STEPS[event.key][1] * by)),
      ];
      map.reveal(cursor);
      handlers.point(cursor);
    } else if (event.key === "Home" || event.key === "End") {
      cursor = [at()[0], event.key === "Home" ? 0 : m - 1];
      map.reveal(cursor);
      handlers.point(cursor);
    } else if (keys[event.key] ?? keys[event.key.toLowerCase()]) {
      (keys[event.key] ?? keys[event.key.toLowerCase()])(event);
      handlers.changed();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  canvas.onfocus = () => handlers.point(at());
  canvas.onblur = () => handlers.point(null);
}

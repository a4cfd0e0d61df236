// A square of the plane around 0: where its points stand on a canvas, its lines, names that do not cover each other.

import { label, measure } from "../base/pen.js";

const EDGE_OF_PLANE = 20; // pixels around it, for numbers and names
const ARROW = 8; // pixels of an arrow's head

export class Plane {
  // limit: how far it goes to each side; size: of the canvas, in pixels; top: room above it
  constructor(limit, size, top = 0) {
    Object.assign(this, { limit, size, top, half: size / 2 - EDGE_OF_PLANE });
  }

  at([x, y]) {
    return [this.size / 2 + (x / this.limit) * this.half, this.top + this.size / 2 - (y / this.limit) * this.half];
  }

  // The place under a pixel, inside the plane.
  from(x, y) {
    const within = (value) => Math.max(-this.limit, Math.min(this.limit, value));
    return [
      within(((x - this.size / 2) / this.half) * this.limit),
      within(((this.top + this.size / 2 - y) / this.half) * this.limit),
    ];
  }

  lines(pen, theme) {
    const [middle, down] = this.at([0, 0]);
    const { half, limit } = this;
    pen.rect(middle - half, down - half, 2 * half, 2 * half, { stroke: theme.line, thick: 0.5 });
    pen.line(middle - half, down, middle + half, down, { stroke: theme.line });
    pen.line(middle, down - half, middle, down + half, { stroke: theme.line });
    const style = { fill: theme.soft, size: 10 };
    pen.text(middle + half, down + half + 9, String(limit), { ...style, align: "right" });
    pen.text(middle - half, down + half + 9, `−${limit}`, style);
    pen.text(middle, down + half + 9, "0", { ...style, align: "center" });
  }

  // Names beside their points, farther out than these, one above another where they would meet.
  names(pen, theme, words, points) {
    const taken = [];
    points.forEach((point, i) => {
      if (!point.every(Number.isFinite)) return;
      const [x, y] = this.at(point);
      const text = label(words[i] ?? String(i));
      const wide = measure(text, 12);
      const sides = point[0] < 0 ? [x - 8 - wide, x + 8] : [x + 8, x - 8 - wide];
      const outside = sides.find((at) => at >= 2 && at + wide <= this.size - 2) ?? sides[0];
      const left = Math.max(2, Math.min(this.size - wide - 2, outside));
      const way = point[1] < 0 ? 12 : -12;
      let down = y + way / 2;
      const meets = ([a, b, c, d]) => left < c && a < left + wide && down - 5 < d && b < down + 5;
      for (let tries = 0; tries < 8 && taken.some(meets); tries++) down += way;
      taken.push([left, down - 5, left + wide, down + 5]);
      pen.text(left, down, text, { fill: theme.ink, size: 12 });
    });
  }
}

// A line with a head, between two pixels.
export function arrowTo(pen, [x1, y1], [x2, y2], { stroke, thick = 2, alpha = 1 }) {
  const far = Math.hypot(x2 - x1, y2 - y1);
  pen.line(x1, y1, x2, y2, { stroke, thick, alpha });
  if (far < 2) return;
  const [dx, dy] = [(x2 - x1) / far, (y2 - y1) / far];
  const long = Math.min(ARROW, far);
  for (const side of [-0.5, 0.5]) {
    const [x, y] = [x2 - long * (dx + side * dy), y2 - long * (dy - side * dx)];
    pen.line(x, y, x2, y2, { stroke, thick, alpha });
  }
}

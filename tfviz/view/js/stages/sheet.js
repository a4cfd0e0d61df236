// All heads at once: layers are rows, heads are columns, one scale; one canvas, however many there are.

import { following } from "../base/elements.js";
import { formatted } from "../base/numbers.js";
import { legend } from "./legend.js";
import { paint } from "../base/paint.js";
import { STEPS } from "./pointing.js";

export class Sheet {
  thumbs = new WeakMap();
  at = [0, 0];

  constructor(theme, names) {
    this.theme = theme;
    this.names = names?.length ? names : null;
  }

  place(part, width) {
    const { layers, heads, rows, cols } = part;
    const left = 58;
    const top = 26;
    const gap = 4;
    const right = width > 560 ? 56 : 0;
    const wide = Math.max(6, Math.min(150, (width - left - right - gap * heads) / heads));
    const shape = Math.min(2, Math.max(0.5, rows.length / cols.length));
    const tall = Math.max(8, wide * shape);
    const ends = left + heads * (wide + gap);
    const across = ends + right; // of the thumbnails; of all that is drawn
    const height = Math.max(top + layers * (tall + gap), right ? 110 : 0);
    this.part = part;
    this.left = left;
    this.top = top;
    this.gap = gap;
    this.wide = wide;
    this.tall = tall;
    this.ends = ends;
    this.across = across;
    this.height = height;
    this.width = Math.max(width, across);
    this.at = [Math.min(this.at[0], layers - 1), Math.min(this.at[1], heads - 1)];
    return this.height;
  }

  box(layer, head) {
    return [this.left + head * (this.wide + this.gap), this.top + layer * (this.tall + this.gap), this.wide, this.tall];
  }

  cell(x, y) {
    const head = Math.floor((x - this.left) / (this.wide + this.gap));
    const layer = Math.floor((y - this.top) / (this.tall + this.gap));
    return head >= 0 && layer >= 0 && head < this.part.heads && layer < this.part.layers ? [layer, head] : null;
  }

  // grids: "layer.head" -> Grid, those that have arrived; thumbs: what is drawn of each, if not itself, up to a limit
  draw(pen, { grids, thumbs = grids, limit = 1, chosen, marked, focused }) {
    const { theme, part, names } = this;
    const every = (size) => Math.max(1, Math.ceil(14 / (size + this.gap)));
    for (let layer = 0; layer < part.layers; layer++) {
      if (layer % every(this.tall) === 0)
        pen.text(
          this.left - 8,
          this.box(layer, 0)[1] + this.tall / 2,
          part.layers <= 24 ? `layer ${layer}` : `${layer}`,
          { fill: theme.soft, align: "right" },
        );
      for (let head = 0; head < part.heads; head++) {
        const [x, y, w, t] = this.box(layer, head);
        const grid = thumbs.get(`${layer}.${head}`);
        if (layer === 0 && head % every(this.wide) === 0)
          pen.text(x + w / 2, 13, names?.[head] ?? (w > 44 ? `head ${head}` : `${head}`), {
            fill: theme.soft,
            align: "center",
          });
        if (grid) pen.image(this.thumb(grid, w, t, pen.ratio), x, y);
        pen.rect(x, y, w, t, { stroke: theme.line, thick: 0.5 });
        if (marked.some(([l, h]) => l === layer && h === head))
          pen.rect(x + 1, y + 1, w - 2, t - 2, { stroke: theme.mark, thick: 2.5 });
        else if (chosen[0] === layer && chosen[1] === head) pen.rect(x, y, w, t, { stroke: theme.ink, thick: 1.5 });
        if (focused && this.at[0] === layer && this.at[1] === head)
          pen.rect(x - 1.5, y - 1.5, w + 3, t + 3, { stroke: theme.focus, thick: 2 });
      }
    }
    if (this.across > this.ends)
      legend(pen, theme, { scale: "sqrt", limit }, this.ends + 10, this.top, Math.min(this.height - this.top - 8, 180));
  }

  thumb(grid, wide, tall, ratio) {
    const size = [wide, tall].map((length) => Math.max(1, Math.round(length * ratio)));
    const key = `${size} ${this.theme.key}`;
    const kept = this.thumbs.get(grid);
    if (kept?.key === key) return kept.image;
    const image = paint(
      grid,
      { x: 0, y: 0, wide: grid.cols.length, tall: grid.rows.length },
      ...size,
      this.theme,
      ratio,
    );
    this.thumbs.set(grid, { key, image });
    return image;
  }

  describe(layer, head, grid) {
    if (!grid) return `layer ${layer}, head ${head}`;
    return `layer ${layer}, head ${head}: the strongest key of a query has ${formatted(sharpness(grid))} on average`;
  }

  // handlers: { open(layer, head), mark(layer, head), point(at), leave() }
  listen(canvas, handlers) {
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return this.cell(event.clientX - box.left, event.clientY - box.top);
    };
    following(
      canvas,
      (event) => handlers.point(place(event)),
      () => handlers.point(null),
    );
    canvas.onclick = (event) => {
      const at = place(event);
      if (!at) return;
      this.at = at;
      if (event.shiftKey || event.ctrlKey || event.metaKey) handlers.mark(...at);
      else handlers.open(...at);
    };
    canvas.onkeydown = (event) => {
      const step = STEPS[event.key];
      if (step)
        this.at = [
          Math.min(this.part.layers - 1, Math.max(0, this.at[0] + step[0])),
          Math.min(this.part.heads - 1, Math.max(0, this.at[1] + step[1])),
        ];
      else if (event.key === "Home" || event.key === "End")
        this.at = [this.at[0], event.key === "Home" ? 0 : this.part.heads - 1];
      else if (event.key === "Enter") handlers.open(...this.at);
      else if (event.key === " ") handlers.mark(...this.at);
      else if (event.key === "Escape") handlers.leave();
      else return;
      handlers.point(this.at);
      event.preventDefault();
      event.stopPropagation();
    };
    canvas.onfocus = () => handlers.point(this.at);
    canvas.onblur = () => handlers.point(null);
  }
}

// How sharply a head looks: the weight of each query's strongest key, averaged over the queries that see any.
export function sharpness(grid) {
  let [sum, seen] = [0, 0];
  for (let row = 0; row < grid.rows.length; row++) {
    let best = -1;
    for (let col = 0; col < grid.cols.length; col++)
      if (grid.state[row * grid.cols.length + col] === 0) best = Math.max(best, grid.at(row, col));
    if (best >= 0) [sum, seen] = [sum + best, seen + 1];
  }
  return seen ? sum / seen : 0;
}

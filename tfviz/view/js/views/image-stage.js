// A stage that shows a picture, tinted by the attention weights of one token. Tokens that are not patches of the
// picture are listed beside it.

import { chartCanvas, h } from "../base/elements.js";
import { ABSENT, FORBIDDEN, ALLOWED, codeOf } from "../base/grid.js";
import { formatNumber } from "../base/numbers.js";
import { CanvasPen, devicePixels } from "../base/pen.js";
import { SourceImage } from "../base/source-image.js";
import { describeToken, largest, otherSide, profile, spread, weightLimit } from "../base/patch-grid.js";
import { quoted } from "../base/visible-text.js";
import { legend } from "./legend.js";
import { PictureLayout } from "./picture-layout.js";
import { listenToPicture } from "./picture-input.js";

/** @import { ImageSpec } from "../documents.js" */
/** @import { Grid } from "../base/grid.js" */
/** @import { Profile, Token } from "../base/patch-grid.js" */
/** @import { Drawing, GridPanel, Handlers, Pen, Side } from "../types.js" */
/** @import { Chip, PicturePart, PlacedToken } from "./picture-layout.js" */
/** @typedef {Pick<Handlers, "announce" | "leave"> & { choose(side: Side, index: number): void }} ImageHandlers */

/** @type {Record<number, string>} */
const STATE_TEXT = { [FORBIDDEN]: "may not look", [ABSENT]: "left out" };

/** A stage of pictures, one for each map, on which a token can be pointed at and locked. */
export class ImageStage {
  /** @type {PlacedToken | null} */
  cursor = null;
  pictureOnly = false;
  /** @type {WeakMap<object, { key: string, image: ImageData }>} */
  images = new WeakMap();
  /** @type {PictureLayout | null} */
  layout = null;
  /** @type {GridPanel[]} */
  panels = [];
  /** @type {string[]} */
  names = [];
  /** @type {PicturePart} */
  part = { rows: [], columns: [] };
  /** @type {Token} */
  chosen = { side: "rows", index: 0 };
  question = "";
  /** @type {Profile[]} for each panel, the weights from or to the chosen token */
  profiles = [];
  /** @type {(Grid | null)[]} the same weights on the patches of the picture */
  maps = [];
  /** @type {number[]} where their scales end */
  limits = [];

  /** @param {import("../base/theme.js").Theme} theme @param {ImageHandlers} handlers @param {ImageSpec} picture */
  constructor(theme, handlers, picture) {
    this.theme = theme;
    this.handlers = handlers;
    this.source = new SourceImage(picture);
    this.canvas = chartCanvas("Picture");
    this.element = h("div", { class: "stage" }, this.canvas);
    listenToPicture(this.canvas, this);
  }

  /**
   * @param {GridPanel[]} panels
   * @param {PicturePart} part
   * @param {Token} chosen the token whose weights are shown
   * @param {number} width
   * @param {() => boolean} isCurrent whether they still are
   */
  async show(panels, part, chosen, width, isCurrent) {
    await this.source.ready();
    if (!isCurrent()) return;
    this.panels = panels;
    const names = panels.map(({ name }) => name);
    this.layout = new PictureLayout(part, chosen, names, this.source, width);
    const profiles = panels.map(({ grid }) => profile(grid, part, chosen.side, chosen.index));
    const [sequential, diverging] = [false, true].map((kind) =>
      profiles.filter((weights) => weights.diverging === kind),
    );
    const limits = [weightLimit(sequential, part.columns.length), largest(diverging)];
    this.limits = profiles.map((weights) => limits[Number(weights.diverging)]);
    const onto = this.layout.patches[this.layout.other];
    this.maps = profiles.map((weights, i) => onto && spread(weights, onto, this.limits[i]));
    this.part = part;
    this.chosen = chosen;
    this.profiles = profiles;
    this.names = names;
    this.question = describeToken(part, chosen);
    this.canvas.setAttribute(
      "aria-label",
      `${this.question}: arrows move, Enter or Space chooses, P shows the picture alone`,
    );
    this.point(this.cursor);
  }

  /** @param {PlacedToken | null} token */
  point(token) {
    if (!this.layout) return;
    this.cursor = token && this.part[token.side][token.index] !== undefined ? token : null;
    this.handlers.announce(
      this.cursor ? this.reading(this.cursor) : this.topWeights(this.chosen.side, this.chosen.index),
    );
    this.draw();
  }

  /** Choose another token, of the same side if queries and keys are one picture. @param {PlacedToken} token */
  choose({ side, index, at }) {
    const { layout, chosen } = this;
    if (!layout) return;
    if (layout.hasEqualSides) return this.handlers.choose(chosen.side, index);
    if (at && layout.patches[chosen.side])
      return this.handlers.choose(chosen.side, layout.token(chosen.side, at[0], at[1]));
    return this.handlers.choose(side, index);
  }

  /**
   * Describe the weight between the chosen token and another; for a token of the same side, its largest weight.
   * @param {Token} token
   */
  reading({ side, index }) {
    const { chosen, layout, part } = this;
    if (!layout?.sharesTokens(side, layout.other)) return this.topWeights(side, index);
    const readings = this.profiles.map((weights, i) => {
      const value =
        weights.stateAt(index, 0) === ALLOWED
          ? formatNumber(weights.at(index, 0))
          : STATE_TEXT[weights.stateAt(index, 0)];
      const bound = weights.stateAt(index, 0) === ALLOWED && weights.poolSize > 1 ? "at most " : "";
      return `${this.names[i] ? `${this.names[i]}: ` : ""}${bound}${value}`;
    });
    const ends = [part[chosen.side][chosen.index], part[layout.other][index]].map((word) => quoted(word, 200));
    if (chosen.side === "columns") ends.reverse();
    return `${ends.join(" → ")}  ${readings.join("   ")}`;
  }

  /** @param {Side} side @param {number} index */
  topWeights(side, index) {
    const other = this.part[otherSide(side)];
    const strongest = profile(this.panels[0].grid, this.part, side, index).strongestPairs(0, "col", 3);
    const pairs = strongest.map(([i, value]) => `${quoted(other[i], 40)} ${formatNumber(value)}`);
    return `${quoted(this.part[side][index], 40)} ${side === "rows" ? "→" : "←"} ${pairs.join(", ") || "nothing"}`;
  }

  /** Show the picture alone, or with weights. @param {boolean} pictureOnly */
  showPictureOnly(pictureOnly) {
    this.pictureOnly = pictureOnly;
    this.draw();
  }

  draw() {
    if (this.layout) this.paint(new CanvasPen(this.canvas, this.layout.width, this.layout.height));
  }

  /** @param {Pen} pen */
  paint(pen) {
    this.layout?.origins.forEach(([x, y], i) => pen.drawAt(x, y, () => this.panel(pen, i)));
  }

  /** @param {Pen} pen @param {number} i */
  panel(pen, i) {
    const { theme, layout, chosen, cursor } = this;
    if (!layout) return;
    const [left, top, width, height] = layout.box;
    pen.text(left, 8, this.question, { fill: theme.soft, size: 12 });
    if (this.names[i]) pen.text(left, 28, this.names[i], { fill: theme.ink, bold: true, size: 12 });
    pen.image(this.painted(i, pen.ratio, width, height), left, top);
    pen.rect(left, top, width, height, { stroke: theme.line, lineWidth: 1 });
    layout.notes.forEach(({ text, y }) => pen.text(left, y, text, { fill: theme.soft, size: 12 }));
    layout.chips.forEach((chip) => this.chip(pen, i, chip));
    this.outline(pen, chosen, theme.mark, 2.5);
    if (cursor) this.outline(pen, cursor, theme.ink, 1.5);
    const map = this.maps[i];
    if (map) legend(pen, theme, map, left + width + 14, top, Math.min(height, 180), 1 / this.part.columns.length);
  }

  /** @param {Pen} pen @param {Token} token @param {string} stroke @param {number} lineWidth */
  outline(pen, { side, index }, stroke, lineWidth) {
    const box = this.layout?.where(side, index);
    if (!box) return;
    const [x, y, width, height] = box;
    const small = Math.max(0, 5 - Math.min(width, height)) / 2; // a very small cell is outlined from outside
    pen.rect(x - small, y - small, width + 2 * small, height + 2 * small, { stroke, lineWidth });
  }

  /** @param {Pen} pen @param {number} i @param {Chip} chip */
  chip(pen, i, { side, index, box, text }) {
    const { theme, layout } = this;
    const weights = layout?.sharesTokens(side, layout.other) ? this.profiles[i] : null;
    const allowed = weights?.stateAt(index, 0) === ALLOWED ? weights : null;
    const code = allowed ? codeOf(allowed.at(index, 0), allowed.scale, this.limits[i]) : 0;
    const strong = allowed && (allowed.diverging ? Math.abs(code - 128) > 70 : code > 140);
    const [x, y, width, height] = box;
    pen.rect(x, y, width, height, {
      fill: allowed ? theme.colour(allowed, code) : null,
      stroke: theme.line,
      lineWidth: 1,
    });
    pen.text(x + width / 2, y + height / 2, text, { fill: strong ? theme.page : theme.ink, size: 13, align: "center" });
  }

  /**
   * Return the pixels of a picture, made again only if weights, size or colours have changed.
   * @param {number} i
   * @param {number} ratio
   * @param {number} width
   * @param {number} height
   */
  painted(i, ratio, width, height) {
    const size = devicePixels([width, height], ratio);
    const grid = this.maps[i];
    const key = `${size} ${this.theme.key} ${this.pictureOnly}`;
    const known = this.images.get(grid ?? this.source);
    if (known?.key === key) return known.image;
    const image = this.source.paint(this.pictureOnly ? null : grid, size[0], size[1], this.theme, ratio);
    this.images.set(grid ?? this.source, { key, image });
    return image;
  }

  /** @returns {Drawing} */
  get drawing() {
    if (!this.layout) return { width: 0, height: 0, draw: () => {} };
    return { width: this.layout.width, height: this.layout.height, draw: (pen) => this.paint(pen) };
  }

  /** The numbers of the picture: a row for each token of the other side. @returns {GridPanel<Grid>[]} */
  get numbers() {
    const axes = this.chosen.side === "rows" ? ["key", "query"] : ["query", "key"];
    return this.profiles.map((grid, i) => ({ name: this.names[i], grid, axes }));
  }
}

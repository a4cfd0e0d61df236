// The layout of pictures side by side, and beside each the words of tokens that are not patches of it.

import { clamp, formatCount } from "../base/numbers.js";
import { textWidth } from "../base/pen.js";
import { otherSide, patchGrids } from "../base/patch-grid.js";
import { label } from "../base/visible-text.js";

/** @import { PatchSides } from "../documents.js" */
/** @import { PatchGrid, Token, Words } from "../base/patch-grid.js" */
/** @import { Box, Point, Side } from "../types.js" */
/** @typedef {Words & { patches?: PatchSides }} PicturePart */
/** @typedef {Token & { text: string, box: Box }} Chip the word of a token that does not lie on the picture */
/** @typedef {Token & { panel?: number, at?: Point }} PlacedToken with the number of its picture and a point on it */

const MAX_PICTURE_WIDTH = 520;
const MAX_PICTURE_HEIGHT = 560;
const SCALE_WIDTH = 96; // of the colour scale beside the picture
const PICTURE_GAP = 20; // between two pictures
const TOP_MARGIN = 20;
const OUTLINE_MARGIN = 3; // room for the outline of a patch
const CHIP_HEIGHT = 22;
const CHIP_GAP = 4;
const MAX_CHIPS = 400; // words that are shown on one side of a picture

/** The positions of pictures, patches and words on a canvas, and the token at a point. */
export class PictureLayout {
  /**
   * @param {PicturePart} part
   * @param {Token} chosen whose weights are shown
   * @param {string[]} names of the pictures
   * @param {{ width: number, height: number }} shape of the picture
   * @param {number} width
   */
  constructor(part, chosen, names, shape, width) {
    this.part = part;
    this.chosen = chosen;
    this.other = otherSide(chosen.side);
    this.patches = patchGrids(part);
    // both sides are the same tokens where a picture, or a text with one in it, looks at itself
    this.hasEqualSides = String(part.rows) === String(part.columns);
    const columns = width >= 300 * names.length ? names.length : 1;
    const each = (width - PICTURE_GAP * (columns - 1)) / columns - OUTLINE_MARGIN;
    const pictureWidth = Math.min(
      MAX_PICTURE_WIDTH,
      each - SCALE_WIDTH,
      (MAX_PICTURE_HEIGHT * shape.width) / shape.height,
    );
    const pictureHeight = (pictureWidth * shape.height) / shape.width;
    const top = names.some(Boolean) ? 2 * TOP_MARGIN : TOP_MARGIN;
    const above = this.chipsOf("rows", top, each);
    const below = this.hasEqualSides ? null : this.chipsOf("columns", above.bottom + pictureHeight + 12, each);
    this.chips = [...above.chips, ...(below?.chips ?? [])];
    this.notes = [above, below].flatMap((group) => group?.notes ?? []);
    this.box = [OUTLINE_MARGIN, above.bottom, pictureWidth, pictureHeight];
    const height = below?.chips.length ? below.bottom : above.bottom + pictureHeight + OUTLINE_MARGIN;
    const right = Math.max(pictureWidth + SCALE_WIDTH, ...this.chips.map(({ box }) => box[0] + box[2]));
    this.origins = names.map((_, i) => [
      (i % columns) * (each + PICTURE_GAP),
      Math.floor(i / columns) * (height + PICTURE_GAP),
    ]);
    this.width = Math.ceil(Math.min(width, (columns - 1) * (each + PICTURE_GAP) + right + OUTLINE_MARGIN));
    this.height = this.origins[this.origins.length - 1][1] + height;
  }

  /**
   * Lay out the words of a side that have no position on the picture, as small boxes in lines.
   * @param {Side} side
   * @param {number} top
   * @param {number} width
   */
  chipsOf(side, top, width) {
    const tokens = this.patches[side]?.others ?? [...this.part[side].keys()];
    /** @type {Chip[]} */
    const chips = [];
    let [x, y] = [OUTLINE_MARGIN, top];
    for (const index of tokens.slice(0, MAX_CHIPS)) {
      const text = label(this.part[side][index], 24);
      const chipWidth = clamp(textWidth(text, 13) + 12, CHIP_HEIGHT, width);
      if (x > OUTLINE_MARGIN && x + chipWidth > width) [x, y] = [OUTLINE_MARGIN, y + CHIP_HEIGHT + CHIP_GAP];
      chips.push({ side, index, text, box: [x, y, chipWidth, CHIP_HEIGHT] });
      x += chipWidth + CHIP_GAP;
    }
    const bottom = tokens.length ? y + CHIP_HEIGHT + 10 : top;
    const more = tokens.length - MAX_CHIPS;
    const notes = more > 0 ? [{ text: `${formatCount(more, "word")} more`, y: bottom }] : [];
    return { chips, notes, bottom: bottom + 14 * notes.length };
  }

  /**
   * Tell whether a token of one side is also one of the other.
   * @param {Side} side
   * @param {Side} target
   */
  sharesTokens(side, target) {
    return this.hasEqualSides || side === target;
  }

  /**
   * Return the token under a point, { panel, side, index }; null if there is none.
   * @param {number} x
   * @param {number} y
   * @returns {PlacedToken | null}
   */
  tokenAt(x, y) {
    for (const [panel, [left, top]] of this.origins.entries()) {
      const [across, down] = [x - left, y - top];
      const chip = this.chips.find(({ box }) => holds(box, across, down));
      if (chip) return { panel, side: chip.side, index: chip.index };
      if (holds(this.box, across, down)) return { panel, ...this.onPicture(across, down) };
    }
    return null;
  }

  /**
   * Return the token at a point of the picture: of the side whose weights are shown, or of the side that lies there.
   * @param {number} x
   * @param {number} y
   */
  onPicture(x, y) {
    const side = this.patches[this.other] ? this.other : this.chosen.side;
    return { side, index: this.token(side, x, y), at: [x, y] };
  }

  /** @param {Side} side @param {number} x @param {number} y */
  token(side, x, y) {
    const [left, top, width, height] = this.box;
    const grid = /** @type {PatchGrid} */ (this.patches[side]);
    /** @param {number} share @param {number} count */
    const at = (share, count) => clamp(Math.floor(share * count), 0, count - 1);
    return grid.token(at((y - top) / height, grid.rows), at((x - left) / width, grid.columns));
  }

  /**
   * Return the upper left corner and the size of a token.
   * @param {Side} side
   * @param {number} index
   * @returns {Box | undefined}
   */
  where(side, index) {
    const grid = this.patches[side];
    const cell = grid?.cell(index);
    if (!grid || !cell)
      return this.chips.find((chip) => this.sharesTokens(chip.side, side) && chip.index === index)?.box;
    const { rows, columns } = grid;
    const [left, top, width, height] = this.box;
    return [left + (cell[1] * width) / columns, top + (cell[0] * height) / rows, width / columns, height / rows];
  }

  /**
   * Return the token that a step leads to: beyond an edge of the picture, and from a word, the nearest one in that
   * direction.
   * @param {PlacedToken} from
   * @param {Point} direction
   * @param {number} times
   * @returns {PlacedToken}
   */
  step(from, [down, across], times) {
    const [x, y, width, height] = this.where(from.side, from.index) ?? this.box;
    const panel = from.panel ?? 0;
    const center = [x + width / 2, y + height / 2];
    const to = [center[0] + across * times * width, center[1] + down * times * height];
    const [left, top] = this.origins[panel];
    const hit = this.tokenAt(left + to[0], top + to[1]);
    if (hit?.panel === panel) return hit;
    const spots = [...this.chips.map(({ side, index, box }) => ({ panel, side, index, box })), this.nearest(panel, to)];
    const candidates = spots
      .filter(({ side, index }) => index !== from.index || !this.sharesTokens(side, from.side))
      .map((token) => ({
        token,
        dx: token.box[0] + token.box[2] / 2 - center[0],
        dy: token.box[1] + token.box[3] / 2 - center[1],
      }))
      .filter(({ dx, dy }) => dx * across + dy * down > 1);
    /** @param {{ dx: number, dy: number }} away */
    const distance = ({ dx, dy }) => (across ? Math.abs(dx) + 4 * Math.abs(dy) : Math.abs(dy) + Math.abs(dx) / 4);
    return candidates.sort((a, b) => distance(a) - distance(b))[0]?.token ?? from;
  }

  /**
   * Return the point of the picture that is nearest to another.
   * @param {number} panel
   * @param {number[]} point
   */
  nearest(panel, [x, y]) {
    const [left, top, width, height] = this.box;
    const [across, down] = [clamp(x, left + 1, left + width - 1), clamp(y, top + 1, top + height - 1)];
    return { panel, ...this.onPicture(across, down), box: [across, down, 0, 0] };
  }
}

/** @type {(box: number[], x: number, y: number) => boolean} */
const holds = ([left, top, width, height], x, y) => x >= left && x < left + width && y >= top && y < top + height;

// A picture with the weights of its patches: turned pale grey and tinted, so that colour shows weight only, or in its own
// colours, the darker the smaller the weight.

import { FORBIDDEN, ALLOWED } from "./grid.js";

/** @import { Grid } from "./grid.js" */
/** @typedef {(image: ImageData, grid: Grid, theme: import("./theme.js").Theme, ratio: number) => void} Shade draws weights over an image */
/** @typedef {{ rows: number, columns: number, cells: number[][] }} Covered patches, [row, column], that are hidden */

const PICTURE_SHARE = 0.7; // of the picture's own tones, mixed with the page's colour
const MAX_INK_SHARE = 0.75; // of the ink, at the largest weight
const MIN_REVEALED = 0.4; // of a patch with no weight, so that one still sees what is there

/** A picture that can be painted in grey, tinted by the weights of a grid, with some patches covered. */
export class SourceImage {
  meanColour = "";

  /** @param {import("../documents.js").ImageSpec} image */
  constructor({ src, width, height }) {
    this.width = width;
    this.height = height;
    this.image = Object.assign(new Image(), { src });
  }

  ready() {
    return this.image.decode();
  }

  /** The mean colour of the picture. */
  get mean() {
    if (this.meanColour) return this.meanColour;
    const { data } = this.pen(this.width, this.height).getImageData(0, 0, this.width, this.height);
    const sums = [0, 0, 0];
    for (let at = 0; at < data.length; at++) if (at % 4 < 3) sums[at % 4] += data[at];
    this.meanColour = `rgb(${sums.map((sum) => Math.round((4 * sum) / data.length)).join(" ")})`;
    return this.meanColour;
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  pen(width, height) {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
    pen.drawImage(this.image, 0, 0, width, height);
    return pen;
  }

  /** @param {Grid | null} grid null: the picture alone @param {number} width in pixels of the device @param {number} height @param {import("./theme.js").Theme} theme @param {number} ratio @param {Covered | null} [covered] @param {Shade} [shade] */
  paint(grid, width, height, theme, ratio, covered = null, shade = tint) {
    const pen = this.pen(width, height);
    if (covered) this.cover(pen, width, height, covered);
    const image = pen.getImageData(0, 0, width, height);
    if (grid) shade(image, grid, theme, ratio);
    return image;
  }

  /** Paint some patches in the mean colour. @param {CanvasRenderingContext2D} pen @param {number} width @param {number} height @param {Covered} covered */
  cover(pen, width, height, { rows, columns, cells }) {
    if (cells.length) pen.fillStyle = this.mean;
    for (const [row, column] of cells) {
      const [left, right] = [column, column + 1].map((at) => Math.round((at * width) / columns));
      const [top, bottom] = [row, row + 1].map((at) => Math.round((at * height) / rows));
      pen.fillRect(left, top, right - left, bottom - top);
    }
  }
}

/**
 * Turn an image pale grey, and colour it by the weights of a grid.
 * @param {ImageData} image
 * @param {Grid} grid
 * @param {import("./theme.js").Theme} theme
 * @param {number} ratio
 */
export function tint({ data, width, height }, grid, theme, ratio) {
  const [down, across] = [grid.rows.length, grid.columns.length];
  const lut = theme.lut(grid);
  const zero = grid.diverging ? 128 : 0;
  const inks = [channelsOf(lut[0]), channelsOf(lut[255])];
  const page = channelsOf(theme.blank);
  const hatch = channelsOf(theme.hatched);
  const period = Math.round(6 * ratio);
  for (let y = 0, at = 0; y < height; y++) {
    const row = Math.floor((y * down) / height) * across;
    for (let x = 0; x < width; x++, at += 4) {
      const i = row + Math.floor((x * across) / width);
      const code = grid.codes[i];
      const ink = inks[code < zero ? 0 : 1];
      const share = grid.state[i] === ALLOWED ? (MAX_INK_SHARE * Math.abs(code - zero)) / (255 - zero) : 0;
      const grey = 0.2126 * data[at] + 0.7152 * data[at + 1] + 0.0722 * data[at + 2];
      const hatched = grid.state[i] === FORBIDDEN && (x + y) % period < ratio;
      for (let c = 0; c < 3; c++) {
        const under = page[c] + PICTURE_SHARE * (grey - page[c]);
        data[at + c] = hatched ? hatch[c] : under + share * (ink[c] - under);
      }
      data[at + 3] = 255;
    }
  }
}

/**
 * Darken the cells of an image, the more the smaller their weights are beside the largest; what is bright stays coloured.
 * @type {Shade}
 */
export function reveal({ data, width, height }, grid) {
  const [down, across] = [grid.rows.length, grid.columns.length];
  const largest = grid.codes.reduce((max, code) => Math.max(max, code), 1);
  for (let y = 0, at = 0; y < height; y++) {
    const row = Math.floor((y * down) / height) * across;
    for (let x = 0; x < width; x++, at += 4) {
      const code = grid.codes[row + Math.floor((x * across) / width)];
      const share = MIN_REVEALED + ((1 - MIN_REVEALED) * code) / largest;
      for (let c = 0; c < 3; c++) data[at + c] *= share;
    }
  }
}

/** @param {number} value */
const channelsOf = (value) => [value & 255, (value >> 8) & 255, (value >> 16) & 255];

// A function that renders a part of a grid as an image of any size. Each pixel shows the strongest of the cells it
// covers.

import { FORBIDDEN, ALLOWED } from "./grid.js";
import { clamp } from "./numbers.js";

/** @import { Grid } from "./grid.js" */

const NO_CELL = 3; // no cell: more than any state
const HATCH_SPACING = 6; // CSS pixels between two lines of the hatching

/**
 * Render a window of a grid as an image.
 * @param {Grid} grid
 * @param {import("../types.js").Window} window in cells
 * @param {number} width in pixels of the device
 * @param {number} height
 * @param {import("./theme.js").Theme} theme
 * @param {number} ratio pixels of the device for one of the page
 */
export function paint(grid, window, width, height, theme, ratio = 1) {
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const [fine, shrink] = reduced(grid, Math.min(window.width / width, window.height / height));
  const across = spans(window.x / shrink, window.width / shrink, width, fine.columns.length);
  const down = spans(window.y / shrink, window.height / shrink, height, fine.rows.length);
  const row = { codes: new Uint8Array(width), states: new Uint8Array(width) };
  const line = new Uint32Array(width);
  const lut = theme.lut(grid);
  const lines = {
    period: Math.round(HATCH_SPACING * ratio),
    lineWidth: Math.max(1, Math.round(ratio)),
    colour: theme.hatched,
  };
  let forbidden = false; // whether a pixel of the line shows forbidden cells
  for (let y = 0; y < height; y++) {
    const [from, to] = [down[2 * y], down[2 * y + 1]];
    if (!y || from !== down[2 * y - 2] || to !== down[2 * y - 1]) {
      pool(fine, across, from, to, row);
      for (let x = 0; x < width; x++) line[x] = row.states[x] === ALLOWED ? lut[row.codes[x]] : theme.blank;
      forbidden = row.states.includes(FORBIDDEN);
    }
    pixels.set(line, y * width);
    if (forbidden) hatch(pixels.subarray(y * width, (y + 1) * width), row.states, y, lines);
  }
  return image;
}

/**
 * Halve a grid as long as a pixel covers two cells or more; also return how many times smaller it is.
 * @param {Grid} grid
 * @param {number} cells under a pixel
 * @returns {[Grid, number]}
 */
function reduced(grid, cells) {
  let fine = grid;
  let shrink = 1;
  while (cells / shrink >= 2) [fine, shrink] = [fine.downsample(), shrink * 2];
  return [fine, shrink];
}

/**
 * Find the strongest code and the lowest state of the cells under each pixel of a line, in rows `from` to `to`.
 * @param {Grid} grid
 * @param {Int32Array} across
 * @param {number} from
 * @param {number} to
 * @param {{ codes: Uint8Array, states: Uint8Array }} row
 */
function pool(grid, across, from, to, { codes, states }) {
  const zero = grid.diverging ? 128 : 0;
  const colCount = grid.columns.length;
  for (let x = 0; x < codes.length; x++) {
    let [best, state] = [zero, NO_CELL];
    for (let row = from; row <= to; row++)
      for (let i = row * colCount + across[2 * x]; i <= row * colCount + across[2 * x + 1]; i++) {
        state = Math.min(state, grid.state[i]);
        if (Math.abs(grid.codes[i] - zero) > Math.abs(best - zero)) best = grid.codes[i];
      }
    codes[x] = best;
    states[x] = state;
  }
}

/**
 * Draw slanting lines over the pixels of a line that show forbidden cells.
 * @param {Uint32Array} pixels
 * @param {Uint8Array} states
 * @param {number} y
 * @param {{ period: number, lineWidth: number, colour: number }} lines
 */
function hatch(pixels, states, y, { period, lineWidth, colour }) {
  for (let stripe = -(y % period); stripe < pixels.length; stripe += period)
    for (let x = Math.max(0, stripe); x < stripe + lineWidth && x < pixels.length; x++)
      if (states[x] === FORBIDDEN) pixels[x] = colour;
}

/**
 * Return the first and last cell under each pixel; where cells are larger than pixels, the cell at its middle.
 * @param {number} start
 * @param {number} length
 * @param {number} pixels
 * @param {number} cells
 */
function spans(start, length, pixels, cells) {
  const ranges = new Int32Array(2 * pixels);
  const step = length / pixels;
  const last = cells - 1;
  for (let i = 0; i < pixels; i++) {
    const middle = Math.floor(start + (i + 0.5) * step);
    ranges[2 * i] = clamp(step > 1 ? Math.floor(start + i * step) : middle, 0, last);
    ranges[2 * i + 1] = clamp(step > 1 ? Math.ceil(start + (i + 1) * step) - 1 : middle, 0, last);
  }
  return ranges;
}

// Cells to pixels: a part of a grid at any size, each pixel the strongest of the cells under it.

import { FORBIDDEN, OPEN } from "./grid.js";

// window: {x, y, wide, tall} in cells; width, height: in pixels of the device.
export function paint(grid, window, width, height, theme, ratio = 1) {
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  let [fine, shrink] = [grid, 1];
  const most = Math.min(window.wide / width, window.tall / height);
  while (most / shrink >= 2) [fine, shrink] = [fine.half(), shrink * 2];
  const across = spans(window.x / shrink, window.wide / shrink, width, fine.cols.length);
  const down = spans(window.y / shrink, window.tall / shrink, height, fine.rows.length);
  const lut = theme.lut(grid);
  const zero = grid.signed ? 128 : 0;
  const period = Math.round(6 * ratio);
  const thick = Math.max(1, Math.round(ratio));
  const line = new Uint32Array(width);
  const kinds = new Uint8Array(width); // of the row of cells that is being painted
  let hatched = false; // whether any of them is
  for (let y = 0; y < height; y++) {
    const [from, to] = [down[2 * y], down[2 * y + 1]];
    if (!y || from !== down[2 * y - 2] || to !== down[2 * y - 1]) {
      hatched = false;
      for (let x = 0; x < width; x++) {
        let best = zero;
        let kind = 3;
        for (let row = from; row <= to; row++) {
          for (let col = across[2 * x]; col <= across[2 * x + 1]; col++) {
            const i = row * fine.cols.length + col;
            if (fine.state[i] < kind) kind = fine.state[i];
            if (Math.abs(fine.codes[i] - zero) > Math.abs(best - zero)) best = fine.codes[i];
          }
        }
        kinds[x] = kind;
        line[x] = kind === OPEN ? lut[best] : theme.blank;
        hatched ||= kind === FORBIDDEN;
      }
    }
    pixels.set(line, y * width);
    for (let stripe = -(y % period); hatched && stripe < width; stripe += period)
      for (let x = Math.max(0, stripe); x < stripe + thick && x < width; x++)
        if (kinds[x] === FORBIDDEN) pixels[y * width + x] = theme.hatched;
  }
  return image;
}

// First and last cell under each pixel; the one at its middle where cells are larger than pixels.
function spans(start, length, pixels, cells) {
  const made = new Int32Array(2 * pixels);
  const step = length / pixels;
  const last = cells - 1;
  for (let i = 0; i < pixels; i++) {
    const middle = Math.floor(start + (i + 0.5) * step);
    made[2 * i] = Math.min(last, Math.max(0, step > 1 ? Math.floor(start + i * step) : middle));
    made[2 * i + 1] = Math.min(last, Math.max(0, step > 1 ? Math.ceil(start + (i + 1) * step) - 1 : middle));
  }
  return made;
}

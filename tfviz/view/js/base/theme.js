// The colours of a view. Whether they are light or dark follows the background behind the view; no listener is added to
// the page.

const MIN_TEXT_CONTRAST = 4.5; // WCAG 2, level AA
const FLOOR = { light: 22, dark: 45 }; // per cent of the lines' colour in the zero of a small map

/** The current inks and colour ramps of a view. */
export class Theme {
  key = "";
  page = "";
  dark = false;
  /** @type {[colour: string, luminance: number][]} */
  inkLuminances = [];
  ink = "";
  soft = "";
  line = "";
  faint = "";
  focus = "";
  mark = "";
  ramp = "";
  prediction = "";
  low = "";
  high = "";
  /** @type {string[]} */
  heads = [];
  /** The colours of the codes of a sequential scale, and of a diverging one. */
  sequential = new Uint32Array();
  diverging = new Uint32Array();
  /** The sequential scale of small maps: its zero differs from the page, so that cells that may be looked at are seen. */
  floored = new Uint32Array();
  /** The colour of cells that do not exist, and the lines over cells that a mask forbids. */
  blank = 0;
  hatched = 0;

  /**
   * @param {HTMLElement} host
   * @param {Record<string, import("../types.js").Inks>} palette the inks of the light and the dark page
   */
  constructor(host, palette) {
    this.host = host;
    this.palette = palette;
  }

  /** Read the page's colours again; return whether they have changed. */
  update() {
    const key = background(this.host);
    if (key === this.key) return false;
    const page = rgb(key);
    const dark = luminance(page) < 0.35;
    const inks = this.palette[dark ? "dark" : "light"];
    Object.assign(this, inks, { key, page: `rgb(${page.join(" ")})`, dark });
    this.inkLuminances = [inks.ink, this.page].map((colour) => [colour, luminance(rgb(colour))]);
    this.sequential = ramp([this.page, inks.ramp], 256);
    this.floored = ramp(
      [`color-mix(in oklab, ${inks.line} ${dark ? FLOOR.dark : FLOOR.light}%, ${this.page})`, inks.ramp],
      256,
    );
    this.diverging = ramp([inks.low, this.page, inks.high], 256);
    this.blank = pixel(page);
    this.hatched = pixel(rgb(inks.hatch));
    return true;
  }

  /** @param {{ diverging: boolean }} grid */
  lut(grid) {
    return grid.diverging ? this.diverging : this.sequential;
  }

  /** @param {{ diverging: boolean }} grid @param {number} code */
  colour(grid, code) {
    return cssColour(this.lut(grid)[code]);
  }

  /**
   * Return the background and the ink of a text shaded by a code: where neither ink is legible, between pale and deep, the
   * next paler colour is taken on which one is.
   * @param {{ diverging: boolean }} grid
   * @param {number} code
   */
  shadeOfText(grid, code) {
    return this.legibleShade(this.lut(grid), code, grid.diverging ? 128 : 0);
  }

  /**
   * Return the colour of a code and the ink on it; a paler colour where no ink would be legible.
   * @param {Uint32Array} lut
   * @param {number} code
   * @param {number} palest the code of the palest colour
   */
  legibleShade(lut, code, palest) {
    while (code !== palest && this.contrastOn(lut[code])[1] < MIN_TEXT_CONTRAST) code += code > palest ? -1 : 1;
    return { background: cssColour(lut[code]), ink: this.inkOn(lut[code]) };
  }

  /** Return the ink with the best contrast (WCAG) on a colour of a scale. @param {number} pixel */
  inkOn(pixel) {
    return this.contrastOn(pixel)[0];
  }

  /** Return the same, and its contrast. @param {number} pixel @returns {[ink: string, contrast: number]} */
  contrastOn(pixel) {
    const background = luminance([pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255]);
    /** @param {number} light */
    const contrast = (light) => (Math.max(light, background) + 0.05) / (Math.min(light, background) + 0.05);
    const [ink, page] = this.inkLuminances.map(([colour, light]) => [colour, contrast(light)]);
    return /** @type {[string, number]} */ (ink[1] >= page[1] ? ink : page);
  }

  /** @param {number} index */
  headColour(index) {
    return this.heads[index % this.heads.length];
  }
}

/** @param {number} value */
export const cssColour = (value) => `rgb(${value & 255} ${(value >> 8) & 255} ${(value >> 16) & 255})`;

/** Return the background colour behind an element. @param {HTMLElement} element @returns {string} */
function background(element) {
  for (let node = element; node; node = node.parentElement ?? /** @type {any} */ (node.getRootNode()).host) {
    const colour = getComputedStyle(node).backgroundColor;
    if (colour && !/^transparent$|, 0\)$|\/ 0\)$/.test(colour)) return colour;
  }
  const dark =
    getComputedStyle(document.documentElement).colorScheme.includes("dark") &&
    matchMedia("(prefers-color-scheme: dark)").matches;
  return dark ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)";
}

/** Return the relative luminance (WCAG) of a colour. @param {number[]} colour */
function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

/** Make a canvas context of one row of pixels, from which colours are read. @param {number} width */
function paper(width) {
  const canvas = Object.assign(document.createElement("canvas"), { width, height: 1 });
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
}

/** Return the red, green and blue of a CSS colour. @param {string} colour */
function rgb(colour) {
  const pen = paper(1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

/** @type {(colour: number[]) => number} */
const pixel = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

/**
 * Return where a code lies on a diverging scale, from 0 to 2. Code 128 is the middle, so that only zero has the page's
 * colour.
 * @param {number} code
 */
const divergingPosition = (code) => (code <= 128 ? code / 128 : 1 + (code - 128) / 127);

/**
 * Interpolate colours in perceptually even steps: linearly in OKLab, which the browser computes.
 * @param {string[]} stops
 * @param {number} steps
 */
function ramp(stops, steps) {
  const pen = paper(steps);
  for (let i = 0; i < steps; i++) {
    const at = stops.length === 2 ? i / (steps - 1) : divergingPosition(i);
    const from = Math.min(Math.floor(at), stops.length - 2);
    pen.fillStyle = `color-mix(in oklab, ${stops[from + 1]} ${((at - from) * 100).toFixed(3)}%, ${stops[from]})`;
    pen.fillRect(i, 0, 1, 1);
  }
  return new Uint32Array(pen.getImageData(0, 0, steps, 1).data.buffer);
}

export const TEXT_COLOURS = [5, 6, 3, 7, 1, 2]; // indices of the eight colours; yellow and black are hard to read on one of the two pages

/** @param {Theme} theme @param {number} index */
export const inkOf = (theme, index) => theme.headColour(TEXT_COLOURS[index % TEXT_COLOURS.length]);

/**
 * Return a theme whose scale begins off the page's colour: in a small map a weight of 0 differs from what a mask forbids.
 * @param {Theme} theme
 * @returns {Theme}
 */
export const smallMapTheme = (theme) => Object.create(theme, { sequential: { get: () => theme.floored } });

// Two implementations of one drawing interface (`Pen`), for a canvas and for SVG, so that an exported picture equals
// the one on the screen.

/** @import { LineStyle, Pen, RectStyle, TextStyle } from "../types.js" */

const FONT = "system-ui, sans-serif";

/**
 * Move positions on a line as little as possible, so that they are `gap` apart and between two ends.
 * @param {number[]} positions
 * @param {number} gap
 * @param {number} low
 * @param {number} high
 */
export function spreadApart(positions, gap, low, high) {
  const order = [...positions.keys()].sort((a, b) => positions[a] - positions[b]);
  const moved = [...positions];
  order.forEach((i, n) => (moved[i] = Math.max(moved[i], n ? moved[order[n - 1]] + gap : low)));
  order.reverse().forEach((i, n) => (moved[i] = Math.min(moved[i], n ? moved[order[n - 1]] - gap : high)));
  return moved;
}

/** A pen that draws on a canvas. @implements {Pen} */
export class CanvasPen {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {number} width
   * @param {number} height
   * @param {number} [zoom] how many pixels of the page one pixel of the drawing takes
   */
  constructor(canvas, width, height, zoom = 1) {
    this.ratio = (globalThis.devicePixelRatio || 1) * zoom;
    [canvas.width, canvas.height] = devicePixels([width, height], this.ratio);
    Object.assign(canvas.style, { width: `${width * zoom}px`, height: `${height * zoom}px` });
    this.pen = context(canvas);
    this.x = 0;
    this.y = 0;
    this.font = "";
    this.setOrigin(0, 0);
  }

  /** @param {number} x @param {number} y @param {() => void} draw */
  drawAt(x, y, draw) {
    const before = { x: this.x, y: this.y };
    this.setOrigin(before.x + x, before.y + y);
    draw();
    this.setOrigin(before.x, before.y);
  }

  /** @param {number} x @param {number} y */
  setOrigin(x, y) {
    this.x = x;
    this.y = y;
    this.pen.setTransform(this.ratio, 0, 0, this.ratio, x * this.ratio, y * this.ratio);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {RectStyle} [style] */
  rect(x, y, width, height, { fill = null, stroke = null, lineWidth = 1, alpha = 1, radius = 0 } = {}) {
    this.pen.globalAlpha = alpha;
    if (fill) {
      this.pen.fillStyle = fill;
      if (radius) {
        this.pen.beginPath();
        this.pen.roundRect(x, y, width, height, radius);
        this.pen.fill();
      } else this.pen.fillRect(x, y, width, height);
    }
    if (stroke) {
      this.pen.strokeStyle = stroke;
      this.pen.lineWidth = lineWidth;
      this.pen.strokeRect(x, y, width, height);
    }
    this.pen.globalAlpha = 1;
  }

  /** @param {number} x @param {number} y @param {number} radius @param {{ fill: string, alpha?: number }} style */
  dot(x, y, radius, { fill, alpha = 1 }) {
    Object.assign(this.pen, { fillStyle: fill, globalAlpha: alpha });
    this.pen.beginPath();
    this.pen.arc(x, y, radius, 0, 2 * Math.PI);
    this.pen.fill();
    this.pen.globalAlpha = 1;
  }

  /** @param {number} x @param {number} y @param {string} string @param {TextStyle} style */
  text(x, y, string, { fill, size = 12, align = "left", bold = false, rotated = false }) {
    const font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    if (font !== this.font) this.pen.font = this.font = font; // setting a font takes longer than drawing a text
    Object.assign(this.pen, { fillStyle: fill, textAlign: align, textBaseline: "middle" });
    if (!rotated) return void this.pen.fillText(string, x, y);
    this.pen.save();
    this.pen.translate(x, y);
    this.pen.rotate(-Math.PI / 2);
    this.pen.fillText(string, 0, 0);
    return void this.pen.restore();
  }

  /**
   * Draw a curve between two points that leaves and arrives level; a straight line if one is above the other.
   * @param {number} x1
   * @param {number} y1
   * @param {number} x2
   * @param {number} y2
   * @param {LineStyle} style
   */
  line(x1, y1, x2, y2, { stroke, lineWidth = 1, alpha = 1, bend = 0 }) {
    Object.assign(this.pen, { strokeStyle: stroke, lineWidth: lineWidth, globalAlpha: alpha });
    this.pen.beginPath();
    this.pen.moveTo(x1, y1);
    this.pen.bezierCurveTo(x1 + bend * (x2 - x1), y1, x2 - bend * (x2 - x1), y2, x2, y2);
    this.pen.stroke();
    this.pen.globalAlpha = 1;
  }

  /**
   * Draw an image, given in device pixels, with its upper left corner at a point of the page.
   * @param {ImageData} data
   * @param {number} x
   * @param {number} y
   */
  image(data, x, y) {
    this.pen.putImageData(data, Math.round((this.x + x) * this.ratio), Math.round((this.y + y) * this.ratio));
  }
}

/** A pen that writes SVG elements. @implements {Pen} */
export class SvgPen {
  /** @type {string[]} */
  parts = [];

  /** @param {number} width @param {number} height @param {number} [ratio] */
  constructor(width, height, ratio = globalThis.devicePixelRatio || 1) {
    this.width = width;
    this.height = height;
    this.ratio = ratio;
  }

  /** @param {number} x @param {number} y @param {() => void} draw */
  drawAt(x, y, draw) {
    this.parts.push(`<g transform="translate(${n(x)} ${n(y)})">`);
    draw();
    this.parts.push("</g>");
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {RectStyle} [style] */
  rect(x, y, width, height, { fill = "none", stroke = "none", lineWidth = 1, alpha = 1, radius = 0 } = {}) {
    this.parts.push(
      `<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" fill="${fill ?? "none"}" stroke="${stroke ?? "none"}" stroke-width="${lineWidth}" opacity="${n(alpha)}"${radius ? ` rx="${radius}"` : ""}/>`,
    );
  }

  /** @param {number} x @param {number} y @param {number} radius @param {{ fill: string, alpha?: number }} style */
  dot(x, y, radius, { fill, alpha = 1 }) {
    this.parts.push(`<circle cx="${n(x)}" cy="${n(y)}" r="${n(radius)}" fill="${fill}" opacity="${n(alpha)}"/>`);
  }

  /** @param {number} x @param {number} y @param {string} string @param {TextStyle} style */
  text(x, y, string, { fill, size = 12, align = "left", bold = false, rotated = false }) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const turn = rotated ? ` transform="rotate(-90 ${n(x)} ${n(y)})"` : "";
    this.parts.push(
      `<text x="${n(x)}" y="${n(y)}" fill="${fill}" font-size="${size}" text-anchor="${anchor}" dominant-baseline="central"${bold ? ' font-weight="600"' : ""}${turn}>${escaped(string)}</text>`,
    );
  }

  /** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {LineStyle} style */
  line(x1, y1, x2, y2, { stroke, lineWidth = 1, alpha = 1, bend = 0 }) {
    const path = `M${n(x1)} ${n(y1)}C${n(x1 + bend * (x2 - x1))} ${n(y1)} ${n(x2 - bend * (x2 - x1))} ${n(y2)} ${n(x2)} ${n(y2)}`;
    this.parts.push(
      `<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${n(lineWidth)}" opacity="${n(alpha)}"/>`,
    );
  }

  /** @param {ImageData} data @param {number} x @param {number} y */
  image(data, x, y) {
    const canvas = Object.assign(document.createElement("canvas"), { width: data.width, height: data.height });
    context(canvas).putImageData(data, 0, 0);
    const size = `width="${n(data.width / this.ratio)}" height="${n(data.height / this.ratio)}"`;
    this.parts.push(
      `<image x="${n(x)}" y="${n(y)}" ${size} preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"/>`,
    );
  }

  toString() {
    const size = `width="${n(this.width)}" height="${n(this.height)}" viewBox="0 0 ${n(this.width)} ${n(this.height)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${FONT}">${this.parts.join("\n")}</svg>\n`;
  }
}

/** Return lengths in whole pixels of the device, at least one. @param {number[]} lengths @param {number} ratio */
export const devicePixels = (lengths, ratio) => lengths.map((length) => Math.max(1, Math.round(length * ratio)));

/** @param {HTMLCanvasElement} canvas */
const context = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/** @type {Record<string, string>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
/** @param {number} number */
const n = (number) => Number(number.toFixed(2));
/** @param {string} string */
const escaped = (string) =>
  string
    .toWellFormed()
    // eslint-disable-next-line no-control-regex -- XML cannot hold them
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"]/g, (c) => ENTITIES[c]);

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;
/** Measure the width of a text in pixels. @param {string} string @param {number} [size] @param {boolean} [bold] */
export function textWidth(string, size = 12, bold = false) {
  ruler ??= context(document.createElement("canvas"));
  ruler.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
  return ruler.measureText(string).width;
}

// Functions that draw what a view shows as a PNG or SVG file and download it.

import { CanvasPen, SvgPen } from "../base/pen.js";

/** @import { Drawing } from "../types.js" */

/** Draw a PNG file. @param {Drawing} drawing @param {string} page the colour behind it @returns {Promise<Blob>} */
export async function png({ width, height, draw }, page) {
  const canvas = document.createElement("canvas");
  const pen = new CanvasPen(canvas, width, height);
  pen.rect(0, 0, width, height, { fill: page });
  draw(pen);
  return new Promise((done, fail) => {
    canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("the picture is too large"))), "image/png");
  });
}

/** Draw an SVG file. @param {Drawing} drawing @param {string} page */
export function svg({ width, height, draw }, page) {
  const pen = new SvgPen(width, height);
  pen.rect(0, 0, width, height, { fill: page });
  draw(pen);
  return new Blob([pen.toString()], { type: "image/svg+xml" });
}

/** Download a file under a name. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

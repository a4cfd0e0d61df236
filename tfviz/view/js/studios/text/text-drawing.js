// Drawings of a studio's parts for a file: a text as the browser has laid it out, parts one below another or side by side.

import { Heatmap } from "../../views/heatmap.js";

/** @import { Grid } from "../../base/grid.js" */
/** @import { Theme } from "../../base/theme.js" */
/** @import { Drawing, Pen } from "../../types.js" */

const PART_GAP = 18; // between two parts
const MAX_MAP_WIDTH = 420; // of a head's map
const BAR_HEIGHT = 14; // of the highest bar under a token, as in model.css
const LETTER_WIDTH = 7; // at most, of small text

/**
 * Return a drawing of pieces of text at their positions in the page, with their background colours; invisible pieces are left out.
 * @param {HTMLElement} element
 * @param {Iterable<Element>} pieces
 * @returns {Drawing}
 */
export function textDrawing(element, pieces) {
  const box = element.getBoundingClientRect();
  const placed = [...pieces].flatMap((piece) => {
    const style = getComputedStyle(piece);
    const rects = [...piece.getClientRects()]
      .filter(({ top, bottom, width }) => width > 0 && top >= box.top - 1 && bottom <= box.bottom + 1)
      .map(({ left, top, width, height }) => ({ x: left - box.left, y: top - box.top, width, height }));
    const text = piece instanceof HTMLElement ? (piece.dataset.sign ?? piece.textContent ?? "") : "";
    return rects.length ? [{ rects, style, text, struck: piece.classList.contains("struck") }] : [];
  });
  const height = Math.max(0, ...placed.flatMap(({ rects }) => rects.map((rect) => rect.y + rect.height)));
  const draw = (/** @type {Pen} */ pen) => {
    for (const { rects, style, text, struck } of placed) {
      const { backgroundColor, color, fontSize, fontWeight, paddingLeft } = style;
      const [top, bottom] = [style.paddingTop, style.paddingBottom].map(parseFloat);
      const [{ x, y, height }] = rects;
      for (const rect of rects)
        if (!/, 0\)$|transparent/.test(backgroundColor))
          pen.rect(rect.x, rect.y, rect.width, rect.height - bottom + top, { fill: backgroundColor, radius: 3 });
      const textStyle = { size: parseFloat(fontSize), fill: color, bold: Number(fontWeight) > 500 };
      pen.text(x + parseFloat(paddingLeft), y + (height - bottom + top) / 2, text.trim(), textStyle);
      const bar = BAR_HEIGHT * Number(style.getPropertyValue("--bar"));
      if (bar) pen.rect(x, y + height - bar, rects[0].width - 1, bar, { fill: style.getPropertyValue("--prediction") });
      if (struck) for (const rect of rects) pen.rect(rect.x, rect.y + rect.height / 2, rect.width, 1, { fill: color });
    }
  };
  return { width: box.width, height, draw };
}

/** Draw a line of small text. @param {Theme} theme @param {string} text @returns {Drawing} */
export const lineDrawing = (theme, text) => ({
  width: LETTER_WIDTH * text.length,
  height: 14,
  draw: (pen) => pen.text(0, 7, text, { fill: theme.soft, size: 12 }),
});

/** Put drawings one below another. @param {Drawing[]} parts @returns {Drawing} */
export function stacked(parts) {
  let height = 0;
  const placed = parts.map((part) => {
    const y = height;
    height += part.height + PART_GAP;
    return { part, y };
  });
  const draw = (/** @type {Pen} */ pen) => {
    for (const { part, y } of placed) pen.drawAt(0, y, () => part.draw(pen));
  };
  return { width: Math.max(0, ...parts.map(({ width }) => width)), height: height - PART_GAP, draw };
}

/** Put a drawing at the right of another. @param {Drawing} left @param {Drawing} right @returns {Drawing} */
export function besideEachOther(left, right) {
  const x = left.width + 2 * PART_GAP;
  const draw = (/** @type {Pen} */ pen) => {
    left.draw(pen);
    pen.drawAt(x, 0, () => right.draw(pen));
  };
  return { width: x + right.width, height: Math.max(left.height, right.height), draw };
}

/** @param {Theme} theme @param {Grid} grid @param {string[]} axes @param {string} title @returns {Drawing} */
export function mapDrawing(theme, grid, axes, title) {
  const map = new Heatmap(theme, { axes, maxCell: 26, maxHeight: 420 });
  map.title = title;
  const height = map.layout(grid, MAX_MAP_WIDTH);
  return { width: MAX_MAP_WIDTH, height, draw: (pen) => map.draw(pen) };
}

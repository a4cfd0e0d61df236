// Arcs over a text from the token that looks to those that it looks at most.

/** @import { Theme } from "../../base/theme.js" */
/** @typedef {{ element: Element, code: number }} ShadedPiece a piece of the text, and its weight as a code of a map */

const SVG = "http://www.w3.org/2000/svg";
const MAX_ARCS = 3;
const MIN_CODE = 80; // of 255: a tenth of the attention, on a scale of square roots
const WIDTHS = [1.25, 1.75]; // pixels, at no weight and at all of it
const [MIN_HEIGHT, MAX_HEIGHT, RISE] = [7, 16, 0.12]; // pixels above a line, and per pixel between its ends
const [GAP, MIN_LINE_GAP] = [1, 16]; // pixels between an arc and the letters; between two lines that an arc may join

/** A drawing over a pane that catches no pointer. */
export class LookArcs {
  svg = document.createElementNS(SVG, "svg");

  /** @param {HTMLElement} pane which the drawing covers; on a telephone the texts have no box of their own */
  constructor(pane) {
    this.pane = pane;
    this.svg.setAttribute("class", "arcs");
    this.svg.setAttribute("aria-hidden", "true");
    pane.append(this.svg);
    pane.addEventListener("scroll", () => this.show(null), true); // a text that scrolls leaves them behind
  }

  /**
   * @param {Element | null} from the piece that looks; null: nothing does
   * @param {ShadedPiece[]} [pieces]
   * @param {Theme} [theme]
   */
  show(from, pieces = [], theme) {
    const strongest = pieces.filter(({ element, code }) => code >= MIN_CODE && element !== from);
    strongest.sort((a, b) => b.code - a.code);
    const paths = strongest.slice(0, from ? MAX_ARCS : 0).flatMap(({ element, code }) => {
      const curve = this.curve(/** @type {Element} */ (from), element);
      return curve ? [pathOf(curve, (code / 255) ** 2, theme?.ramp)] : [];
    });
    this.svg.replaceChildren(...paths);
  }

  /**
   * Return the curve from one piece to another, in SVG's words: above a line, or between a line and the next; empty if
   * there are lines between them, whose letters it would cross.
   * @param {Element} from
   * @param {Element} to
   */
  curve(from, to) {
    const origin = this.pane.getBoundingClientRect();
    const boxes = [from, to].map((element) => element.getBoundingClientRect());
    const [upper, lower] = boxes[0].top <= boxes[1].top ? boxes : boxes.toReversed();
    const [x1, x2] = [upper, lower].map(({ left, width }) => Math.round(left + width / 2 - origin.left));
    const isSameLine = lower.top < upper.top + upper.height / 2;
    if (!isSameLine && lower.top > upper.bottom + upper.height / 2) return "";
    if (!isSameLine && lower.top - upper.bottom < MIN_LINE_GAP) return ""; // too flat to be followed
    const y1 = (isSameLine ? upper.top - GAP : upper.bottom) - origin.top;
    const y2 = lower.top - GAP - origin.top;
    if (!isSameLine) return `M${x1} ${y1}C${x1} ${y1 + MIN_HEIGHT} ${x2} ${y2 - MIN_HEIGHT} ${x2} ${y2}`;
    const rise = Math.min(MAX_HEIGHT, MIN_HEIGHT + RISE * Math.abs(x2 - x1));
    return `M${x1} ${y1}C${x1} ${y1 - rise} ${x2} ${y2 - rise} ${x2} ${y2}`;
  }
}

/** @param {string} curve @param {number} weight @param {string} [colour] */
function pathOf(curve, weight, colour) {
  const path = document.createElementNS(SVG, "path");
  const width = WIDTHS[0] + weight * (WIDTHS[1] - WIDTHS[0]);
  path.setAttribute("d", curve);
  path.style.cssText = `stroke: ${colour}; opacity: ${0.35 + 0.65 * weight}; stroke-width: ${width}px`;
  return path;
}

// A component that shows the patches which the chosen head looks at most, as small pictures that can be hidden.

import { button, h } from "../../base/elements.js";
import { percent } from "../../base/numbers.js";
import { topPatches } from "./image-summary.js";

/** @import { Profile } from "../../base/patch-grid.js" */
/** @import { ClassifyImageStudio } from "./classify-image-studio.js" */

const COUNT = 3;
const SIDE = 72; // pixels of a small picture
const CONTEXT = 0.5; // patches of the picture that are drawn around each

/** The strongest patches of a head, strongest first. */
export class AttendedPatches {
  /** @param {ClassifyImageStudio} studio */
  constructor(studio) {
    this.studio = studio;
    this.list = h("div", { class: "crops", role: "group", "aria-label": "What this head looks at most" });
    this.element = h("div", { class: "attended" }, h("h4", {}, "What this head looks at most"), this.list);
  }

  /** @param {Profile | null} profile of the chosen head; null if it is off */
  show(profile) {
    const { studio } = this;
    const { patches } = studio.viewDocument;
    this.element.hidden = !profile;
    if (!profile) return;
    const ratio = globalThis.devicePixelRatio || 1;
    const hidden = new Set(studio.hidden);
    this.list.replaceChildren(
      ...this.strongest(profile).map((patch, i, all) => {
        const covered = hidden.has(patch);
        const weight = percent(profile.values[patches.first + patch]);
        const toggle = () => studio.hide(covered ? [...hidden].filter((other) => other !== patch) : [...hidden, patch]);
        const name = `${studio.patchName(patch)}: ${weight} of its attention; ${covered ? "bring it back" : "hide it"}`;
        return button(
          [this.crop(patch, Math.round(SIDE * ratio)), h("span", {}, all.length > 1 ? `${i + 1} · ${weight}` : weight)],
          toggle,
          {
            class: covered ? "crop covered" : "crop",
            title: name,
            "aria-label": name,
            "aria-pressed": String(covered),
          },
        );
      }),
    );
  }

  /** The patches that get more than an even share; at least one. @param {Profile} profile */
  strongest({ values }) {
    const { patches } = this.studio.viewDocument;
    const top = topPatches(values, patches, COUNT);
    return top.filter((patch, i) => !i || values[patches.first + patch] > 1 / values.length);
  }

  /** Draw a patch with what lies around it. @param {number} patch @param {number} side pixels of the device */
  crop(patch, side) {
    const { pane, viewDocument, frame } = this.studio;
    const { rows, columns } = viewDocument.patches;
    const { image, width, height } = pane.source;
    const canvas = h("canvas", { width: side, height: side });
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const [row, column] = [Math.floor(patch / columns), patch % columns];
    const span = 1 + 2 * CONTEXT;
    const [across, down] = [width / columns, height / rows];
    // the whole picture, drawn so large that the patch fills the middle: outside of it the hatched ground is seen
    const scale = [side / (span * across), side / (span * down)];
    const corner = [-(column - CONTEXT) * across * scale[0], -(row - CONTEXT) * down * scale[1]];
    pen.drawImage(image, corner[0], corner[1], width * scale[0], height * scale[1]);
    const [edge, inner] = [(side * CONTEXT) / span, side / span];
    for (const [stroke, lineWidth] of /** @type {[string, number][]} */ ([
      [frame.theme.page, 0.07],
      [frame.theme.ramp, 0.035],
    ])) {
      pen.strokeStyle = stroke;
      pen.lineWidth = lineWidth * side;
      pen.strokeRect(edge, edge, inner, inner);
    }
    return canvas;
  }
}

// Mouse, touch and keys on a picture and the words beside it.

import { following } from "../base/elements.js";
import { STEPS } from "./pointing.js";

/** @param {HTMLCanvasElement} canvas @param {import("./image-overlay.js").ImageStage} stage */
export function picking(canvas, stage) {
  /** @param {MouseEvent} event */
  const token = (event) => {
    const box = canvas.getBoundingClientRect();
    return stage.layout?.under(event.clientX - box.left, event.clientY - box.top) ?? null;
  };
  following(
    canvas,
    (event) => stage.point(token(event)),
    () => stage.point(null),
  );
  canvas.onclick = (event) => {
    const at = token(event);
    if (at) stage.choose(at);
  };
  /** @type {Record<string, () => void>} */
  const keys = {
    Enter: () => stage.choose(stage.cursor ?? stage.chosen),
    " ": () => stage.choose(stage.cursor ?? stage.chosen),
    p: () => stage.showPictureOnly(!stage.pictureOnly),
    P: () => stage.showPictureOnly(!stage.pictureOnly),
    Escape: () => stage.handlers.leave(),
  };
  canvas.onkeydown = (event) => {
    if (event.metaKey || event.altKey || !stage.layout || (event.ctrlKey && !STEPS[event.key])) return;
    const many = event.shiftKey || event.ctrlKey ? 10 : 1;
    if (STEPS[event.key]) stage.point(stage.layout.step(stage.cursor ?? stage.chosen, STEPS[event.key], many));
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  canvas.onfocus = () => stage.layout && stage.point(stage.cursor ?? { panel: 0, ...stage.chosen });
  canvas.onblur = () => stage.point(null);
}

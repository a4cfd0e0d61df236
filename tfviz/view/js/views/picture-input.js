// A function that translates mouse, touch and key events on pictures and the words beside them into calls of an image
// stage.

import { ARROW_STEPS, consume, followPointer, pointIn } from "../base/events.js";

/**
 * Listen to pointer and keys on the canvas of an image stage.
 * @param {HTMLCanvasElement} canvas
 * @param {import("./image-stage.js").ImageStage} stage
 */
export function listenToPicture(canvas, stage) {
  /** @param {MouseEvent} event */
  const token = (event) => {
    return stage.layout?.tokenAt(...pointIn(canvas, event)) ?? null;
  };
  followPointer(
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
    if (event.metaKey || event.altKey || !stage.layout || (event.ctrlKey && !ARROW_STEPS[event.key])) return;
    const many = event.shiftKey || event.ctrlKey ? 10 : 1;
    if (ARROW_STEPS[event.key])
      stage.point(stage.layout.step(stage.cursor ?? stage.chosen, ARROW_STEPS[event.key], many));
    else if (keys[event.key]) keys[event.key]();
    else return;
    consume(event);
  };
  canvas.onfocus = () => stage.layout && stage.point(stage.cursor ?? { panel: 0, ...stage.chosen });
  canvas.onblur = () => stage.point(null);
}

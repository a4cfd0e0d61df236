// A slider of steps, and a button that plays them.

import { button, h, slider } from "../base/elements.js";

const ALL_STEPS_MS = 6000; // the time that all steps take together, as far as
const [MIN_STEP_MS, MAX_STEP_MS] = [120, 500]; // one step takes no less and no more than this

/**
 * Make a slider of steps with a button that plays them from the one shown, or from the first if that is the last.
 * @param {string[]} names
 * @param {number} step the one shown first
 * @param {(step: number) => void} choose
 * @returns {{ element: HTMLElement, show(step: number): void }}
 */
export function stepPlayer(names, step, choose) {
  const last = names.length - 1;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  const pause = () => {
    clearInterval(timer);
    timer = undefined;
    player.textContent = "▶ Play";
  };
  const advance = () => {
    if (step === last || !player.isConnected) pause();
    else choose(step + 1);
  };
  const toggle = () => {
    if (timer !== undefined) return pause();
    if (step === last) choose(0);
    timer = setInterval(advance, Math.min(MAX_STEP_MS, Math.max(MIN_STEP_MS, ALL_STEPS_MS / names.length)));
    player.textContent = "❚❚ Pause";
  };
  const player = button("▶ Play", toggle, { class: "play" });
  const steps = slider("Step", {
    min: 0,
    max: last,
    value: step,
    text: (at) => names[at],
    choose: (at) => {
      pause();
      choose(at);
    },
  });
  return {
    element: h("div", { class: "player" }, player, steps.element),
    show(now) {
      step = now;
      steps.show(now);
    },
  };
}

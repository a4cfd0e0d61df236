// A function that binds the commands of a studio to Alt and a letter.

import { consume } from "../base/events.js";

/**
 * Make a keydown listener that calls the action of a letter (in lower case) pressed with Alt. Where Alt yields a
 * different character, as on a Mac (Option and S is "ß"), the physical key counts.
 * @param {Record<string, (event: KeyboardEvent) => unknown>} actions
 * @returns {(event: KeyboardEvent) => void}
 */
export function shortcuts(actions) {
  return (event) => {
    if (!event.altKey) return;
    const act = actions[event.key.toLowerCase()] ?? actions[event.code.replace("Key", "").toLowerCase()];
    if (!act) return;
    act(event);
    consume(event);
  };
}

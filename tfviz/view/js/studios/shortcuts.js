// Commands of a studio on Alt and a letter.

import { consume } from "../base/events.js";

/**
 * Return what listens to keydown: Alt and a letter do what `actions` has under the letter, in lower case. Where Alt makes
 * another character of it, as on a Mac (Option and S is "ß"), the key's place counts.
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

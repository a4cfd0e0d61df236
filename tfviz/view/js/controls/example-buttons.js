// The buttons after "Try": examples that an author or a view proposes. Undo takes back all that one does.

import { button, h } from "../base/elements.js";

/** @import { TopBar } from "./top-bar.js" */
/** @typedef {{ name: string, act: () => any }} Example what it is called, and what it does */

/**
 * Make a button for each example, which is busy until the example is done.
 * @param {Example[]} examples
 * @param {TopBar} bar
 * @param {() => void} [done] called after an example
 */
export function exampleButtons(examples, { frame, history }, done = () => {}) {
  const buttons = examples.map(({ name, act }) => {
    const run = async () => {
      exampleButton.setAttribute("aria-busy", "true");
      try {
        await history.group(act);
        done();
      } catch (error) {
        frame.showError(/** @type {Error} */ (error));
      }
      exampleButton.removeAttribute("aria-busy");
    };
    const exampleButton = button(name, run);
    return exampleButton;
  });
  return h("div", { class: "examples", role: "group", "aria-label": "Try" }, h("span", {}, "Try"), ...buttons);
}

// A component that lists the texts written so far as buttons, which return to them.

import { button, focusedIn, h } from "../../base/elements.js";
import { formatCount } from "../../base/numbers.js";
import { truncate } from "../../base/visible-text.js";
import { note } from "../small-elements.js";

const MAX_BRANCH_LENGTH = 24; // letters

/** A list with a button for each leaf of a tree of tokens. */
export class Branches {
  /**
   * @param {import("./token-tree.js").TokenTree} path
   * @param {(tokens: number[]) => string} textOf
   * @param {(node: number) => void} choose
   */
  constructor(path, textOf, choose) {
    this.path = path;
    this.textOf = textOf;
    this.choose = choose;
    this.element = h("div", { class: "branches", role: "group", "aria-label": "Texts written so far" });
  }

  /** @param {number} at */
  show(at) {
    const { leaves } = this.path;
    const { element } = this;
    const focused = element.contains(focusedIn(element));
    element.hidden = leaves.length < 2;
    element.replaceChildren(note("Branches"), ...leaves.map((leaf) => this.branch(leaf, leaf === at)));
    if (focused) /** @type {HTMLElement | null} */ (element.querySelector("[aria-pressed='true']"))?.focus();
  }

  /** @param {number} leaf @param {boolean} current */
  branch(leaf, current) {
    const tokens = this.path.to(leaf);
    const text = truncate(this.textOf(tokens).replace(/\s/g, " "), MAX_BRANCH_LENGTH, "end").join("");
    return button(text, () => this.choose(leaf), {
      "aria-pressed": String(current),
      title: `${formatCount(tokens.length, "token")}`,
      dir: "auto",
    });
  }
}

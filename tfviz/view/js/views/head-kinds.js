// Buttons that find heads by what they do, as the example buttons of a studio do.

import { button, h } from "../base/elements.js";
import { formatCount } from "../base/numbers.js";
import { headsByKind } from "./head-summary.js";

/** @import { AnyGrid } from "../types.js" */

const MAX_CELLS = 4e6; // of all maps together; more would take too long to summarize

/** A button for each kind of head, such as "one token back": each press selects the next head of that kind. */
export class HeadKinds {
  element = h("div", { class: "kinds", role: "group", "aria-label": "Find a head that looks", hidden: true });
  signature = "";

  /** @param {(layer: number, head: number) => void} select */
  constructor(select) {
    this.select = select;
  }

  /** Show the kinds of heads among these maps. @param {Map<string, AnyGrid>} grids by "layer.head" */
  show(grids) {
    const cells = [...grids.values()].reduce((sum, grid) => sum + grid.rows.length * grid.columns.length, 0);
    const kinds = cells > MAX_CELLS ? [] : headsByKind(grids);
    const signature = JSON.stringify(kinds);
    this.element.hidden = !kinds.length;
    if (signature === this.signature) return;
    this.signature = signature;
    this.element.replaceChildren(h("span", {}, "Find a head that looks"), ...kinds.map((kind) => this.button(kind)));
  }

  /** @param {{ name: string, heads: [number, number][] }} kind */
  button({ name, heads }) {
    let next = 0;
    const onclick = () => this.select(...heads[next++ % heads.length]);
    return button(name, onclick, { title: formatCount(heads.length, "head") });
  }
}

// A pane that shows all heads of a model as small maps, a description of the selected head, and below it that head's
// map in full.

import { button, h } from "../base/elements.js";
import { percent } from "../base/numbers.js";
import { HeadsView } from "../views/heads-view.js";
import { MIN_NAMED_SIDE, ModelPane } from "./model-pane.js";
import { prefersNoMotion } from "./animation.js";
import { gradient, joinPresent, pane } from "./small-elements.js";

/** @import { Grid } from "../base/grid.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { StudioState } from "../documents.js" */
/** @import { Choices } from "../types.js" */
/** @import { ModelHeads } from "./model-heads.js" */
/** @import { HeadAddress } from "./model-pane.js" */
/** @typedef {{ text: string, limit: number }} MapLegend how the small maps are read, and the largest weight of their scale */

export const HEAD_SHORTCUTS = ["arrows, Enter, x", "in the model: to another head, look at it, switch it off or on"];
const clickHelp = () =>
  matchMedia("(hover: none)").matches
    ? "Tap a map to select its head."
    : "Click a map to select its head, × to switch it off.";
const PINNED_MARGIN = "0px 0px -200px 0px"; // more than the height of a sentence and its buttons
const OPENING_MESSAGE = "Opening the model …";

/** A pane with the heads of a model. */
export class HeadPane {
  /** @type {HeadsView | undefined} */
  headsView;
  /** What follows the scale of the maps. @type {HTMLElement | null} */
  legendEnd = null;

  /** @param {Theme} theme @param {Choices<StudioState>} store @param {ModelHeads} heads */
  constructor(theme, store, heads) {
    this.store = store;
    this.heads = heads;
    this.model = new ModelPane(theme, {
      select: (address) => heads.select(address),
      toggle: (site, numbers) => heads.toggle(site, numbers),
      toggleHead: (address) => heads.toggleHead(address),
    });
    const switchOn = () => {
      store.set({ ablated_heads: [] });
      /** @type {HTMLElement | null} */ (this.model.element.querySelector("[tabindex='0']"))?.focus(); // the button goes
    };
    this.allOn = button("All on", switchOn, { class: "all-on" });
    this.allOn.hidden = true;
    this.actions = h("span", { class: "actions" }, this.allOn);
    this.opening = h("p", { class: "opening" }, OPENING_MESSAGE, h("progress", { "aria-label": OPENING_MESSAGE }));
    this.legend = h("p", { class: "legend", hidden: true });
    this.element = pane("heads-of-model", "The model", this.actions, this.opening, this.model.element, this.legend);
    this.sentence = h("p", { class: "sentence-of-head" });
    const toggle = () => {
      store.set({ head_map_open: !store.get("head_map_open"), mode: "head" });
      if (store.get("head_map_open")) requestAnimationFrame(() => this.scrollToOpened());
    };
    this.opener = button("", toggle, { title: "its map with all words, below", hidden: true });
    this.switcher = button("", () => heads.toggleHead(heads.selected), { hidden: true });
    this.selectedHead = h(
      "div",
      { class: "studio-summary" },
      this.sentence,
      h("div", { class: "row" }, this.switcher, this.opener),
    );
    this.openedHead = h("div", { class: "inner", hidden: true });
    // On a telephone the sentence stays in view as long as the heads that it is about are, above where it stands.
    this.watcher = new IntersectionObserver(
      ([{ isIntersecting }]) => this.selectedHead.classList.toggle("pinned", isIntersecting),
      { rootMargin: PINNED_MARGIN },
    );
    this.watcher.observe(this.model.element);
  }

  /** Show how the small maps are read, and their scale. @param {MapLegend} legend */
  showLegend({ text, limit }) {
    const { floored } = this.model.theme;
    const most = limit < 1 ? `${percent(limit)} or more` : percent(1);
    const across = this.model.side < MIN_NAMED_SIDE && "Across: layers; down: heads.";
    this.legend.hidden = false;
    this.legend.replaceChildren(
      h("span", { class: "how" }, joinPresent([across, text, clickHelp()])),
      h(
        "span",
        { class: "ramp" },
        "attention",
        h(
          "span",
          { class: "marked-scale" },
          gradient(floored),
          h("output", {}, "0%"),
          h("output", {}, percent(limit / 4)), // the middle of a square-root scale
          h("output", {}, most),
        ),
      ),
      ...(this.legendEnd ? [this.legendEnd] : []),
    );
  }

  /** Show all heads. @param {(address: HeadAddress) => Grid} grid @param {(address: HeadAddress) => number | null} row to mark in its map */
  show(grid, row) {
    const { heads } = this;
    const ablatedHeads = this.store.get("ablated_heads");
    this.opening.remove();
    this.allOn.hidden = !ablatedHeads.length;
    this.model.show({ groups: heads.groups, grid, ablatedHeads, selected: heads.selected, row });
    heads.maps.current = row(heads.selected);
  }

  /** Describe the selected head. @param {string} behaviour @param {string} effect of its ablation */
  describe(behaviour, effect) {
    const { heads } = this;
    this.sentence.replaceChildren(h("b", {}, heads.nameOf(heads.selected)), ` ${behaviour} ${effect}`);
    this.switcher.hidden = false;
    this.switcher.textContent = heads.isAblated(heads.selected) ? "Switch it on" : "Switch it off";
  }

  /** Show the opened head. A head that is off has no map; if one is open, the first head that is on is selected. */
  showOpened() {
    const { heads, store } = this;
    const open = Boolean(store.get("head_map_open"));
    this.opener.hidden = !open && heads.isAblated(heads.selected);
    this.opener.textContent = open ? "Close this head ↑" : "Open this head ↓";
    this.opener.setAttribute("aria-expanded", String(open));
    this.openedHead.hidden = !open;
    if (!open) return;
    const other = heads.isAblated(heads.selected) && heads.addresses.find((address) => !heads.isAblated(address));
    if (other) return void heads.select(other);
    if (this.headsView) void this.headsView.update();
    else
      this.headsView = new HeadsView(this.openedHead, heads.maps, store, {
        saveCaption: "Save the heads as",
        large: true,
      });
  }

  /** Bring the opened head into view, if it is below. */
  scrollToOpened() {
    const { top } = this.openedHead.getBoundingClientRect();
    const behavior = prefersNoMotion() ? "auto" : "smooth";
    if (top > innerHeight / 2) this.selectedHead.scrollIntoView({ block: "start", behavior });
  }

  close() {
    this.watcher.disconnect();
    this.headsView?.close();
  }
}

// A component with the controls above a view of heads: mode, part, layer and heads, and how several heads are combined.

import { button, checkbox, h, select, slider, tabs } from "../base/elements.js";
import { NO_LOCKS } from "../base/locks.js";
import { formatNumber } from "../base/numbers.js";
import { stepPlayer } from "./step-player.js";

/** @import { HeadMode, HeadsState } from "../documents.js" */
/** @import { Choices } from "../types.js" */

/** @type {[HeadMode, string][]} */
export const MODES = [
  ["sheet", "All heads"],
  ["head", "One head"],
  ["links", "Lines"],
  ["words", "Words"],
  ["picture", "On the picture"],
];
/** @type {[HeadsState["hide_keys"], string][]} */
const HIDDEN_KEYS = [
  ["nothing", "nothing"],
  ["first", "the first key"],
  ["separators", "separators"],
  ["sinks", "sinks"],
  ["chosen", "locked keys"],
];
/** @type {[HeadsState["combine_heads"], string][]} */
const COMBINATIONS = [
  ["mean", "mean"],
  ["max", "maximum"],
];
/** @type {[HeadsState["direction"], string][]} */
const DIRECTIONS = [
  ["from", "what it looks at"],
  ["to", "what looks at it"],
];

const MAX_BUTTONS = 6; // more parts are chosen from a menu,
const MAX_BUTTON_LETTERS = 90; // as are parts whose names are longer than this together

/** A row of controls that reads and sets the choices of a view of heads. */
export class HeadControls {
  /**
   * @param {import("./head-selection.js").HeadSelection} selection
   * @param {Choices<HeadsState>} store
   * @param {import("../base/theme.js").Theme} theme
   */
  constructor(selection, store, theme) {
    this.selection = selection;
    this.store = store;
    this.theme = theme;
    /** @type {<Name extends keyof HeadsState>(name: Name) => (value: HeadsState[Name]) => void} */
    const set = (name) => (value) => store.set(/** @type {Partial<HeadsState>} */ ({ [name]: value }));
    /** @param {HeadsState["hide_keys"]} kind */
    const hide = (kind) =>
      store.set({
        hide_keys: kind,
        hidden_keys: kind === "chosen" ? store.get("locked_columns") : [],
        locked_columns: [],
      });
    /** @param {boolean} merged */
    const merge = (merged) => store.set({ merge_subwords: merged, ...NO_LOCKS });
    /** @type {<Name extends keyof HeadsState>(name: Name, title: string, options: [HeadsState[Name], string][]) => any} */
    const menu = (name, title, options) => select(title, options, store.get(name), set(name));
    /** @type {Record<string, { element: HTMLElement, show(value: any): void }>} */
    this.controls = {
      mode: tabs(
        "How to look",
        MODES.filter(
          ([mode]) => (mode !== "picture" || selection.hasPicture) && (mode !== "sheet" || selection.hasSheet),
        ),
        store.get("mode"),
        set("mode"),
      ),
      part: this.partControl(selection.source.parts),
      combine_heads: menu("combine_heads", "Together", COMBINATIONS),
      direction: menu("direction", "Show", DIRECTIONS),
      min_weight: slider("At least", {
        min: 0,
        max: Math.max(0.5, store.get("min_weight")),
        step: 0.01,
        value: store.get("min_weight"),
        text: (value) => formatNumber(value, 3),
        choose: set("min_weight"),
      }),
      max_links: slider("Strongest", { min: 1, max: 20, value: store.get("max_links"), choose: set("max_links") }),
      hide_keys: select("Hide", HIDDEN_KEYS, store.get("hide_keys"), hide),
      merge_subwords: checkbox("whole words", store.get("merge_subwords"), merge),
    };
    this.layer = h("div", { class: "layer" });
    this.layerCount = 0;
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Heads" });
    this.headGroup = h("div", { class: "of-heads" }, h("span", {}, "Head"), this.chips);
    const [mode, part, ...others] = Object.values(this.controls).map(({ element }) => element);
    this.element = h("div", { class: "controls" }, mode, part, this.layer, this.headGroup, ...others);
  }

  /**
   * Make the control for the parts: a player for steps, which have an order; else buttons, or a list if there are many.
   * @param {{ name: string }[]} parts
   */
  partControl(parts) {
    const value = this.store.get("part");
    /** @param {number} part */
    const start = (part) => this.store.set({ part, selected_heads: [], ...NO_LOCKS, hidden_keys: [] });
    /** @type {[number, string][]} */
    const names = [...parts.entries()].map(([i, { name }]) => [i, name]);
    const few = parts.length <= MAX_BUTTONS && names.join("").length <= MAX_BUTTON_LETTERS;
    if (this.selection.arrange !== "steps") return (few ? tabs : select)("Of", names, value, start);
    /** @param {number} part */
    const choose = (part) => this.store.set({ part });
    return stepPlayer(
      parts.map(({ name }) => name),
      value,
      choose,
    );
  }

  show() {
    const { store, selection, controls } = this;
    for (const [name, { show }] of Object.entries(controls)) show(store.get(/** @type {keyof HeadsState} */ (name)));
    for (const [name, hide] of Object.entries(this.hiddenControls)) controls[name].element.hidden = hide;
    const { layers, heads } = selection.shape;
    const sheet = store.get("mode") === "sheet";
    this.headGroup.hidden = selection.hasOneHead || sheet;
    this.layer.hidden = layers === 1 || sheet;
    if (selection.hasSheet)
      /** @type {HTMLElement} */ (controls.mode.element.firstChild).hidden = selection.hasOneHead;
    this.showLayers(layers);
    this.showHeads(heads);
  }

  /** Whether each control has nothing to set in this mode, or for these maps. @returns {Record<string, boolean>} */
  get hiddenControls() {
    const { store, selection } = this;
    /** @param {HeadMode[]} modes */
    const mode = (...modes) => modes.includes(store.get("mode"));
    // other axes than those of attention have neither links nor keys to hide
    const isTable = selection.hasOneHead && String(selection.source.viewDocument.axes) !== "query,key";
    return {
      mode: isTable,
      part: selection.source.parts.length === 1 || (selection.arrange === "compare" && mode("head", "picture")),
      combine_heads: store.get("selected_heads").length < 2 || mode("sheet", "links"),
      direction: !mode("words", "picture") && !(mode("sheet") && selection.hasPicture),
      min_weight: !mode("links"),
      max_links: !mode("links"),
      hide_keys: isTable || mode("sheet") || Boolean(selection.part.top),
      merge_subwords: mode("sheet", "picture") || !selection.part.groups,
    };
  }

  /** @param {number} count */
  showLayers(count) {
    const { store } = this;
    if (!this.layerList || this.layerCount !== count) {
      const numbers = Array.from({ length: count }, (_, i) => /** @type {[number, string]} */ ([i, String(i)]));
      this.layerList = select("Layer", numbers, 0, (layer) => store.set({ layer, selected_heads: [] }));
      this.layer.replaceChildren(this.layerList.element);
      this.layerCount = count;
    }
    this.layerList.show(Math.min(store.get("layer"), count - 1));
  }

  /** @param {number} count */
  showHeads(count) {
    const on = this.selection.heads;
    const layer = Math.min(this.store.get("layer"), this.selection.shape.layers - 1);
    if (this.chips.childElementCount !== count) {
      this.chips.replaceChildren(...Array.from({ length: count }, (_, head) => this.chip(head)));
    }
    this.chips.classList.toggle("coloured", this.store.get("mode") === "links" || on.length > 1);
    /** @type {HTMLElement[]} */ ([...this.chips.children]).forEach((chip, head) => {
      chip.setAttribute("aria-pressed", String(on.some(([l, other]) => l === layer && other === head)));
      const ink = this.selection.colourIndex(layer, head);
      chip.style.setProperty("--head", ink < 0 ? this.theme.faint : this.theme.headColour(ink));
    });
  }

  /** @param {number} head */
  chip(head) {
    /** @param {MouseEvent} event */
    const onclick = (event) => {
      if (event.shiftKey || event.ctrlKey || event.metaKey) this.toggle(head);
      else this.store.set({ head, selected_heads: [] });
    };
    const title = "Shift or Ctrl: together with others";
    return button(String(head), onclick, { class: "chip", title, "aria-label": `head ${head}` });
  }

  /**
   * Add a head to those that are shown together, or remove it.
   * @param {number} head
   * @param {number} [layer]
   */
  toggle(head, layer = this.store.get("layer")) {
    const { store } = this;
    const sheet = store.get("mode") === "sheet";
    const several = store.get("selected_heads");
    const selected = sheet || several.length ? several : [[store.get("layer"), store.get("head")]];
    const without = selected.filter(([l, other]) => l !== layer || other !== head);
    const heads = without.length < selected.length ? without : [...selected, [layer, head]];
    if (heads.length === 1 && !sheet) store.set({ layer: heads[0][0], head: heads[0][1], selected_heads: [] });
    else store.set({ selected_heads: heads });
  }
}

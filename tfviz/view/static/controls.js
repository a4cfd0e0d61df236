// The row of controls above a view of heads: which part, layer and heads, and how several become one.

import { check, h, select, slider, tabs } from "./elements.js";
import { two } from "./pen.js";

export const MODES = [["sheet", "All heads"], ["head", "One head"], ["lines", "Lines"], ["words", "Words"]];
const HIDE = [["nothing", "nothing"], ["first", "the first key"], ["separators", "separators"], ["sinks", "sinks"], ["chosen", "locked keys"]];

export class Controls {
  constructor(source, store, theme) {
    Object.assign(this, { source, store, theme });
    const { parts, arrange } = source.document, set = (name) => (value) => store.set({ [name]: value });
    const steps = arrange === "steps";
    this.mode = tabs("How to look", MODES, store.get("mode"), set("mode"));
    this.part = steps
      ? slider("Step", { min: 0, max: parts.length - 1, value: store.get("part"), text: (i) => parts[i].name, choose: set("part") })
      : select("Of", parts.map((part, i) => [i, part.name]), store.get("part"), (part) => store.set({ part, marked: [], rows: [], cols: [], hidden: [] }));
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Heads" });
    this.layer = h("div", { class: "layer" });
    this.how = select("Together", [["mean", "mean"], ["max", "maximum"]], store.get("how"), set("how"));
    this.hide = select("Hide", HIDE, store.get("hide"), (hide) => store.set({ hide, hidden: hide === "chosen" ? store.get("cols") : [], cols: [] }));
    this.merged = check("whole words", store.get("merged"), (merged) => store.set({ merged, rows: [], cols: [] }));
    this.least = slider("At least", { min: 0, max: 0.5, step: 0.01, value: store.get("least"), text: two, choose: set("least") });
    this.most = slider("Strongest", { min: 1, max: 20, value: store.get("most"), text: (k) => `${k}`, choose: set("most") });
    this.direction = select("Show", [["at", "what it looks at"], ["by", "what looks at it"]], store.get("direction"), set("direction"));
    const order = ["part", "how", "direction", "least", "most", "hide", "merged"];
    this.element = h("div", { class: "controls" }, this.mode.element, this.part.element, this.layer, this.chips, ...order.slice(1).map((name) => this[name].element));
  }

  get shape() {
    const { parts, arrange } = this.source.document, part = parts[this.store.get("part")], both = arrange === "compare" ? parts : [part];
    return { ...part, layers: Math.min(...both.map(({ layers }) => layers)), heads: Math.min(...both.map(({ heads }) => heads)) };
  }

  show() {
    const { store } = this, mode = store.get("mode"), { layers, heads, groups } = this.shape, marked = store.get("marked");
    for (const name of ["mode", "part", "how", "hide", "merged", "least", "most", "direction"]) this[name].show(store.get(name));
    const several = marked.length > 1, alone = layers * heads === 1, { document } = this.source;
    const hidden = {
      part: document.parts.length === 1 || (document.arrange === "compare" && mode === "head"),
      how: !several || mode === "sheet" || mode === "lines", direction: mode !== "words", least: mode !== "lines", most: mode !== "lines",
      hide: mode === "sheet", merged: mode === "sheet" || !groups,
    };
    for (const [name, hide] of Object.entries(hidden)) this[name].element.hidden = hide;
    [this.chips.hidden, this.layer.hidden] = [alone || mode === "sheet", layers === 1 || mode === "sheet"];
    this.mode.element.firstChild.hidden = alone;
    this.layers(layers);
    this.heads(heads);
  }

  layers(count) {
    if (this.layer.childElementCount !== 1 || this.layer.count !== count) {
      this.layerList = select("Layer", Array.from({ length: count }, (_, i) => [i, String(i)]), 0, (layer) => this.store.set({ layer, marked: [] }));
      this.layer.replaceChildren(this.layerList.element);
      this.layer.count = count;
    }
    this.layerList.show(Math.min(this.store.get("layer"), count - 1));
  }

  heads(count) {
    const { store, theme } = this, layer = Math.min(store.get("layer"), this.shape.layers - 1), marked = store.get("marked");
    if (this.chips.childElementCount !== count) {
      this.chips.replaceChildren(...Array.from({ length: count }, (_, head) => h("button", {
        type: "button", class: "chip", title: "Shift or Ctrl: together with others", "aria-label": `head ${head}`,
        onclick: (event) => (event.shiftKey || event.ctrlKey || event.metaKey ? this.toggle(head) : store.set({ head, marked: [] })),
      }, String(head))));
    }
    [...this.chips.children].forEach((chip, head) => {
      const on = marked.length ? marked.some(([l, other]) => l === layer && other === head) : head === Math.min(store.get("head"), count - 1);
      chip.setAttribute("aria-pressed", String(on));
      chip.style.setProperty("--head", theme.head(head));
    });
  }

  // Add a head of this layer to those that are shown together, or take it out.
  toggle(head, layer = this.store.get("layer")) {
    const { store } = this, now = store.get("marked").length ? store.get("marked") : store.get("mode") === "sheet" ? [] : [[store.get("layer"), store.get("head")]];
    const without = now.filter(([l, other]) => l !== layer || other !== head);
    const marked = without.length < now.length ? without : [...now, [layer, head]];
    if (marked.length === 1 && store.get("mode") !== "sheet") store.set({ layer: marked[0][0], head: marked[0][1], marked: [] });
    else store.set({ marked });
  }
}

// The heads of a studio's model: their maps in the last run, which one is selected, and which are switched off.

import { clamp, formatCount } from "../base/numbers.js";
import { capital } from "../base/visible-text.js";
import { CapturedMaps, headsOf, partsOf } from "./captured-maps.js";

/** @import { StudioState } from "../documents.js" */
/** @import { Choices, Edit, Pattern } from "../types.js" */
/** @import { CapturedPart } from "./captured-maps.js" */
/** @import { Group, HeadAddress } from "./model-pane.js" */

/** The selection and state of a model's heads. */
export class ModelHeads {
  /** @type {Group[]} */
  groups = [];
  /** Choices to set in addition when a head is selected. @type {Record<string, any>} */
  selectedToo = {};

  /** @param {Choices<StudioState>} store @param {string[]} axes */
  constructor(store, axes) {
    this.store = store;
    this.maps = new CapturedMaps({ title: "", axes, sheet: false });
  }

  /**
   * Take the maps of a run; words are those of the rows and of the columns.
   * @param {Record<string, Pattern[]>} patterns
   * @param {(part: CapturedPart) => string[][]} words
   */
  update(patterns, words) {
    const parts = partsOf(patterns, nameOfSite);
    this.maps.update(parts.map((part) => ({ ...part, rows: words(part)[0], columns: words(part)[1] })));
    this.groups = parts.map((part) => ({ name: part.name, sites: part.sites, heads: headsOf(part) }));
  }

  /** The selected head. */
  get selected() {
    const { store, groups } = this;
    const part = clamp(store.get("part"), 0, groups.length - 1);
    const { sites, heads } = groups[part];
    return {
      part,
      layer: clamp(store.get("layer"), 0, sites.length - 1),
      head: clamp(store.get("head"), 0, heads - 1),
    };
  }

  /** All heads there are. */
  get addresses() {
    return this.groups.flatMap(({ sites, heads }, part) =>
      sites.flatMap((_, layer) => Array.from({ length: heads }, (__, head) => ({ part, layer, head }))),
    );
  }

  /** The heads that are off, as edits of the engine. @returns {Edit[]} */
  get edits() {
    return toEdits(this.store.get("ablated_heads"));
  }

  /** Return the edits with one head toggled. @param {HeadAddress} address @returns {Edit[]} */
  editsToggling(address) {
    return toEdits(this.ablatedHeadsIfToggled(this.siteOf(address), [address.head]));
  }

  /** The number of layers and heads of the first part, in words. */
  get size() {
    const [{ sites, heads }] = this.groups;
    return `${formatCount(sites.length, "layer")} × ${formatCount(heads, "head")}`;
  }

  /** @param {HeadAddress} address */
  siteOf({ part, layer }) {
    return this.groups[part].sites[layer];
  }

  /** @param {HeadAddress} address */
  nameOf({ part, layer, head }) {
    return `${this.groups.length > 1 ? `${capital(this.groups[part].name)}, layer` : "Layer"} ${layer}, head ${head}`;
  }

  /** @param {HeadAddress} address */
  grid({ part, layer, head }) {
    return this.maps.grid(part, layer, head);
  }

  /** @param {HeadAddress} address */
  isAblated(address) {
    const site = this.siteOf(address);
    return this.store.get("ablated_heads").some(([other, head]) => other === site && head === address.head);
  }

  /** @param {HeadAddress} address */
  select({ part, layer, head }) {
    this.store.set({ part, layer, head, selected_heads: [], ...this.selectedToo });
  }

  /** Switch heads of a layer off, or on if all are off. @param {string} site @param {number[]} heads */
  toggle(site, heads) {
    this.store.set({ ablated_heads: this.ablatedHeadsIfToggled(site, heads) });
  }

  /** Select a head, since the sentence is about the selected one, and switch it off, or on. @param {HeadAddress} address */
  toggleHead(address) {
    this.store.set({
      ...address,
      selected_heads: [],
      ablated_heads: this.ablatedHeadsIfToggled(this.siteOf(address), [address.head]),
    });
  }

  /** Return which heads are off if these heads of a layer are toggled. @param {string} site @param {number[]} heads */
  ablatedHeadsIfToggled(site, heads) {
    const ablatedHeads = this.store.get("ablated_heads");
    const others = ablatedHeads.filter(([other, head]) => other !== site || !heads.includes(head));
    const allAblated = ablatedHeads.length - others.length === heads.length;
    return allAblated ? others : [...others, ...heads.map((head) => [site, head])];
  }

  ablateAll() {
    this.store.set({ ablated_heads: this.addresses.map((address) => [this.siteOf(address), address.head]) });
  }
}

/** Return the edits of the engine that switch heads off. @param {StudioState["ablated_heads"]} ablatedHeads @returns {Edit[]} */
const toEdits = (ablatedHeads) => ablatedHeads.map(([site, head]) => ({ site, head, kind: "zero" }));

/** @param {string} site */
function nameOfSite(site) {
  const kind = ["cross", "encoder", "decoder"].find((word) => site.includes(word));
  return kind === "cross" ? "cross-attention" : (kind ?? "attention");
}

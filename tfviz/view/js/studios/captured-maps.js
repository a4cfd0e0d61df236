// The maps of the last run of a model, as a view of heads takes them.

import { FORBIDDEN, Grid, OPEN } from "../base/grid.js";

// Attention with as many keys as words stands in parts: layers whose names differ by numbers only are one.
export function partsOf(patterns, named) {
  const parts = new Map();
  for (const [site, firings] of Object.entries(patterns)) {
    const kind = site.replace(/\d+/g, "*");
    if (!parts.has(kind)) parts.set(kind, { name: named(site), sites: [], maps: [] });
    parts.get(kind).sites.push(site);
    parts.get(kind).maps.push(firings[firings.length - 1]);
  }
  return [...parts.values()];
}

// Weights without an axis of heads are one head's.
export const headsOf = ({ maps: [{ shape }] }) => (shape.length > 3 ? shape[1] : 1);

export class CapturedMaps {
  // document: title, axes and so on, as any view's; words of rows and columns come with the maps
  constructor(document) {
    this.document = { parts: [], arrange: "choose", axes: ["query", "key"], head_names: [], gold: [], ...document };
    this.maps = [];
    this.grids = new Map();
  }

  get parts() {
    return this.document.parts;
  }

  // parts: as `partsOf` gives them, each with rows and cols, the words of its axes
  renew(parts) {
    this.maps = parts.map(({ maps }) => maps);
    this.document.parts = parts.map(({ name, rows, cols, maps }) => {
      return { name, rows, cols, layers: maps.length, heads: headsOf({ maps }), groups: null, weights: [] };
    });
    this.grids.clear();
  }

  async head(part, layer, head) {
    const key = `${part}.${layer}.${head}`;
    if (!this.grids.has(key)) this.grids.set(key, this.grid(part, layer, head));
    return this.grids.get(key);
  }

  grid(part, layer, head) {
    const { rows, cols } = this.parts[part];
    const { data, open } = this.maps[part][layer];
    const cells = rows.length * cols.length;
    const state = open.subarray(head * cells, (head + 1) * cells).map((may) => (may ? OPEN : FORBIDDEN));
    return Grid.of(rows, cols, data.subarray(head * cells, (head + 1) * cells), state);
  }

  partly() {
    return false;
  }

  whole(part, layer, head) {
    return this.head(part, layer, head);
  }
}

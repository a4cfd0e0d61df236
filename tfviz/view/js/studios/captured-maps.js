// The attention maps of a model's last run, in the form that a view of heads needs.

import { FORBIDDEN, Grid, ALLOWED } from "../base/grid.js";

/** @import { HeadMaps } from "../controls/head-selection.js" */
/** @import { Pattern } from "../types.js" */
/** @typedef {{ name: string, sites: string[], maps: Pattern[] }} CapturedPart the maps of some layers */

/**
 * Group the maps of a run in parts: layers whose names differ by numbers only are one part.
 * @param {Record<string, Pattern[]>} patterns
 * @param {(site: string) => string} named
 */
export function partsOf(patterns, named) {
  /** @type {Map<string, CapturedPart>} */
  const parts = new Map();
  for (const [site, invocations] of Object.entries(patterns)) {
    const kind = site.replace(/\d+/g, "*");
    const part = parts.get(kind) ?? { name: named(site), sites: [], maps: [] };
    parts.set(kind, part);
    part.sites.push(site);
    part.maps.push(invocations[invocations.length - 1]);
  }
  return [...parts.values()];
}

/** Count the heads: weights without an axis of heads are one head's. @param {Pick<CapturedPart, "maps">} part */
export const headsOf = ({ maps: [{ shape }] }) => (shape.length > 3 ? shape[1] : 1);

/** A source of heads (`HeadMaps`) over the patterns of one run. */
export class CapturedMaps {
  /** @param {Partial<HeadMaps["viewDocument"]>} viewDocument words of rows and columns come with the maps */
  constructor(viewDocument) {
    /** @type {HeadMaps["viewDocument"]} */
    this.viewDocument = {
      title: "",
      note: "",
      arrange: "choose",
      axes: ["query", "key"],
      head_names: [],
      outlined: [],
      ...viewDocument,
    };
    /** @type {HeadMaps["parts"]} */
    this.parts = [];
    /** @type {Pattern[][]} by part and layer */
    this.maps = [];
    /** The grids of these maps, so that what is known of a grid is computed once. @type {Map<string, Grid>} */
    this.grids = new Map();
    /** The query that a map marks. @type {number | null} */
    this.current = null;
  }

  /** @param {(CapturedPart & { rows: string[], columns: string[] })[]} parts */
  update(parts) {
    this.maps = parts.map(({ maps }) => maps);
    this.parts = parts.map(({ name, rows, columns, maps }) => {
      return { name, rows, columns, layers: maps.length, heads: headsOf({ maps }), groups: null };
    });
    this.grids.clear();
  }

  /** @param {number} part @param {number} layer @param {number} head @returns {Promise<Grid>} */
  async head(part, layer, head) {
    return this.grid(part, layer, head);
  }

  /** Return the grid of a head, the same until new maps come. @param {number} part @param {number} layer @param {number} head */
  grid(part, layer, head) {
    const key = `${part}.${layer}.${head}`;
    const grid = this.grids.get(key) ?? this.makeGrid(part, layer, head);
    this.grids.set(key, grid);
    return grid;
  }

  /** @param {number} part @param {number} layer @param {number} head */
  makeGrid(part, layer, head) {
    const { rows, columns } = this.parts[part];
    const { data, allowed } = this.maps[part][layer];
    const cells = rows.length * columns.length;
    const state = allowed
      .subarray(head * cells, (head + 1) * cells)
      .map((isAllowed) => (isAllowed ? ALLOWED : FORBIDDEN));
    return Grid.of(rows, columns, data.subarray(head * cells, (head + 1) * cells), state);
  }

  isPartial() {
    return false;
  }

  /** @param {number} part @param {number} layer @param {number} head */
  fullHead(part, layer, head) {
    return this.head(part, layer, head);
  }
}

// Measures what a studio's answer loses without each head, and shows it as bars below the maps.

import { button, h } from "../base/elements.js";
import { Grid, ALLOWED, ABSENT } from "../base/grid.js";
import { LatestRequest } from "../base/latest-request.js";
import { formatFixed } from "../base/numbers.js";
import { keyOf } from "./model-pane.js";

/** @import { GridPanel } from "../types.js" */
/** @import { AblationQuery } from "./head-ablation.js" */
/** @import { HeadAddress } from "./model-pane.js" */
/** @import { Studio } from "./studio.js" */

const BUTTON_TEXT = "Which heads matter?";
const TYPING_PAUSE = 250; // milliseconds without a change, after which the heads are measured anew

/**
 * The importance of heads for what is shown: the loss added by leaving each out, as in Michel et al. 2019, "Are Sixteen
 * Heads Really Better than One?".
 */
export class HeadImportance {
  /** @type {Map<string, number>} by the key of its address */
  losses = new Map();
  /** The query and the edits that they belong to. */
  key = "";
  unit = "";
  measuring = false;
  requests = new LatestRequest();
  /** Resolves when the heads are measured, or when another text is shown. */
  whenMeasured = Promise.resolve();

  /** @param {Studio<any>} studio */
  constructor(studio) {
    this.studio = studio;
    this.button = button(BUTTON_TEXT, () => void this.toggle(), {
      class: "which-heads",
      title:
        "run the model once without each head, and show as a bar below the head's map what it loses, hollow if it gains",
    });
    this.legend = h("span", { class: "bars-legend" });
  }

  /** Show the bars of the current answer, and measure them if they are chosen and not known. */
  update() {
    const { studio } = this;
    this.button.hidden = Boolean(studio.options.engine); // of a kernel each answer takes its time
    const chosen = studio.store.get("head_importance") && !studio.options.engine;
    this.button.setAttribute("aria-pressed", String(Boolean(chosen)));
    const query = chosen ? studio.ablationQuery : null;
    const key = query ? studio.ablation.keyOf(query) : "";
    const isSame = key === this.key;
    if (isSame && !this.losses.size) return; // a key must not wait for bars that are not shown
    if (!isSame) {
      this.key = key;
      this.losses.clear();
      this.measuring = false;
      const isCurrent = this.requests.begin();
      if (query) this.whenMeasured = this.measure(query, isCurrent);
    }
    this.show();
  }

  /** Measure the loss without each head that is on. @param {AblationQuery} query @param {() => boolean} isCurrent */
  async measure(query, isCurrent) {
    const { studio } = this;
    await new Promise((resolve) => setTimeout(resolve, TYPING_PAUSE));
    if (!isCurrent() || studio.frame.closed) return;
    this.measuring = true;
    this.unit = query.unit;
    for (const address of studio.heads.addresses.filter((one) => !studio.heads.isAblated(one))) {
      const value = await studio.ablation.measure(address, query);
      if (!isCurrent() || studio.frame.closed) return;
      if (value === null) continue;
      this.losses.set(keyOf(address), query.loss(value) - query.loss(query.value));
      this.show();
    }
    this.measuring = false;
    this.show();
    studio.showSentence();
    studio.frame.updateTable();
  }

  /** The largest loss, or gain, without a head. */
  get limit() {
    return Math.max(0, ...[...this.losses.values()].map(Math.abs));
  }

  /** The head without which the answer loses most. @returns {HeadAddress | null} */
  get strongest() {
    const { losses, studio } = this;
    const measured = studio.heads.addresses.filter((address) => losses.has(keyOf(address)));
    const lossOf = (/** @type {HeadAddress} */ address) => losses.get(keyOf(address)) ?? 0;
    return measured.sort((a, b) => lossOf(b) - lossOf(a))[0] ?? null;
  }

  /** Hide the bars, or show them and select the head without which the answer loses most. */
  async toggle() {
    const { store, history, heads } = this.studio;
    if (store.get("head_importance")) return store.set({ head_importance: false });
    return history.group(async () => {
      const head = await this.findStrongest();
      if (head) heads.select(head);
    });
  }

  /** Measure the heads, and return the one without which the answer loses most; null if another text came meanwhile. */
  async findStrongest() {
    const { studio } = this;
    studio.store.set({ head_importance: true });
    await studio.whenIdle();
    const { key } = this;
    await this.whenMeasured;
    return key === this.key ? this.strongest : null;
  }

  show() {
    const { losses, studio, unit, limit } = this;
    studio.headPane.model.showImportance(losses, limit, unit);
    this.legend.textContent = this.legendText;
  }

  get legendText() {
    const { losses, measuring, studio, unit, limit } = this;
    if (measuring) return `${losses.size} of ${studio.heads.addresses.length} heads …`;
    if (!losses.size) return "";
    const gained = [...losses.values()].some((loss) => loss < 0) ? " (hollow: gained)" : "";
    return `Bars: ${unit} lost without it${gained}, up to ${formatFixed(limit, 2)}`;
  }

  /** @returns {GridPanel<Grid>[]} the losses as numbers, for each group of layers */
  get panels() {
    const { studio, losses, limit, unit } = this;
    if (!losses.size) return [];
    return studio.heads.groups.map(({ name, sites, heads }, part) => {
      const keys = sites.flatMap((_, layer) =>
        Array.from({ length: heads }, (__, head) => keyOf({ part, layer, head })),
      );
      const values = Float32Array.from(keys, (key) => losses.get(key) ?? 0);
      const states = Uint8Array.from(keys, (key) => (losses.has(key) ? ALLOWED : ABSENT));
      const [rows, columns] = [sites.map((_, i) => `layer ${i}`), Array.from({ length: heads }, (_, i) => `head ${i}`)];
      const grid = Grid.of(rows, columns, values, states, { scale: "diverging", limit: limit || 1 });
      return { name: `${name}: ${unit} lost without each head`, grid, axes: ["layer", "head"] };
    });
  }
}

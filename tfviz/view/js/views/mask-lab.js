// A view in which masks are composed: which predicates must all hold, of which one is enough, and which predicates
// forbid each cell.

import { h, select, slider } from "../base/elements.js";
import { NO_LOCKS } from "../base/locks.js";
import { formatCount, formatNumber } from "../base/numbers.js";
import { Frame } from "../controls/frame.js";
import { Grid, ALLOWED } from "../base/grid.js";
import { quoted } from "../base/visible-text.js";
import { HeadStage } from "./head-stage.js";
import { table } from "../controls/table.js";

/** @import { MasksDocument, MasksState, Predicate, Role } from "../documents.js" */
/** @import { Choices, Point, ViewOptions } from "../types.js" */

/** @type {[Role, string][]} */
const ROLE_OPTIONS = [
  ["off", "not used"],
  ["all", "must hold"],
  ["any", "one is enough"],
  ["not", "must not hold"],
];

/** A view of the combined mask as a heatmap, with a menu for the role of each predicate. */
export class MaskLab {
  /** @type {Frame} */
  frame;
  /** @type {HeadStage} */
  stage;
  /** @type {Map<string, Uint8Array>} of each predicate, 0 where it allows */
  statesOf = new Map();

  /**
   * @param {HTMLElement} host
   * @param {import("../base/page-data.js").PageData<MasksDocument>} source
   * @param {Choices<MasksState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    const { predicates, rows, columns, axes } = source.viewDocument;
    this.source = source;
    this.store = store;
    this.predicates = predicates;
    this.rows = rows;
    this.columns = columns;
    /** @type {{ name: string, grid: Grid, axes: string[] }} */
    this.panel = { name: "", grid: Grid.of([], [], [], new Uint8Array()), axes };
    this.frame = new Frame(host, source.viewDocument, store, {
      ...options,
      shortcuts: MASK_SHORTCUTS,
      grids: () => [this.panel],
      drawing: () => this.stage.drawing,
      tables: () => [table(this.panel)],
      redraw: () => this.refresh(),
    });
    const { frame } = this;
    this.stage = new HeadStage(
      frame.theme,
      {
        announce: (text) => frame.announce(text),
        reading: (_, cell) => this.reading(cell),
        lock: (side, index) => this.frame.lock(side, index),
        leave: () => store.set(NO_LOCKS),
      },
      { axes, legend: false },
    );
    this.formula = h("span", { class: "formula", role: "status" });
    this.warning = h("span", { class: "warning", role: "status" });
    this.controls = predicates.map((predicate) => this.control(predicate));
    frame.body.append(
      h(
        "div",
        { class: "controls", hidden: predicates.length === 1 && predicates[0].sizes.length === 1 },
        h("div", { class: "rules" }, ...this.controls.map(({ element }) => element)),
        this.formula,
      ),
      this.warning,
    );
    frame.enableZoom((factor) => this.stage.zoom(factor));
    this.close = frame.open();
  }

  /** @param {Predicate} predicate */
  control({ name, sizes }) {
    const role = select("", ROLE_OPTIONS, this.roleOf(name), (value) =>
      this.store.set({ roles: { ...this.store.get("roles"), [name]: value } }),
    );
    role.element.querySelector("select")?.setAttribute("aria-label", name);
    const size =
      sizes.length > 1
        ? slider("", {
            min: 0,
            max: sizes.length - 1,
            value: this.sizeOf(name),
            text: (i) => sizes[i],
            choose: (i) => this.store.set({ sizes: { ...this.store.get("sizes"), [name]: i } }),
          })
        : null;
    size?.element.querySelector("input")?.setAttribute("aria-label", `${name}, size`);
    const show = () => {
      role.show(this.roleOf(name));
      size?.show(this.sizeOf(name));
      if (size) size.element.hidden = this.roleOf(name) === "off";
    };
    return { element: h("div", { class: "rule" }, h("b", { title: name }, name), role.element, size?.element), show };
  }

  /** @param {string} name */
  roleOf(name) {
    return this.store.get("roles")[name] ?? "off";
  }
  /** @param {string} name */
  sizeOf(name) {
    return this.store.get("sizes")[name] ?? 0;
  }
  /** @param {Predicate} predicate */
  nameOf({ name, sizes }) {
    return sizes.length > 1 ? `${name}(${sizes[this.sizeOf(name)]})` : name;
  }
  /** @param {Role} role */
  predicatesIn(role) {
    return this.predicates.filter(({ name }) => this.roleOf(name) === role);
  }

  /** Load the cells of each predicate at the size that its slider shows. */
  async load() {
    for (const { name, masks } of this.predicates) {
      const index = masks[this.sizeOf(name)];
      this.statesOf.set(name, await this.source.mask(index, this.rows.length * this.columns.length));
    }
  }

  /** @param {Predicate} predicate @param {number} cell */
  allows({ name }, cell) {
    return this.statesOf.get(name)?.[cell] === ALLOWED;
  }

  /** Name the predicates that forbid a cell; none if it is allowed. @param {number} cell */
  forbiddenBy(cell) {
    const any = this.predicatesIn("any");
    const failed = any.filter((predicate) => !this.allows(predicate, cell));
    return [
      ...this.predicatesIn("all")
        .filter((predicate) => !this.allows(predicate, cell))
        .map((predicate) => this.nameOf(predicate)),
      ...this.predicatesIn("not")
        .filter((predicate) => this.allows(predicate, cell))
        .map((predicate) => `~${this.nameOf(predicate)}`),
      ...(any.length && failed.length === any.length
        ? [any.map((predicate) => this.nameOf(predicate)).join(" | ")]
        : []),
    ];
  }

  /** @param {Point} cell */
  reading([row, col]) {
    const reasons = this.forbiddenBy(row * this.columns.length + col);
    const words = `${quoted(this.rows[row])} → ${quoted(this.columns[col])}`;
    return `${words}  ${reasons.length ? `forbidden by ${reasons.join(" and ")}` : "may look"}`;
  }

  async refresh() {
    await this.load();
    const cells = this.rows.length * this.columns.length;
    const state = new Uint8Array(cells);
    const values = new Float32Array(cells);
    for (let cell = 0; cell < cells; cell++) {
      const isAllowed = this.forbiddenBy(cell).length === 0;
      [state[cell], values[cell]] = [Number(!isAllowed), Number(isAllowed)];
    }
    const grid = Grid.of(this.rows, this.columns, values, state);
    grid.codes = grid.codes.map((code) => code >> 1); // pale, since being allowed is the usual case
    this.panel = { ...this.panel, grid };
    this.controls.forEach(({ show }) => show());
    const either = this.predicatesIn("any")
      .map((predicate) => this.nameOf(predicate))
      .join(" | ");
    const all = [
      ...this.predicatesIn("all").map((predicate) => this.nameOf(predicate)),
      ...this.predicatesIn("not").map((predicate) => `~${this.nameOf(predicate)}`),
    ];
    this.formula.textContent =
      [...all, ...(either ? [all.length && this.predicatesIn("any").length > 1 ? `(${either})` : either] : [])].join(
        " & ",
      ) || "everything";
    const dead = this.rows.map((_, row) => row).filter((row) => grid.isFullyMasked(row));
    this.warning.textContent = dead.length
      ? `${dead.length === 1 ? "One query" : `${formatNumber(dead.length)} queries`} may look at nothing: ${dead
          .slice(0, 5)
          .map((row) => quoted(this.rows[row], 18))
          .join(", ")}${dead.length > 5 ? " …" : ""}. A softmax over nothing is not a number.`
      : "";
    this.frame.showStage(
      this.stage.element,
      `${formatNumber(state.reduce((sum, kind) => sum + Number(kind === 0), 0))} of ${formatCount(cells, "cell")} allowed`,
    );
    this.stage.show(
      [this.panel],
      { rows: this.store.get("locked_rows"), columns: this.store.get("locked_columns"), outlined: [] },
      this.frame.width,
    );
    this.frame.updateTable();
  }
}

const MASK_SHORTCUTS = [
  ["arrows", "move on the mask; the line below says which predicate forbids"],
  ["Space, C", "lock a row, a column"],
  ["+ − 0", "closer, farther, all"],
];

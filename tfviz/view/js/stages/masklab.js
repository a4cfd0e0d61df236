// Masks composed by hand: which predicates must hold, of which one is enough, and for each cell which of them forbids it.

import { h, select, slider } from "../base/elements.js";
import { counted, formatted } from "../base/numbers.js";
import { Frame } from "../controls/frame.js";
import { Grid } from "../base/grid.js";
import { HeadStage } from "./headstage.js";
import { quoted } from "../base/pen.js";
import { table } from "../controls/table.js";

const ROLES = [
  ["off", "not used"],
  ["all", "must hold"],
  ["any", "one is enough"],
  ["not", "must not hold"],
];

export class MaskLab {
  tables = new Map();

  constructor(host, source, store, options) {
    const { rules, rows, cols } = source.document;
    this.source = source;
    this.store = store;
    this.rules = rules;
    this.rows = rows;
    this.cols = cols;
    this.frame = new Frame(host, source.document, store, {
      ...options,
      keys: MASK_KEYS,
      shown: () => [{ name: "", grid: this.shown }],
      drawing: () => this.stage.drawing,
      tables: () => [table({ name: "", grid: this.shown })],
      redraw: () => this.refresh(),
    });
    const { frame } = this;
    this.stage = new HeadStage(
      frame.theme,
      {
        announce: (text) => frame.announce(text),
        reading: (_, cell) => this.reading(cell),
        lock: (side, index) => this.frame.lock(side, index),
        leave: () => store.set({ rows: [], cols: [] }),
      },
      { legend: false },
    );
    this.formula = h("span", { class: "formula", role: "status" });
    this.warning = h("span", { class: "warning", role: "status" });
    this.controls = rules.map((rule) => this.rule(rule));
    frame.body.append(
      h(
        "div",
        { class: "controls", hidden: rules.length === 1 && rules[0].values.length === 1 },
        h("div", { class: "rules" }, ...this.controls.map(({ element }) => element)),
        this.formula,
      ),
      this.warning,
    );
    frame.zoom((factor) => this.stage.zoom(factor));
    this.close = frame.open();
  }

  rule({ name, values }) {
    const role = select("", ROLES, this.role(name), (value) =>
      this.store.set({ roles: { ...this.store.get("roles"), [name]: value } }),
    );
    role.element.querySelector("select").setAttribute("aria-label", name);
    const at =
      values.length > 1
        ? slider("", {
            min: 0,
            max: values.length - 1,
            value: this.at(name),
            text: (i) => String(values[i]),
            choose: (i) => this.store.set({ at: { ...this.store.get("at"), [name]: i } }),
          })
        : null;
    at?.element.querySelector("input").setAttribute("aria-label", `${name}, size`);
    const show = () => {
      role.show(this.role(name));
      at?.show(this.at(name));
      if (at) at.element.hidden = this.role(name) === "off";
    };
    return { element: h("div", { class: "rule" }, h("b", { title: name }, name), role.element, at?.element), show };
  }

  role(name) {
    return this.store.get("roles")[name] ?? "off";
  }
  at(name) {
    return this.store.get("at")[name] ?? 0;
  }
  named({ name, values }) {
    return values.length > 1 ? `${name}(${values[this.at(name)]})` : name;
  }
  used(role) {
    return this.rules.filter(({ name }) => this.role(name) === role);
  }

  // The cells of a predicate at the size its slider stands at: 0 where it allows.
  async load() {
    for (const rule of this.rules) {
      const index = rule.masks[this.at(rule.name)];
      this.tables.set(rule.name, await this.source.mask(index, this.rows.length * this.cols.length));
    }
  }

  allows(rule, cell) {
    return this.tables.get(rule.name)[cell] === 0;
  }

  // Which predicates forbid a cell; none where it is allowed.
  why(cell) {
    const any = this.used("any");
    const failed = any.filter((rule) => !this.allows(rule, cell));
    return [
      ...this.used("all")
        .filter((rule) => !this.allows(rule, cell))
        .map((rule) => this.named(rule)),
      ...this.used("not")
        .filter((rule) => this.allows(rule, cell))
        .map((rule) => `~${this.named(rule)}`),
      ...(any.length && failed.length === any.length ? [any.map((rule) => this.named(rule)).join(" | ")] : []),
    ];
  }

  reading([row, col]) {
    const why = this.why(row * this.cols.length + col);
    const words = `${quoted(this.rows[row])} → ${quoted(this.cols[col])}`;
    return `${words}  ${why.length ? `forbidden by ${why.join(" and ")}` : "may look"}`;
  }

  async refresh() {
    await this.load();
    const cells = this.rows.length * this.cols.length;
    const state = new Uint8Array(cells);
    const values = new Float32Array(cells);
    for (let cell = 0; cell < cells; cell++) {
      const open = this.why(cell).length === 0;
      [state[cell], values[cell]] = [open ? 0 : 1, open ? 1 : 0];
    }
    this.shown = Grid.of(this.rows, this.cols, values, state);
    this.shown.codes = this.shown.codes.map((code) => code >> 1); // pale: allowed is not much
    this.controls.forEach(({ show }) => show());
    const either = this.used("any")
      .map((rule) => this.named(rule))
      .join(" | ");
    const all = [
      ...this.used("all").map((rule) => this.named(rule)),
      ...this.used("not").map((rule) => `~${this.named(rule)}`),
    ];
    this.formula.textContent =
      [...all, ...(either ? [all.length && this.used("any").length > 1 ? `(${either})` : either] : [])].join(" & ") ||
      "everything";
    const dead = this.rows.map((_, row) => row).filter((row) => this.shown.dead(row));
    this.warning.textContent = dead.length
      ? `${dead.length === 1 ? "One query" : `${formatted(dead.length)} queries`} may look at nothing: ${dead
          .slice(0, 5)
          .map((row) => quoted(this.rows[row], 18))
          .join(", ")}${dead.length > 5 ? " …" : ""}. A softmax over nothing is not a number.`
      : "";
    this.frame.stage(
      this.stage.element,
      `${formatted(state.reduce((sum, kind) => sum + Number(kind === 0), 0))} of ${counted(cells, "cell")} allowed`,
    );
    this.stage.show(
      [{ name: "", grid: this.shown }],
      { rows: this.store.get("rows"), cols: this.store.get("cols"), outlined: [] },
      this.frame.width,
    );
    this.frame.renewTable();
  }
}

const MASK_KEYS = [
  ["arrows", "move on the mask; the line below says which predicate forbids"],
  ["Space, C", "lock a row, a column"],
  ["+ − 0", "closer, farther, all"],
];

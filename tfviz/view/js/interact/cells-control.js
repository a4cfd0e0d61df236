// A control for a table of numbers, which are dragged sideways, stepped by keys, or typed.

import { h } from "../base/elements.js";
import { ARROW_STEPS, consume, followDrag, hasModifier } from "../base/events.js";
import { clamp, formatNumber } from "../base/numbers.js";
import { label } from "../base/visible-text.js";
import { Control } from "./control.js";

/** @import { CellsSpec, SwitchesSpec } from "../documents.js" */
/** @import { Theme } from "../base/theme.js" */
/** @import { Named, Tensor } from "./control.js" */

const PIXELS_PER_STEP = 4; // of a drag
/** @type {Record<string, number>} keys that add or take away, with and without Shift */
const KEY_SIGNS = { "+": 1, "=": 1, "*": 1, "-": -1, _: -1, "−": -1 };
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/**
 * A table of buttons, one for each cell, with arrow keys between them.
 * @template {CellsSpec | SwitchesSpec} Spec
 * @extends {Control<Spec>}
 */
export class TableControl extends Control {
  focused = [0, 0];

  /**
   * @param {Named<Spec>} spec
   * @param {(value: Spec["start"]) => void} set
   * @param {Theme} theme
   * @param {(text: string) => void} announce
   */
  constructor(spec, set, theme, announce) {
    super(spec, set, theme);
    const { rows, columns, flat } = spec;
    /** @type {Spec["start"]} */
    this.value = spec.start;
    this.announce = announce;
    this.buttons = rows.map((_, row) => columns.map((__, col) => this.button(row, col)));
    const [down, across] = spec.axes ?? ["", ""];
    const corner = [down && `${down} ↓`, across && `${across} →`].filter(Boolean).join("  ");
    const head = h("tr", {}, flat ? null : h("td"), ...columns.map((word) => h("th", { scope: "col" }, label(word))));
    const lines = rows.map((word, row) =>
      h(
        "tr",
        {},
        flat ? null : h("th", { scope: "row" }, label(word)),
        ...this.buttons[row].map((button) => h("td", {}, button)),
      ),
    );
    const table = h(
      "table",
      { class: "cells", "aria-label": `${this.name}: ${spec.kind === "switches" ? "switches" : "numbers to change"}` },
      h("thead", {}, head),
      h("tbody", {}, ...lines),
    );
    table.style.setProperty("--columns", String(columns.length));
    const note = [corner, this.limitsText].filter(Boolean).map((text) => h("small", {}, text));
    this.element = h("div", { class: "control" }, h("span", {}, this.name, ...note), table);
  }

  /** @abstract What a number of the table can be, in words. */
  get limitsText() {
    return "";
  }

  /** Make the button of a cell; a subclass adds what the pointer does. @param {number} row @param {number} col */
  button(row, col) {
    return h("button", {
      type: "button",
      tabIndex: row || col ? -1 : 0,
      onfocus: () => this.makeTabStop(row, col),
      onkeydown: (event) => {
        if (!hasModifier(event) && this.handleKey(event, row, col)) consume(event);
      },
    });
  }

  /**
   * Make a cell the only tab stop of the table.
   * @param {number} row
   * @param {number} col
   */
  makeTabStop(row, col) {
    const [before, across] = this.focused;
    this.buttons[before][across].tabIndex = -1;
    this.buttons[row][col].tabIndex = 0;
    this.focused = [row, col];
  }

  /**
   * Handle a key; return whether it has a meaning here: an arrow key leads to another cell.
   * @param {KeyboardEvent} event
   * @param {number} row
   * @param {number} col
   */
  handleKey({ key }, row, col) {
    if (!ARROW_STEPS[key]) return false;
    const [down, right] = ARROW_STEPS[key];
    this.buttons[row + down]?.[col + right]?.focus();
    return true;
  }

  /** @param {number} row @param {number} col */
  cellName(row, col) {
    const { rows, columns, flat } = this.spec;
    return flat ? label(columns[col], 40) : `${label(rows[row], 40)}, ${label(columns[col], 40)}`;
  }

  /**
   * Return the table with another number in one cell.
   * @param {number} row
   * @param {number} col
   * @param {number | boolean} value
   * @returns {any}
   */
  withCell(row, col, value) {
    return this.value.map((line, i) => (i === row ? line.map((old, j) => (j === col ? value : old)) : line));
  }

  /** @param {Spec["start"]} value */
  show(value) {
    this.value = value;
    this.buttons.forEach((line, row) =>
      line.forEach((button, col) => this.showCell(button, this.cellName(row, col), value[row][col])),
    );
  }

  /** @abstract @param {HTMLButtonElement} _button @param {string} _name @param {number | boolean} _cell */
  showCell(_button, _name, _cell) {}

  /** @param {Spec["start"]} value @returns {Tensor} */
  input(value) {
    const data = value.flatMap((line) => line.map(Number));
    return { shape: this.spec.flat ? [value[0].length] : [value.length, value[0].length], data };
  }

  words() {
    return this.spec.flat ? this.spec.columns : this.spec.rows;
  }

  columns() {
    return this.spec.columns;
  }

  /** @abstract @param {number | boolean} _cell */
  cellText(_cell) {
    return "";
  }

  /** @param {Spec["start"]} before @param {Spec["start"]} after */
  describeChange(before, after) {
    for (let row = 0; row < after.length; row++)
      for (let col = 0; col < after[row].length; col++)
        if (after[row][col] !== before[row][col])
          return `${this.cellName(row, col)} is ${this.cellText(after[row][col])}`;
    return "";
  }
}

/** A table of numbers that can be changed cell by cell. @extends {TableControl<CellsSpec>} */
export class CellsControl extends TableControl {
  /** @param {number} row @param {number} col */
  button(row, col) {
    const button = super.button(row, col);
    button.className = "cell";
    followDrag(button, ({ clientX: start }) => {
      const value = this.value[row][col];
      let moved = false;
      return ({ clientX }) => {
        const steps = Math.trunc((clientX - start) / PIXELS_PER_STEP);
        moved ||= steps !== 0;
        if (moved) this.setCell(row, col, value + steps * this.spec.step);
      };
    });
    button.ondblclick = () => this.openField(row, col);
    return button;
  }

  /** @param {KeyboardEvent} event @param {number} row @param {number} col */
  handleKey(event, row, col) {
    const { key } = event;
    const sign = KEY_SIGNS[key];
    if (sign) this.setCell(row, col, this.value[row][col] + sign * this.spec.step * (event.shiftKey ? 10 : 1));
    else if (key === "Enter" || key === "F2") this.openField(row, col);
    else if (/^[\d.]$/.test(key)) this.openField(row, col, key);
    else return super.handleKey(event, row, col);
    return true;
  }

  get limitsText() {
    const { limits, step } = this.spec;
    return limits ? `${digits(limits[0])} to ${digits(limits[1])}, in steps of ${digits(step)}` : "";
  }

  /** Set a number, or the limit that it passes. @param {number} row @param {number} col @param {number} value */
  setCell(row, col, value) {
    const [low, high] = this.spec.limits ?? [-Infinity, Infinity];
    const clamped = clamp(value, low, high);
    this.set(this.withCell(row, col, Number(clamped.toPrecision(7))));
    if (clamped !== value) this.announce(`${this.cellName(row, col)} goes from ${digits(low)} to ${digits(high)}`);
  }

  /**
   * Show a text field in place of the button, until Enter, Escape or loss of focus.
   * @param {number} row
   * @param {number} col
   * @param {string | null} [begun]
   */
  openField(row, col, begun = null) {
    const button = this.buttons[row][col];
    const field = h("input", { type: "text", class: "cell", value: begun ?? String(this.value[row][col]) });
    field.setAttribute("inputmode", "decimal");
    field.setAttribute("aria-label", this.cellName(row, col));
    let open = true;
    /** @param {boolean} keep @param {boolean} back */
    const finish = (keep, back) => {
      if (!open) return;
      open = false;
      const text = field.value.trim().replace("−", "-").replace(",", ".");
      field.replaceWith(button);
      if (back) button.focus();
      if (keep && NUMBER.test(text) && Number.isFinite(Math.fround(Number(text)))) this.setCell(row, col, Number(text));
      else if (keep) this.announce(`“${label(text, 30)}” is no number`);
    };
    field.onkeydown = (event) => {
      event.stopPropagation();
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        finish(event.key === "Enter", true);
      }
    };
    field.onblur = () => finish(true, false);
    button.replaceWith(field);
    field.focus();
    if (begun === null) field.select();
  }

  /** @param {HTMLButtonElement} button @param {string} name @param {number} cell */
  showCell(button, name, cell) {
    const text = digits(cell);
    if (button.textContent !== text) button.textContent = text;
    button.setAttribute("aria-label", `${name}: ${text}`);
  }

  /** @param {number} cell */
  cellText(cell) {
    return digits(cell);
  }

  /** @param {CellsSpec["start"]} value */
  describe(value) {
    return value.map((line) => line.map(digits).join(", ")).join("; ");
  }
}

/** @param {number} value */
const digits = (value) => formatNumber(value, 4);

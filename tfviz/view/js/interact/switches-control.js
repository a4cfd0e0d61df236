// A table of switches: clicked, painted over with the pointer, or turned by keys.

import { h } from "../base/elements.js";
import { label } from "../base/pen.js";
import { STEPS } from "../stages/pointing.js";
import { CellsControl } from "./cells-control.js";

export class SwitchesControl extends CellsControl {
  button(row, col) {
    const button = h("button", { type: "button", class: "switch", tabIndex: row || col ? -1 : 0 });
    button.onpointerdown = (event) => {
      if (event.button !== 0) return;
      this.paints = !this.value[row][col]; // what all get that the pointer meets, until it is up
      this.put(row, col, this.paints);
      button.setPointerCapture(event.pointerId);
    };
    button.onpointermove = (event) => {
      if (!button.hasPointerCapture(event.pointerId)) return;
      const under = button.getRootNode().elementFromPoint(event.clientX, event.clientY);
      this.buttons.forEach((line, i) => line.forEach((other, j) => other === under && this.put(i, j, this.paints)));
    };
    button.onclick = (event) => {
      if (event.detail === 0) this.put(row, col, !this.value[row][col]); // by key
    };
    button.onfocus = () => this.stop(row, col);
    button.onkeydown = (event) => this.key(event, row, col);
    return button;
  }

  key(event, row, col) {
    if (!STEPS[event.key] || event.metaKey || event.altKey || event.ctrlKey) return;
    const [down, right] = STEPS[event.key];
    this.buttons[row + down]?.[col + right]?.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  put(row, col, on) {
    if (this.value[row][col] === on) return;
    const next = this.value.map((line, i) => (i === row ? line.map((old, j) => (j === col ? on : old)) : line));
    this.set(next);
    this.show(next); // the next of a stroke adds to this one
  }

  show(value) {
    this.value = value;
    this.buttons.forEach((line, row) =>
      line.forEach((button, col) => {
        button.setAttribute("aria-label", this.called(row, col));
        button.setAttribute("aria-pressed", String(value[row][col]));
      }),
    );
  }

  input(value) {
    return super.input(value.map((line) => line.map(Number)));
  }

  said(value) {
    const { rows, cols, flat } = this.spec;
    if (flat)
      return (
        cols
          .filter((_, col) => value[0][col])
          .map((word) => label(word))
          .join(", ") || "none"
      );
    return `${value.flat().filter(Boolean).length} of ${rows.length * cols.length} on`;
  }

  told(before, after) {
    for (let row = 0; row < after.length; row++)
      for (let col = 0; col < after[row].length; col++)
        if (after[row][col] !== before[row][col])
          return `${this.called(row, col)} is ${after[row][col] ? "on" : "off"}`;
    return "";
  }
}

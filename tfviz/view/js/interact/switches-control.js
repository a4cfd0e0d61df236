// A control for a table of booleans, which are clicked, painted by dragging the pointer, or switched by keys.

import { followDrag } from "../base/events.js";
import { label } from "../base/visible-text.js";
import { TableControl } from "./cells-control.js";

/** @import { SwitchesSpec } from "../documents.js" */

/** A table of on-off switches. @extends {TableControl<SwitchesSpec>} */
export class SwitchesControl extends TableControl {
  /** @param {number} row @param {number} col */
  button(row, col) {
    const button = super.button(row, col);
    button.className = "switch";
    followDrag(button, (event) => {
      if (event.button !== 0) return undefined;
      const paints = !this.value[row][col];
      this.setCell(row, col, paints);
      return ({ clientX, clientY }) => {
        const root = /** @type {ShadowRoot} */ (button.getRootNode());
        const under = root.elementFromPoint(clientX, clientY);
        this.buttons.forEach((line, i) => {
          const j = line.findIndex((other) => other === under);
          if (j >= 0) this.setCell(i, j, paints);
        });
      };
    });
    button.onclick = (event) => {
      if (event.detail === 0) this.setCell(row, col, !this.value[row][col]); // by key
    };
    return button;
  }

  /** @param {number} row @param {number} col @param {boolean} on */
  setCell(row, col, on) {
    if (this.value[row][col] === on) return;
    const next = this.withCell(row, col, on);
    this.set(next);
    this.show(next); // the next cell of a stroke must keep this change
  }

  /** @param {HTMLButtonElement} button @param {string} name @param {boolean} cell */
  showCell(button, name, cell) {
    button.setAttribute("aria-label", name);
    button.setAttribute("aria-pressed", String(cell));
  }

  /** @param {boolean} cell */
  cellText(cell) {
    return cell ? "on" : "off";
  }

  /** @param {SwitchesSpec["start"]} value */
  describe(value) {
    const { rows, columns, flat } = this.spec;
    if (flat)
      return (
        columns
          .filter((_, col) => value[0][col])
          .map((word) => label(word))
          .join(", ") || "none"
      );
    return `${value.flat().filter(Boolean).length} of ${rows.length * columns.length} on`;
  }
}

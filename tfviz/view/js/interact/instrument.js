// An instrument: controls above, what a function makes of them below; each change is one answer, and all pictures move together.

import { h } from "../base/elements.js";
import { label, measure } from "../base/pen.js";
import { Frame } from "../controls/frame.js";
import { table } from "../controls/table.js";
import { CONTROLS } from "./controls.js";
import INTERACT_CSS from "./interact.css";
import { PANELS } from "./panels.js";
import { scaleOf } from "./scales.js";
import { KEYS_HELP } from "./keys-help.js";

const LINE_ABOVE = 24; // pixels of the line above a drawing that is taken away

// Who goes on from here has answer(values): a promise of the results by name, null where a later question was asked.
export class Instrument {
  /** @type {Record<string, any>} what the controls stood at when the outputs were computed */
  values = {};
  drawn = [];
  outputs = null;
  answered = null;
  last = null;
  turns = 0;
  turn = 0;

  constructor(host, source, store, options) {
    const { controls, panels } = source.document;
    this.source = source;
    this.store = store;
    this.panels = panels;
    const kinds = new Set(controls.map(({ kind }) => kind));
    this.frame = new Frame(host, source.document, store, {
      ...options,
      keys: KEYS_HELP.filter(([kind]) => kind === "" || kinds.has(kind)).map(([, key, text]) => [key, text]),
      shown: () => this.drawn.map(({ title, grid }) => ({ name: title, grid })),
      drawing: () => this.drawing,
      tables: () => this.drawn.map(({ title, grid }) => table({ name: title, grid, axes: ["", ""] })),
      redraw: () => this.refresh(),
    });
    const { frame } = this;
    this.controls = Object.fromEntries(
      controls.map((control) => [
        control.name,
        new CONTROLS[control.kind](
          control,
          (value) => this.set(control.name, value),
          frame.theme,
          (text) => frame.announce(text),
        ),
      ]),
    );
    this.stage = h("div", { class: "stage panels results" });
    const parts = Object.values(this.controls).map(({ element }) => element);
    const flat = parts.filter((element) => !element.matches(".control")); // in a line, before those that are tall
    this.knobs = h("div", { class: "controls knobs" });
    for (const line of [flat, parts.filter((element) => !flat.includes(element))])
      if (line.length) this.knobs.append(h("div", { class: "knobs" }, ...line));
    frame.body.append(h("style", {}, INTERACT_CSS), this.knobs);
    frame.place.setAttribute("role", "group");
  }

  /** @abstract @returns {Promise<Record<string, import("../types.d.ts").Tensor> | null>} @param {any} _values */
  async answer(_values) {
    return null;
  }

  begin() {
    const ends = this.frame.open();
    this.end = this.end.bind(this);
    this.close = () => {
      ends();
      this.end();
    };
  }

  end() {
    this.ended = true;
  }

  set(name, value) {
    this.changed = name;
    this.store.set({ values: { ...this.store.get("values"), [name]: value } });
  }

  async refresh() {
    const values = this.store.get("values");
    for (const [name, control] of Object.entries(this.controls)) control.show(values[name]);
    this.frame.stage(this.stage, "");
    const key = JSON.stringify(values);
    if (key === this.asked) return this.show(); // only the width or the colours are others
    this.asked = key;
    const turn = ++this.turns;
    this.stage.ariaBusy = "true";
    try {
      const outputs = key === this.answered ? this.outputs : await this.answer(values);
      if (!outputs || this.ended || turn < this.turn) return undefined; // a later change is on its way, or done
      this.turn = turn;
      const before = this.outputs;
      [this.outputs, this.answered, this.values] = [outputs, key, values];
      this.show();
      if (before) this.tell(before, values);
      this.last = values;
      this.frame.renewTable();
    } catch (error) {
      if (this.asked === key) this.frame.announce(error.message);
    }
    if (this.asked === key) this.stage.ariaBusy = "false";
    return undefined;
  }

  // What was turned, and what changed most in each picture.
  tell(before, values) {
    const control = this.controls[this.changed];
    if (!control) return;
    const changes = this.drawn.map((panel) => panel.change(this.earlier.get(panel.key))).filter(Boolean);
    const told = [control.told(this.last[this.changed], values[this.changed]), ...changes.slice(0, 3)];
    this.frame.announce(told.filter(Boolean).join("; "));
  }

  words(named, side) {
    if (typeof named !== "string") return named;
    return this.controls[named][side === "cols" ? "columns" : "words"](this.values[named]);
  }

  // The results as panels: of three axes, one for each table.
  *parts() {
    for (const panel of this.panels) {
      const whole = this.outputs[panel.output];
      if (!whole) continue;
      const tensor = stripped(whole, panel.kind === "number" ? 0 : ["bars", "words"].includes(panel.kind) ? 1 : 2);
      /** @type {any} */
      const shown = {
        panel,
        rows: this.words(panel.rows, "rows"),
        cols: this.words(panel.cols, "cols"),
        ...scaleOf(whole, panel),
      };
      shown.filled = panel.filled;
      shown.positions = typeof panel.positions === "string" ? this.values[panel.positions] : panel.positions;
      if (tensor.shape.length < 3) yield { ...shown, key: panel.output, title: panel.title, tensor };
      else
        for (let at = 0; at < tensor.shape[0]; at++)
          yield {
            ...shown,
            key: `${panel.output} ${at}`,
            title: `${panel.title} ${at}`.trim(),
            tensor: one(tensor, at),
          };
    }
  }

  show() {
    if (!this.outputs) return;
    this.earlier = new Map(this.drawn.map(({ key, tensor }) => [key, tensor]));
    const parts = [...this.parts()];
    this.drawn = parts.map(({ key, panel }) => {
      const kept = this.drawn.find((other) => other.key === key);
      return (
        kept ?? Object.assign(new PANELS[panel.kind](this.frame.theme, (text) => this.frame.announce(text)), { key })
      );
    });
    const canvases = this.drawn.map(({ canvas }) => canvas);
    if (
      canvases.some((canvas, i) => this.stage.children[i] !== canvas) ||
      this.stage.childElementCount !== canvases.length
    )
      this.stage.replaceChildren(...canvases);
    parts.forEach((part, i) => this.drawn[i].show(part, this.frame.width));
  }

  // The panels as they stand, below a line of what the controls say.
  get drawing() {
    const from = this.stage.getBoundingClientRect();
    const line = Object.entries(this.controls)
      .map(([name, control]) => `${label(name, 40)} = ${control.said(this.values[name])}`)
      .join("   ");
    const room = Math.max(this.frame.width, 240);
    const said =
      measure(line, 12) > room
        ? `${line.slice(0, Math.max(20, Math.floor((line.length * room) / measure(line, 12)) - 1))}…`
        : line;
    const placed = this.drawn.map((panel) => {
      const { left, top } = panel.canvas.getBoundingClientRect();
      return [panel, left - from.left, top - from.top + LINE_ABOVE];
    });
    return {
      width: Math.max(measure(said, 12), ...placed.map(([panel, x]) => x + panel.width)),
      height: Math.max(LINE_ABOVE, ...placed.map(([panel, , y]) => y + panel.height)),
      draw: (pen) => {
        pen.text(0, 8, said, { fill: this.frame.theme.soft, size: 12 });
        for (const [panel, x, y] of placed) {
          pen.from(x, y);
          panel.paint(pen);
          pen.from(0, 0);
        }
      },
    };
  }
}

// Without leading axes of size 1, such as a batch's, as long as there are more than `most`.
function stripped(tensor, most) {
  const shape = [...tensor.shape];
  while (shape.length > most && shape[0] === 1) shape.shift();
  return { ...tensor, shape };
}

function one({ shape, dtype, data }, at) {
  const size = shape[1] * shape[2];
  return { shape: shape.slice(1), dtype, data: data.subarray(at * size, (at + 1) * size) };
}

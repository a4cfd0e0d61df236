// What a reader sets, one argument each. A control has an element; show(value), which makes it stand there; input(value), the
// tensor that the function is given, or choice(value), which of its programs; said(value) and words(value), for pictures.

import { check, select, slider } from "../base/elements.js";
import { stepped } from "../base/numbers.js";
import { label, quoted } from "../base/pen.js";

export class Control {
  // spec: as Python describes it; set(value)
  constructor(spec, set, theme) {
    this.spec = spec;
    this.set = set;
    this.theme = theme;
    this.name = spec.name;
  }

  /** @abstract @returns {string[]} @param {any} _value */
  words(_value) {
    return [];
  }

  columns(value) {
    return this.words(value);
  }

  /** @abstract @returns {string} @param {any} value */
  said(value) {
    return String(value);
  }

  // What a change did, in words.
  told(_before, after) {
    return `${label(this.name, 40)} is ${this.said(after)}`;
  }
}

class SliderControl extends Control {
  constructor(spec, set, theme) {
    super(spec, set, theme);
    const { low, high, step, start } = spec;
    this.knob = slider(this.name, {
      min: low,
      max: high,
      step,
      value: start,
      text: (now) => this.said(now),
      choose: set,
    });
    this.element = this.knob.element;
  }

  show(value) {
    this.knob.show(value);
  }

  said(value) {
    return stepped(Number(value), this.spec.step);
  }

  input(value) {
    return { shape: [], data: [value] };
  }

  choice(value) {
    return Math.round((value - this.spec.low) / this.spec.step);
  }
}

class MenuControl extends Control {
  constructor(spec, set, theme) {
    super(spec, set, theme);
    const options = spec.names.map((name, i) => [i, label(name, 60)]);
    this.knob = select(this.name, options, spec.start, set);
    this.element = this.knob.element;
  }

  show(value) {
    this.knob.show(value);
  }

  said(value) {
    return quoted(this.spec.names[value]);
  }

  choice(value) {
    return value;
  }
}

class SwitchControl extends Control {
  constructor(spec, set, theme) {
    super(spec, set, theme);
    this.knob = check(this.name, spec.start, set);
    this.element = this.knob.element;
  }

  show(value) {
    this.knob.show(value);
  }

  said(value) {
    return value ? "on" : "off";
  }

  choice(value) {
    return Number(value);
  }
}

export const SIMPLE_CONTROLS = { slider: SliderControl, menu: MenuControl, switch: SwitchControl };

// What a reader sets, one argument each. A gear has an element; show(value), which makes it stand there; input(value), the
// tensor that the function is given, or choice(value), which of its programs; said(value) and words(value), for pictures.

import { check, select, slider } from "../base/elements.js";
import { stepped } from "../base/numbers.js";
import { label, quoted } from "../base/pen.js";

export class Gear {
  // control: as Python describes it; set(value)
  constructor(control, set, theme) {
    this.control = control;
    this.set = set;
    this.theme = theme;
    this.name = control.name;
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

class SliderGear extends Gear {
  constructor(control, set, theme) {
    super(control, set, theme);
    const { low, high, step, start } = control;
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
    return stepped(Number(value), this.control.step);
  }

  input(value) {
    return { shape: [], data: [value] };
  }

  choice(value) {
    return Math.round((value - this.control.low) / this.control.step);
  }
}

class MenuGear extends Gear {
  constructor(control, set, theme) {
    super(control, set, theme);
    const options = control.names.map((name, i) => [i, label(name, 60)]);
    this.knob = select(this.name, options, control.start, set);
    this.element = this.knob.element;
  }

  show(value) {
    this.knob.show(value);
  }

  said(value) {
    return quoted(this.control.names[value]);
  }

  choice(value) {
    return value;
  }
}

class SwitchGear extends Gear {
  constructor(control, set, theme) {
    super(control, set, theme);
    this.knob = check(this.name, control.start, set);
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

export const GEARS = { slider: SliderGear, menu: MenuGear, switch: SwitchGear };

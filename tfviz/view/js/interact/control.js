// The base class of controls, each of which sets one argument of a function, and the simple controls: slider, menu and
// switch. A control has an element; `show(value)` sets what it displays; `input(value)` returns the tensor for the
// function's argument, or `choice(value)` the program to run; `describe(value)` and `words(value)` return texts for
// pictures.

import { checkbox, h, select, slider } from "../base/elements.js";
import { clamp, formatNumber, formatStep } from "../base/numbers.js";
import { excerpt, label, quotedExcerpt } from "../base/visible-text.js";

/** @import { ControlSpec, MenuSpec, SliderSpec, SwitchSpec } from "../documents.js" */
/** @import { Theme } from "../base/theme.js" */
/** @typedef {{ shape: number[], data: ArrayLike<number> }} Tensor the program determines its dtype */
/**
 * @template {ControlSpec} Spec
 * @typedef {Spec & { name: string }} Named with the name of the argument it sets
 */

/** The base class of controls. @template {ControlSpec} Spec */
export class Control {
  /** @type {any} */
  element;

  /** @param {Named<Spec>} spec @param {(value: Spec["start"]) => void} set @param {Theme} theme */
  constructor(spec, set, theme) {
    this.spec = spec;
    this.set = set;
    this.theme = theme;
    this.name = spec.name.replaceAll("_", " "); // as words
  }

  /** @abstract @param {Spec["start"]} _value */
  show(_value) {}

  /** @abstract Take the size that suits a page of some width, and a factor of enlargement. @param {number} _screen @param {number} _zoom */
  fit(_screen, _zoom) {}

  /** @abstract @returns {Tensor} @param {Spec["start"]} _value */
  input(_value) {
    throw new Error(`${this.name} chooses among programs`);
  }

  /** @abstract @returns {number} @param {Spec["start"]} _value */
  choice(_value) {
    throw new Error(`${this.name} is a tensor`);
  }

  /** @abstract @returns {string[]} @param {Spec["start"]} _value */
  words(_value) {
    return [];
  }

  /** @param {Spec["start"]} value */
  columns(value) {
    return this.words(value);
  }

  /** @abstract @returns {string} @param {Spec["start"]} value */
  describe(value) {
    return String(value);
  }

  /**
   * Describe a change.
   * @param {Spec["start"]} _before
   * @param {Spec["start"]} after
   */
  describeChange(_before, after) {
    return `${label(this.name, 40)} is ${this.describe(after)}`;
  }
}

/** A slider for a number, filled from 0 if its ends have two signs. @extends {Control<SliderSpec>} */
class SliderControl extends Control {
  /** @param {Named<SliderSpec>} spec @param {(value: SliderSpec["start"]) => void} set @param {Theme} theme */
  constructor(spec, set, theme) {
    super(spec, set, theme);
    const { low, high, step, start } = spec;
    this.field = slider(this.name, {
      min: low,
      max: high,
      step,
      value: start,
      text: (now) => this.describe(now),
      choose: set,
    });
    this.element = this.field.element;
    this.zero = clamp(-low / (high - low), 0, 1);
    const isSigned = this.zero > 0 && this.zero < 1;
    const ends = (isSigned ? [low, 0, high] : [low, high]).map((end) => h("span", {}, formatNumber(end, 6)));
    this.element.append(h("span", { class: "ends", "aria-hidden": "true" }, ...ends));
    this.element.classList.toggle("signed", isSigned);
    this.element.style.setProperty("--zero", String(this.zero));
  }

  /** @param {SliderSpec["start"]} value */
  show(value) {
    this.field.show(value);
    const at = (value - this.spec.low) / (this.spec.high - this.spec.low);
    this.element.style.setProperty("--from", String(Math.min(at, this.zero)));
    this.element.style.setProperty("--to", String(Math.max(at, this.zero)));
  }

  /** @param {SliderSpec["start"]} value */
  describe(value) {
    return formatStep(Number(value), this.spec.step);
  }

  /** @param {SliderSpec["start"]} value */
  input(value) {
    return { shape: [], data: [value] };
  }

  /** @param {SliderSpec["start"]} value */
  choice(value) {
    return Math.round((value - this.spec.low) / this.spec.step);
  }
}

/** A drop-down list of choices. @extends {Control<MenuSpec>} */
class MenuControl extends Control {
  /** @param {Named<MenuSpec>} spec @param {(value: MenuSpec["start"]) => void} set @param {Theme} theme */
  constructor(spec, set, theme) {
    super(spec, set, theme);
    const options = spec.names.map((name, i) => /** @type {[number, string]} */ ([i, excerpt(name, 60)]));
    this.field = select(this.name, options, spec.start, set);
    this.element = this.field.element;
  }

  /** @param {MenuSpec["start"]} value */
  show(value) {
    this.field.show(value);
  }

  /** @param {MenuSpec["start"]} value */
  describe(value) {
    return quotedExcerpt(this.spec.names[value]);
  }

  /** @param {MenuSpec["start"]} value */
  choice(value) {
    return value;
  }
}

/** A checkbox for a boolean. @extends {Control<SwitchSpec>} */
class SwitchControl extends Control {
  /** @param {Named<SwitchSpec>} spec @param {(value: SwitchSpec["start"]) => void} set @param {Theme} theme */
  constructor(spec, set, theme) {
    super(spec, set, theme);
    this.field = checkbox(this.name, spec.start, set);
    this.element = this.field.element;
  }

  /** @param {SwitchSpec["start"]} value */
  show(value) {
    this.field.show(value);
  }

  /** @param {SwitchSpec["start"]} value */
  describe(value) {
    return value ? "on" : "off";
  }

  /** @param {SwitchSpec["start"]} value */
  choice(value) {
    return Number(value);
  }
}

export const SIMPLE_CONTROLS = { slider: SliderControl, menu: MenuControl, switch: SwitchControl };

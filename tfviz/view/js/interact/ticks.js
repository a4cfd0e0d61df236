// Which heights and which positions of a line chart have a number or a name.

import { roundUp, TICK_FACTORS } from "../base/axis-ticks.js";

const LEVEL_PARTS = [3, 4, 5]; // into how many the larger end of the scale may be divided

/** Return whether a number has one digit that is not 0. @param {number} value */
const isRound = (value) => /^\de/.test(Number(value.toPrecision(9)).toExponential());

/**
 * Return the heights that have a line and a number: 0, steps that are a round part of the larger end, and the ends.
 * @param {number} min
 * @param {number} max
 */
export function levels(min, max) {
  const end = Math.max(max, -min);
  const step = end / (LEVEL_PARTS.find((count) => isRound(end / count)) ?? 2);
  const [first, last] = [Math.ceil(min / step - 1e-9), Math.floor(max / step + 1e-9)];
  const inner = Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return [...inner, ...[min, max].filter((end) => inner.every((level) => Math.abs(level - end) > step / 2))];
}

/**
 * Return the indices that have a name below the chart, and these names. Positions that are evenly spaced numbers have one at
 * round numbers, without decimals if none needs any; otherwise every n-th one has one.
 * @param {string[]} names of all positions
 * @param {number} most how many names fit side by side
 * @returns {[index: number, name: string][]}
 */
export function ticks(names, most) {
  const last = names.length - 1;
  const every = roundUp(Math.max(1, Math.ceil(last / most)), TICK_FACTORS);
  const numbers = names.map((name) => (name.trim() ? Number(name) : NaN));
  const gap = (numbers[last] - numbers[0]) / last;
  const isEven = gap > 0 && numbers.every((value, i) => Math.abs(value - numbers[0] - i * gap) < 1e-6 * gap);
  const spacing = roundUp(every * gap, TICK_FACTORS);
  const isMultiple = (/** @type {number} */ value) => Math.abs(value / spacing - Math.round(value / spacing)) < 1e-6;
  const indices = [...names.keys()].filter((index) => (isEven ? isMultiple(numbers[index]) : index % every === 0));
  const areIntegers = isEven && indices.every((index) => Number.isInteger(numbers[index]));
  return indices.map((index) => [index, areIntegers ? names[index].replace(/\.0+$/, "") : names[index]]);
}

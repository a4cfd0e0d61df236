// Where a scale ends, and the numbers beside an axis.

import { formatFixed, formatNumber } from "./numbers.js";
import spec from "./spec.json" with { type: "json" };

export const TICK_FACTORS = spec.tick_factors;
const ROUND_FACTORS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10, 20];

/**
 * Return the smallest round number that is not less than a value; 1 for 0.
 * @param {number} value
 * @param {number[]} [sizes]
 */
export function roundUp(value, sizes = ROUND_FACTORS) {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return Number((Number(sizes.find((size) => size * power >= value * (1 - 1e-6))) * power).toPrecision(6));
}

/** Return the largest number of `TICK_FACTORS` times a power of ten that is not above a value. @param {number} value above 0 */
export function roundDown(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const fitting = TICK_FACTORS.filter((size) => size * power <= 1.001 * value);
  return Number((Math.max(1, ...fitting) * power).toPrecision(6));
}

/**
 * Return round numbers between two ends, and how each is written: with as many decimals as their distance needs.
 * @param {number} low
 * @param {number} high
 * @param {number} most how many of them fit
 * @returns {[value: number, text: string][]}
 */
export function axisTicks(low, high, most) {
  const gap = (high - low) / Math.max(1, most);
  if (!(gap > 0) || !Number.isFinite(gap)) return [];
  const step = roundUp(gap, TICK_FACTORS);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => {
    const value = Number(((first + i) * step).toPrecision(12));
    return [value, formatFixed(value, decimals)];
  });
}

/**
 * Return powers of ten between two ends, with 2 and 5 times these where there is room, and how each is written.
 * @param {number} low above 0
 * @param {number} high
 * @param {number} most how many of them fit
 * @returns {[value: number, text: string][]}
 */
export function logTicks(low, high, most) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const powers = Array.from({ length: last - first + 1 }, (_, i) => first + i);
  const within = (/** @type {number} */ value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9);
  const choices = [[1, 2, 5], [1]].map((factors) =>
    powers.flatMap((power) => factors.map((factor) => Number(`${factor}e${power}`))).filter(within),
  );
  const values = choices.find((each) => each.length <= most) ?? choices[1];
  const step = Math.max(1, Math.ceil(values.length / Math.max(1, most)));
  return values.filter((_, i) => i % step === 0).map((value) => [value, formatNumber(value)]);
}

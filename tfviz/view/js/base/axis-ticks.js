// The numbers beside an axis.

import { fixed } from "./numbers.js";

const STEP_FACTORS = [1, 2, 5, 10];

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
  const power = Math.floor(Math.log10(gap));
  const factor = Number(STEP_FACTORS.find((one) => one * 10 ** power >= gap * (1 - 1e-9)));
  const step = factor * 10 ** power;
  const places = Math.max(0, -power - Number(factor === 10));
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => {
    const value = Number(((first + i) * step).toPrecision(12));
    return [value, fixed(value, places)];
  });
}

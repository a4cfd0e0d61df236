// A function that clamps a number to a range.

/**
 * Return the value, or the end of the range that it lies beyond. An empty range gives its low end.
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

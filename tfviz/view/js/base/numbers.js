// Functions that format numbers, by the same rules as `figures/formatting.py`; both are tested on one table of cases. A
// measured number has two significant digits; a whole number, and the whole part of any other, has all its digits. One
// function keeps a number within a range.

const MIN_LARGE = 1e10; // numbers from here on are written with a power of ten
const MIN_FIXED = 1e-4; // as are those below this one
const MIN_GROUPED = 10_000; // numbers from here on have their thousands set apart; a year has not
const MAX_NINES = 6; // decimals that may be needed to tell a share from 1
const MIN_NEARLY_ONE = 1 - 0.5 * 10 ** -MAX_NINES;

/**
 * Return the value, or the end of the range that it lies beyond. An empty range gives its low end.
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

/**
 * Write a number with `digits` significant digits. A value other than 1 never reads as 1, unless it differs only by
 * float32 rounding.
 * @param {number} value
 * @param {number} [digits]
 */
export function formatNumber(value, digits = 2) {
  if (Number.isNaN(value)) return "NaN";
  if (value === 0) return "0";
  return (value < 0 ? "−" : "") + unsigned(Math.abs(value), digits);
}

/** Write a number without its sign. @param {number} size above 0 @param {number} digits */
function unsigned(size, digits) {
  if (size === Infinity) return "∞";
  if (size < MIN_FIXED || size >= MIN_LARGE) {
    const [mantissa, power] = size.toExponential(digits - 1).split("e");
    return `${Number(mantissa)}e${power.replace("+", "").replace("-", "−")}`;
  }
  if (Number.isInteger(size)) return grouped(String(size));
  let decimals = Math.max(0, digits - 1 - powerOf(size));
  while (size < 1 && Number(size.toFixed(decimals)) === 1 && decimals < MAX_NINES) decimals++;
  return trimmed(size.toFixed(decimals));
}

/**
 * Write a number to so many decimals, trailing zeros included.
 * @param {number} value
 * @param {number} decimals
 */
export function formatFixed(value, decimals) {
  if (!Number.isFinite(value)) return formatNumber(value);
  const text = Math.abs(value).toFixed(decimals);
  return (value < 0 && Number(text) ? "−" : "") + grouped(text);
}

/**
 * Write numbers that stand below one another to the same decimals: three digits of the largest, two if it is below 1. A
 * number that would read as 0 is written as a bound, as is one that would read as 1 where none is above 1.
 * @param {number[]} values
 */
export function formatAligned(values) {
  const finite = values.filter(Number.isFinite);
  const top = Math.max(0, ...finite.map(Math.abs));
  if (!(top >= MIN_FIXED && top < MIN_LARGE)) return values.map((value) => formatNumber(value));
  const power = powerOf(top);
  const most = Math.max(0, (power < 0 ? 1 : 2) - power);
  const rounded = (/** @type {number} */ value, /** @type {number} */ decimals) => Number(value.toFixed(decimals));
  const isNearlyOne = (/** @type {number} */ value) => top <= 1 && value < MIN_NEARLY_ONE && rounded(value, most) === 1;
  let decimals = most; // without zeros that all have at the end
  while (
    decimals &&
    !finite.some(isNearlyOne) &&
    finite.every((value) => rounded(value, decimals - 1) === rounded(value, most))
  )
    decimals--;
  const [least, nines] = [formatFixed(10 ** -decimals, decimals), formatFixed(1 - 10 ** -decimals, decimals)];
  return values.map((value) => {
    const read = rounded(value, decimals);
    if (value && !read) return value > 0 ? `< ${least}` : `> −${least}`;
    return top <= 1 && read === 1 && value < MIN_NEARLY_ONE && decimals ? `> ${nines}` : formatFixed(value, decimals);
  });
}

/**
 * Write a difference to so many decimals, with its sign, also a plus.
 * @param {number} value
 * @param {number} [decimals]
 */
export const withSign = (value, decimals = 2) =>
  (Number(Math.abs(value).toFixed(decimals)) && value > 0 ? "+" : "") + formatFixed(value, decimals);

/**
 * Write a number for a cell: to hundredths of its scale's unit, whole numbers as they are, a dot for what is nearly
 * zero.
 * @param {number} value
 * @param {number} limit
 */
export function formatCell(value, limit) {
  if (!Number.isFinite(value) || Number.isInteger(value)) return formatNumber(value);
  const size = Math.abs(value);
  if (size < limit / 200) return "·";
  const rounded = Number(size.toFixed(Math.max(0, 2 - powerOf(limit))));
  if (rounded === 1 && limit <= 1 && size < MIN_NEARLY_ONE) return value > 0 ? ">0.99" : "<−0.99";
  if (limit > 0.1 && limit <= 1) return formatFixed(value, 2); // weights stand in columns
  return formatNumber(value < 0 ? -rounded : rounded);
}

/** Return the suffix of a number with this unit: "%" without a space, others after a no-break space. @param {string} [unit] */
export const unitSuffix = (unit) => (!unit || unit === "%" ? (unit ?? "") : `\u00a0${unit}`);

/** Write a share as a percentage. Only 0 and 1 read as 0% and 100%. @param {number} share */
export function percent(share) {
  if (share > 0 && share < 0.001) return "< 0.1%";
  if (share >= 0.9995 && share < MIN_NEARLY_ONE) return "> 99.9%";
  if (!Number.isFinite(share)) return formatNumber(share);
  const hundredths = 100 * share;
  if (hundredths > 0.99 && hundredths < 1) return `${trimmed(hundredths.toFixed(2))}%`; // 1% is no limit to stay below
  if (!(hundredths > 99 && hundredths < 100)) return `${formatNumber(hundredths)}%`;
  const decimals = [0, 1].find((n) => Number(hundredths.toFixed(n)) < 100) ?? 0;
  return `${trimmed(hundredths.toFixed(decimals))}%`;
}

/**
 * Write the value of a slider: with as many decimals as its step has, or more if the value needs them.
 * @param {number} value
 * @param {number} step
 */
export function formatStep(value, step) {
  if (Math.abs(value) >= MIN_LARGE) return formatNumber(value, 6);
  const decimals = Math.min(
    10,
    (String(step).split(".")[1] ?? "").split("e")[0].length + Number(/e-(\d+)/.exec(String(step))?.[1] ?? 0),
  );
  return Math.abs(Number(value.toFixed(decimals)) - value) <= 1e-6 * Math.abs(value)
    ? formatFixed(value, decimals)
    : formatNumber(value, 6);
}

/** Write a number for a program such as a spreadsheet: to four digits, integers in full. @param {number} value */
export function exportedNumber(value) {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(clamp(1 + powerOf(Math.abs(value)), 4, 100))));
}

/**
 * Write a count with the noun in singular or plural.
 * @param {number} count
 * @param {string} singular
 * @param {string} [plural]
 */
export const formatCount = (count, singular, plural = `${singular}s`) =>
  `${formatNumber(count)} ${count === 1 ? singular : plural}`;

/** Return the power of ten of the first digit. @param {number} size */
const powerOf = (size) => Number(size.toExponential().split("e")[1]);
/** @param {string} text */
const trimmed = (text) => grouped(text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** Separate the thousands of a whole number. @param {string} text */
function grouped(text) {
  const [integer, rest] = text.split(".");
  const digits = Number(integer) < MIN_GROUPED ? integer : integer.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? digits : `${digits}.${rest}`;
}

// What a result shows, in a sentence: the author's own, with names in braces, or one made from the numbers. The rules and
// the names are those of `tfviz/view/figures/sentences.py`.

import { formatNumber, percent, unitSuffix } from "../base/numbers.js";
import { capital, excerpt, quoted, quotedExcerpt } from "../base/visible-text.js";
import { rowsSumToOne, wordsFor } from "./scales.js";

/** @import { DrawingKind } from "../documents.js" */
/** @import { Point } from "../types.js" */
/** @import { PanelContent } from "./panel.js" */
/** @typedef {PanelContent & { kind: DrawingKind }} Content */

const MAX_DEFAULT_SENTENCES = 2;
const MAX_WORD_LETTERS = 30;
const MARKED_KINDS = ["grid", "bars", "lines"];
const ROW_KINDS = ["bars", "words", "stack"]; // a number for each word

/** Return the sentence of a view. @param {Content[]} contents of its panels */
export function sentences(contents) {
  return [...new Set(chosen(contents).map(([, text]) => text))].join(" "); // one for several results is said once
}

/** Return the results that the sentence is about, and what it says of each. @param {Content[]} contents @returns {[Content, string][]} */
function chosen(contents) {
  const custom = contents.filter(({ sentence }) => sentence);
  if (custom.length) return custom.map((content) => [content, filled(content)]);
  const automatic = contents.map((content) => /** @type {[Content, string]} */ ([content, defaultSentence(content)]));
  return automatic.filter(([, text]) => text).slice(0, MAX_DEFAULT_SENTENCES);
}

/**
 * Return, for each result, row and column of the number that the sentence names; null where it names none, or one of
 * several equal ones.
 * @param {Content[]} contents
 * @returns {(Point | null)[]}
 */
export function statedCells(contents) {
  const known = new Set(chosen(contents).map(([content]) => content));
  return contents.map((content) => {
    if (!known.has(content) || !MARKED_KINDS.includes(content.kind)) return null;
    if (content.sentence && !/\{(row|col|value|percent)\}/.test(content.sentence)) return null;
    const data = Array.from(content.tensor.data);
    const [n, m] = content.tensor.shape.length === 2 ? content.tensor.shape : [1, data.length];
    const at = statedCell(content, data, n, m);
    if (!Number.isFinite(data[at]) || data.filter((value) => value === data[at]).length > 1) return null;
    return content.kind === "bars" ? [at, 0] : [Math.floor(at / m), at % m];
  });
}

/** Return the author's sentence, with the numbers and words as they are now. @param {Content} content */
export function filled(content) {
  const known = facts(content);
  if (!known) return "";
  const all = String(content.sentence).split(/(?<=[.?!]) /);
  const alone = known.second === "none" ? all.filter((part) => !part.includes("{second")) : all;
  return (alone.length ? alone : all).join(" ").replace(/\{(\w+)\}/g, (match, name) => known[name] ?? match);
}

/**
 * Return a sentence made from the numbers; empty for a number, which is read at a glance, and for planes.
 * @param {Content} content
 */
export function defaultSentence(content) {
  const known = facts(content);
  if (!known || ["number", "arrows", "dots"].includes(content.kind)) return "";
  const { title, tensor, budget } = content;
  const finite = Array.from(tensor.data).filter(Number.isFinite);
  const isEven = content.kind !== "stack" && finite.every((one) => one === finite[0]);
  const text = isEven ? evenSentence(finite, tensor.data.length, known) : unevenSentence(content, finite, known);
  if (content.kind === "stack" && budget !== undefined) {
    const sum = finite.reduce((total, value) => total + Math.max(0, value), 0);
    return `${stackAnswer(sum, budget, content.unit)}. ${capital(text)}`; // the title asks whether it fits
  }
  return title ? `${capital(excerpt(title, 60))}: ${text}` : capital(text);
}

/**
 * Return the sum of a stack, and whether it fits if there is a budget; of two numbers that read alike but differ, more
 * digits.
 * @param {number} sum
 * @param {number} [budget]
 * @param {string} [unit]
 */
export function stackAnswer(sum, budget, unit) {
  const named = unitSuffix(unit);
  if (budget === undefined) return formatNumber(sum) + named;
  const digits = [2, 3, 4, 5].find((n) => formatNumber(sum, n) !== formatNumber(budget, n)) ?? 2;
  return `${sum <= budget ? "Yes" : "No"}: ${formatNumber(sum, digits)} of ${formatNumber(budget, digits)}${named}`;
}

/** @param {number[]} finite @param {number} count @param {Record<string, string>} known */
const evenSentence = (finite, count, { value }) =>
  `${value} ${finite.length === count ? "everywhere" : `in ${finite.length} of ${count} cells`}.`;

/** @param {Content} content @param {number[]} finite @param {Record<string, string>} known */
function unevenSentence(content, finite, known) {
  const { kind, tensor, rows } = content;
  const { row, value } = known;
  if (kind === "stack") {
    const of = content.budget === undefined ? ` of ${known.sum}` : "";
    return `the largest part is ${row}, ${value}${of} (${known.percent}).`;
  }
  const then = known.second === "none" ? "" : `, then ${known.second} (${known.second_value})`;
  if (ROW_KINDS.includes(kind)) return `largest for ${row} (${value})${then}.`;
  if (kind !== "lines") return gridSentence(content, finite, known);
  const several = tensor.shape.length === 2 && (tensor.shape[0] > 1 || rows.length);
  return `highest ${several ? `for ${row} at` : "at"} ${known.col} (${value}).`;
}

/** @param {Content} content @param {number[]} finite @param {Record<string, string>} known */
function gridSentence(content, finite, known) {
  const { row, col, value } = known;
  if (finite.every((one) => one === 0 || one === 1))
    return `${content.ends?.[1] || 1} in ${known.count} of ${known.of} cells.`;
  if (isShares(content))
    return `${row} gives most to ${col} (${known.percent}), then to ${known.second} (${known.second_percent}).`;
  const sizes = finite.map(Math.abs);
  const top = sizes.reduce((max, size) => Math.max(max, size), 0);
  const ties = sizes.filter((size) => size === top).length;
  if (ties > 1) return `${value} at most, in ${ties} of ${known.of} cells.`;
  const [first, second] = (content.axes ?? ["", ""]).map((name) => (name ? `${name} ` : ""));
  const much = finite.some((one) => one < 0) ? "strongest" : "largest";
  return `${much} for ${first}${row} and ${second}${col} (${value}).`;
}

/**
 * Return the text of each name; null if no number is finite.
 * @param {Content} content
 * @returns {Record<string, string> | null}
 */
function facts(content) {
  const { kind, tensor, unit, expected } = content;
  const data = Array.from(tensor.data);
  const finite = data.filter(Number.isFinite);
  if (!finite.length) return null;
  /** @param {number} value */
  const measured = (value) => formatNumber(value) + unitSuffix(unit);
  if (kind === "number") return { value: measured(data[0]), percent: inPercent(data[0]) };
  const [n, m] = tensor.shape.length === 2 ? tensor.shape : [1, data.length];
  const at = statedCell(content, data, n, m);
  const [row, col] = [Math.floor(at / m), at % m];
  const line = data.slice(row * m, (row + 1) * m);
  const second = best(line.map((value, i) => (i !== col && Number.isFinite(value) ? value : -Infinity)));
  const hasSecond = second !== col && Number.isFinite(line[second]);
  const sum = finite.reduce((total, value) => total + value, 0);
  const share = kind === "stack" && sum ? sum : 1;
  const word = wordsOf(content, n, m);
  return {
    row: ROW_KINDS.includes(kind) ? word(row, col) : quote(wordsFor(content.rows, n)[row]),
    col: word(row, col),
    value: measured(data[at]),
    percent: inPercent(data[at] / share),
    second: hasSecond ? word(row, second) : "none",
    second_value: hasSecond ? measured(line[second]) : "",
    second_percent: hasSecond ? inPercent(line[second] / share) : "",
    count: formatNumber(
      data.filter((value, i) => Number.isFinite(value) && value * (expected?.[i] ?? value) > 0).length,
    ),
    of: formatNumber(data.length),
    sum: measured(sum),
    last: measured(data[m - 1]),
    last_of_second: n > 1 ? measured(data[2 * m - 1]) : "",
  };
}

/** @param {number} share */
const inPercent = (share) => percent(share).replaceAll(" ", "\u00a0");

/**
 * Return the index of the value that the sentence quotes.
 * @param {Content} content
 * @param {number[]} data
 * @param {number} n rows
 * @param {number} m columns
 */
function statedCell(content, data, n, m) {
  const signed = content.kind === "grid" && data.some((value) => value < 0 && Number.isFinite(value));
  const size = (/** @type {number} */ value) => (signed ? Math.abs(value) : value);
  const sizes = data.map((value) => (Number.isFinite(value) ? size(value) : -Infinity));
  if (!isShares(content) || !hasSameWords(content, n, m)) return best(sizes);
  const words = wordsFor(content.rows, n);
  const others = sizes.map((size, i) => (words[Math.floor(i / m)] === words[i % m] ? -Infinity : size));
  const other = best(others);
  if (!(others[other] > 0)) return best(sizes);
  const row = Math.floor(other / m);
  return row * m + best(sizes.slice(row * m, (row + 1) * m));
}

/** Return the index of the largest number, of equal ones the first. @param {number[]} sizes */
const best = (sizes) => sizes.reduce((top, size, i) => (size > sizes[top] ? i : top), 0);

/** Return a function that names a column of a row. @param {Content} content @param {number} n @param {number} m */
function wordsOf(content, n, m) {
  const { kind, rows, columns } = content;
  const words = wordsFor(ROW_KINDS.includes(kind) || kind === "graph" ? rows : columns, m);
  const same = kind === "grid" && hasSameWords(content, n, m);
  return (/** @type {number} */ row, /** @type {number} */ col) => (same && row === col ? "itself" : quote(words[col]));
}

const NUMBER = /^[-−]?\d[\d.,]*$/;

/** Quote a word that is no number; signs stand for spaces at its ends, not for those inside a name. @param {string} word */
function quote(word) {
  if (NUMBER.test(word)) return word;
  return (word && word.trim() === word ? quotedExcerpt : quoted)(word, MAX_WORD_LETTERS);
}

/** @param {Content} content */
const isShares = ({ kind, tensor }) =>
  kind === "grid" && tensor.shape.length === 2 && rowsSumToOne(tensor.shape, tensor.data);

/** @param {Content} content @param {number} n @param {number} m */
const hasSameWords = ({ rows, columns }, n, m) =>
  n === m && n > 1 && wordsFor(rows, n).join("\n") === wordsFor(columns, m).join("\n");

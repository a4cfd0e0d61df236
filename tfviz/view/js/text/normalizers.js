// Functions that normalize a text before it is split, with the character sets that `tfviz/text/tokenizer_export.py`
// exports.

/** @typedef {(text: string) => string} Change */
/** @typedef {number[]} Runs lengths outside and inside a set of characters, in turn */

/** @type {Record<string, (step: any) => Change>} */
const NORMALIZERS = { lower: lowered, clean: cleaned, apart: setApart, accents: unaccented };

/** Make a function that applies normalization steps to a text. @param {{ kind: string }[]} steps @returns {Change} */
export function normalizer(steps) {
  const changes = steps.map((step) => NORMALIZERS[step.kind](step));
  return (text) => changes.reduce((current, change) => change(current), text);
}

/**
 * Return what stands in the brackets of a regular expression for a set of characters, given as lengths of runs.
 * @param {Runs} lengths
 */
export function characterClass(lengths) {
  let [at, ranges] = [0, ""];
  for (let i = 0; i < lengths.length; i += 2) {
    const first = at + lengths[i];
    at = i + 1 < lengths.length ? first + lengths[i + 1] : 0x110000;
    ranges += `\\u{${first.toString(16)}}-\\u{${(at - 1).toString(16)}}`;
  }
  return ranges;
}

/** @type {(lengths: Runs, more?: string) => RegExp} */
const anyOf = (lengths, more = "") => new RegExp(`[${characterClass(lengths)}]${more}`, "gu");

/**
 * @param {{ runs: number[], longer: Record<string, string> }} step `runs`: runs of letters, each as four numbers: the first letter, the count, the distance to the next, and to the lower case
 * @returns {Change}
 */
function lowered({ runs, longer }) {
  const small = new Map(Object.entries(longer));
  for (let i = 0; i < runs.length; i += 4) {
    const [first, count, step, shift] = runs.slice(i, i + 4);
    for (let n = 0; n < count; n++) {
      const code = first + n * step;
      small.set(String.fromCodePoint(code), String.fromCodePoint(code + shift));
    }
  }
  return (text) => Array.from(text, (letter) => small.get(letter) ?? letter).join("");
}

/** @param {{ gone: Runs, spaces: Runs }} step @returns {Change} */
function cleaned({ gone, spaces }) {
  const [removed, blank] = [anyOf(gone), anyOf(spaces)];
  return (text) => text.replace(removed, "").replace(blank, " ");
}

/** @param {{ signs: Runs }} step @returns {Change} */
function setApart({ signs }) {
  const sign = anyOf(signs);
  return (text) => text.replace(sign, " $& ");
}

/**
 * Remove accents. The browser may decompose and order characters that `tokenizers` does not know yet: only the others
 * are given to it.
 * @param {{ moving: Runs, marks: Runs }} step
 * @returns {Change}
 */
function unaccented({ moving, marks }) {
  const [run, mark] = [anyOf(moving, "+"), anyOf(marks)];
  return (text) => text.replace(run, (letters) => letters.normalize("NFD")).replace(mark, "");
}

// Texts to ids and back, by tokenizers small enough to work out by hand. tests/view compares large ones with Python.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KernelTokenizer } from "../../tfviz/view/js/text/kernel-tokenizer.js";
import { characterClass, normalizer } from "../../tfviz/view/js/text/normalizers.js";
import { byteCharacters } from "../../tfviz/view/js/text/bpe.js";
import { splitter } from "../../tfviz/view/js/text/splitters.js";
import { makeTokenizer } from "../../tfviz/view/js/text/make-tokenizer.js";

/** A set of characters as Python describes it: lengths of runs outside and inside, in turn. @param {string} characters */
function runs(characters) {
  const codes = Array.from(characters, (character) => Number(character.codePointAt(0))).sort((a, b) => a - b);
  return codes.flatMap((code, i) => [code - (i ? codes[i - 1] + 1 : 0), 1]);
}
const LETTERS = runs("abcdefghijklmnopqrstuvwxyz");
const SIGNS = runs("!',.?");
const WORDS = { kind: "bert", words: LETTERS, signs: SIGNS };

/** A tokenizer of pieces of words. @param {string[]} tokens @param {object} more */
const pieces = (tokens, more = {}) =>
  makeTokenizer({
    kind: "subwords",
    tokens,
    special: { unk: 0 },
    silent: [],
    hexadecimal: [],
    normalizers: [],
    splitter: WORDS,
    model: { kind: "wordpiece", ids: [...tokens.keys()], unknown: 0, inside: "##", longest: 8 },
    joiner: { kind: "pieces", inside: "##", cleanup: true },
    ...more,
  });

test("characters are found by their id, and a stranger is named", () => {
  const letters = makeTokenizer({ kind: "characters", tokens: ["a", "😀", "\n", "\ud83d"] });
  assert.deepEqual(letters.encode("a😀\n"), [0, 1, 2]);
  assert.deepEqual(letters.encode("\ud83da"), [3, 0]); // half of a pair alone
  assert.equal(letters.decode([1, 0]), "😀a");
  assert.deepEqual(letters.tokens([2]), ["⏎"]);
  assert.throws(() => letters.encode("ab"), /"b" \(U\+0062\) at place 1 is not among the 4/);
  assert.throws(() => letters.decode([4]), /id 4 is not one of the 4 tokens, 0 to 3/);
  assert.throws(() => letters.decode([0.5]), /id 0.5 is not one/);
});

test("bytes are those of UTF-8, and each has a word", () => {
  const bytes = makeTokenizer({ kind: "bytes" });
  assert.deepEqual(bytes.encode("é€"), [0xc3, 0xa9, 0xe2, 0x82, 0xac]);
  assert.deepEqual(bytes.encode("\udc80a"), [0x80, 0x61]); // a byte that Python could not read
  assert.equal(bytes.decode([0xc3, 0xa9, 0xff]), "é\ufffd");
  assert.equal(bytes.decode([0xef, 0xbb, 0xbf, 0x61]), "\ufeffa"); // a byte order mark stays
  assert.deepEqual(bytes.tokens([0x20, 0x41, 0xc3, 0]), ["␣", "A", "c3", "␀"]);
  assert.throws(() => bytes.encode("\ud800"), /half of a character/);
});

test("there is no tokenizer of another kind", () => {
  assert.throws(() => makeTokenizer({ kind: "toString" }), /no tokenizer of the kind toString/);
});

test("the longest piece comes first, from the left, and pieces inside a word are marked", () => {
  const tokenizer = pieces(["[UNK]", "un", "##do", "##doing", "##ing", "do"]);
  assert.deepEqual(tokenizer.encode("undoing do"), [1, 3, 5]);
  assert.deepEqual(tokenizer.encode("undo"), [1, 2]);
  assert.deepEqual(tokenizer.encode("doing"), [5, 4]);
});

test("a word with a piece that there is not, or one that is too long, is unknown as a whole", () => {
  const tokenizer = pieces(["[UNK]", "un", "##do"]);
  assert.deepEqual(tokenizer.encode("unit undo"), [0, 1, 2]);
  assert.deepEqual(tokenizer.encode("undododo"), [1, 2, 2, 2]); // eight letters
  assert.deepEqual(tokenizer.encode("undodododo"), [0]);
});

test("pieces become a text: joined where they are marked, with no space before a sign", () => {
  const tokenizer = pieces(["[UNK]", "it", "##s", "un", "##do", ",", "do", "n't"], { silent: [0] });
  assert.equal(tokenizer.decode([3, 4, 5, 1, 2]), "undo, its");
  assert.equal(tokenizer.decode([6, 7, 0]), "don't");
  const untidied = pieces(["a", ","], { joiner: { kind: "pieces", inside: "##", cleanup: false } });
  assert.equal(untidied.decode([0, 1]), "a ,");
});

test("whole words are looked up, and joined by spaces", () => {
  const tokens = ["?", "the", "cat"];
  const model = { kind: "words", ids: [0, 1, 2], unknown: 0 };
  const tokenizer = pieces(tokens, { model, joiner: { kind: "spaces" } });
  assert.deepEqual(tokenizer.encode("the cat sat"), [1, 2, 0]);
  assert.equal(tokenizer.decode([1, 2]), "the cat");
});

test("the pair that was learned first is joined first, of equal ones the leftmost", () => {
  const bytes = byteCharacters();
  const tokens = [...bytes, "ab", "bc", "abc", "aa"];
  const [a, b, c] = ["a", "b", "c"].map((letter) => letter.charCodeAt(0));
  const [ab, bc, abc, aa] = [256, 257, 258, 259];
  /** @param {number[][]} merges */
  const pairs = (merges) =>
    pieces(tokens, {
      splitter: { kind: "bytes", letters: LETTERS, numbers: runs("0123456789"), spaces: runs(" ") },
      model: { kind: "bpe", merges: merges.flat() },
      joiner: { kind: "bytes" },
    });
  // prettier-ignore
  assert.deepEqual(pairs([[a, b, ab], [b, c, bc], [ab, c, abc]]).encode("abcbc"), [abc, bc]);
  // prettier-ignore
  assert.deepEqual(pairs([[b, c, bc], [a, b, ab], [a, bc, abc]]).encode("abcab"), [abc, ab]);
  assert.deepEqual(pairs([[a, a, aa]]).encode("aaa"), [aa, a]);
  const tokenizer = pairs([[a, b, ab]]);
  assert.deepEqual(tokenizer.encode("ab é"), [ab, 32, 0xc3, 0xa9]);
  assert.equal(tokenizer.decode([ab, 32, 0xc3, 0xa9]), "ab é");
  assert.deepEqual(tokenizer.tokens([ab, 32]), ["ab", "␣"]);
  assert.throws(() => tokenizer.encode("\ud800"), /lone surrogate/);
});

test("a byte that cannot be printed has a sign of its own, from U+0100 on", () => {
  const signs = byteCharacters();
  assert.deepEqual([signs[0], signs[32], signs[33], signs[126], signs[127], signs[161], signs[173]], [..."ĀĠ!~ġ¡Ń"]);
  assert.equal(new Set(signs).size, 256);
});

test("words as BERT splits them, as GPT-2 does, by letters, and signs together", () => {
  const gpt = { kind: "bytes", letters: LETTERS, numbers: runs("0123456789"), spaces: runs(" \n") };
  assert.deepEqual(splitter(WORDS)("it's, so!?"), ["it", "'", "s", ",", "so", "!", "?"]);
  assert.deepEqual(splitter({ ...WORDS, kind: "words" })("it's so!?"), ["it", "'", "s", "so", "!?"]);
  assert.deepEqual(splitter(gpt)("it's  so 12a ?!\n"), ["it", "'s", " ", " so", " 12", "a", " ?!", "\n"]);
  assert.deepEqual(splitter({ kind: "letters" })("a😀\n"), ["a", "😀", "\n"]);
  assert.deepEqual(splitter(WORDS)(""), []);
});

test("a set of characters is written as ranges, up to the last of all", () => {
  assert.equal(characterClass([97, 3, 20, 1]), "\\u{61}-\\u{63}\\u{78}-\\u{78}");
  assert.equal(characterClass([65]), "\\u{41}-\\u{10ffff}");
  assert.equal(characterClass([0, 10]), "\\u{0}-\\u{9}");
});

test("a text is made even in the order of the steps", () => {
  const lower = { kind: "lower", runs: [65, 26, 1, 32], longer: { İ: "i\u0307" } };
  const accents = { kind: "accents", moving: runs("àé"), marks: runs("\u0300\u0301") };
  const clean = { kind: "clean", gone: runs("\0"), spaces: runs("\t ") };
  const apart = { kind: "apart", signs: runs("漢") };
  assert.equal(normalizer([lower])("AZ[ÀİΩ"), "az[Ài\u0307Ω"); // of the letters that are listed only
  assert.equal(normalizer([accents])("àé"), "ae");
  assert.equal(normalizer([clean])("a\0b\tc"), "ab c");
  assert.equal(normalizer([apart])("a漢b"), "a 漢 b");
  assert.equal(normalizer([clean, apart, lower])("A\0漢\tB"), "a 漢  b");
  assert.equal(normalizer([])("As It Is"), "As It Is");
});

test("a tokenizer of the kernel asks for each text once, and knows what its tokens say", async () => {
  /** @type {string[][]} */
  const asked = [];
  const ask = async (/** @type {string[]} */ texts) => {
    asked.push(texts);
    return texts.map((text) => [text.length]);
  };
  const spec = { texts: ["<s>", "a b", "?"], bytes: { 2: [0xc3] }, names: { 0: "start" }, special: {} };
  const tokenizer = new KernelTokenizer(spec, ask);
  assert.throws(() => tokenizer.encode("ab"), /Python has not read this text yet/);
  assert.equal(await tokenizer.preloadEncodings(["ab", "c", "ab"]), true);
  assert.equal(await tokenizer.preloadEncodings(["c", "ab"]), false);
  assert.equal(await tokenizer.preloadEncodings(["c", "def"]), true);
  assert.deepEqual(asked, [["ab", "c"], ["def"]]);
  assert.deepEqual([tokenizer.encode("ab"), tokenizer.encode("def")], [[2], [3]]);
  assert.deepEqual(tokenizer.tokens([0, 1, 2]), ["start", "a␣b", "c3"]);
  assert.equal(tokenizer.decode([1, 2]), "a b\ufffd");
});

// Tokenizers of characters and of bytes, and functions shared by all tokenizers. A character is a code point, as in
// Python, or a lone surrogate.

import { VISIBLE_SIGNS } from "../base/visible-text.js";

/** @import { Tokenizer } from "../types.js" */

const SURROGATE = /\p{Surrogate}/u;
const UTF8 = new TextEncoder();

/** A tokenizer that has one token for each character. @implements {Tokenizer} */
export class CharacterTokenizer {
  /** @type {Record<string, number>} */
  special = {};

  /** @param {{ tokens: string[] }} spec */
  constructor({ tokens }) {
    this.vocab = tokens;
    this.size = tokens.length;
    this.idOf = new Map(tokens.map((token, id) => [token, id]));
  }

  /** @param {string} text */
  encode(text) {
    return Array.from(text, (character, index) => {
      const id = this.idOf.get(character);
      if (id !== undefined) return id;
      throw new Error(`${characterName(character)} at place ${index} is not among the ${this.size} of this tokenizer`);
    });
  }

  /** @param {Iterable<number>} ids */
  decode(ids) {
    return knownIds(ids, this.size)
      .map((id) => this.vocab[id])
      .join("");
  }

  /** @param {Iterable<number>} ids */
  tokens(ids) {
    return knownIds(ids, this.size).map((id) => visibleToken(this.vocab[id]));
  }
}

/** A tokenizer whose 256 tokens are the bytes of UTF-8. @implements {Tokenizer} */
export class ByteTokenizer {
  size = 256;
  /** @type {Record<string, number>} */
  special = {};

  /**
   * Encode a text as bytes. U+DC80 to U+DCFF are bytes that Python could not decode; any other lone surrogate is an
   * error.
   * @param {string} text
   */
  encode(text) {
    /** @type {number[]} */
    const ids = [];
    for (const character of text) {
      const point = Number(character.codePointAt(0));
      if (point >= 0xdc80 && point <= 0xdcff) ids.push(point - 0xdc00);
      else if (SURROGATE.test(character))
        throw new Error(`${characterName(character)} is half of a character, which has no bytes`);
      else ids.push(...UTF8.encode(character));
    }
    return ids;
  }

  /** @param {Iterable<number>} ids */
  decode(ids) {
    return fromBytes(knownIds(ids, this.size));
  }

  /** @param {Iterable<number>} ids */
  tokens(ids) {
    return knownIds(ids, this.size).map((id) => {
      const character = String.fromCharCode(id);
      return VISIBLE_SIGNS.get(character) ?? (id > 32 && id < 127 ? character : hexadecimal([id]));
    });
  }
}

/**
 * Return ids unchanged if all are tokens of a tokenizer of this size; else throw.
 * @param {Iterable<number>} ids
 * @param {number} size
 */
export function knownIds(ids, size) {
  return Array.from(ids, (id) => {
    if (Number.isInteger(id) && id >= 0 && id < size) return id;
    throw new Error(`id ${id} is not one of the ${size} tokens, 0 to ${size - 1}`);
  });
}

/** @param {string} text @returns whether it has halves of characters, which UTF-8 cannot hold */
export const broken = (text) => SURROGATE.test(text);

/** @param {string} text */
export const toBytes = (text) => UTF8.encode(text);

/**
 * Decode UTF-8. Invalid bytes become U+FFFD; a byte order mark stays, like any other character.
 * @param {Iterable<number>} bytes
 */
export function fromBytes(bytes) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/**
 * Make the text of a token visible.
 * @param {string} text
 * @returns it with a sign for each space, tab and end of a line
 */
export function visibleToken(text) {
  return Array.from(text, (character) => VISIBLE_SIGNS.get(character) ?? character).join("");
}

/** Write bytes as hexadecimal numbers. @param {Iterable<number>} bytes */
export function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

/** @param {string} character */
function characterName(character) {
  const code = Number(character.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0");
  return `the character ${JSON.stringify(character)} (U+${code})`;
}

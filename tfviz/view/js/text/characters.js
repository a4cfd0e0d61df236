// Text to ids and back: characters and bytes. A character is a code point, as in Python, or half of a pair alone.

import { SIGNS } from "../base/pen.js";

const HALF = /\p{Surrogate}/u;
const UTF8 = new TextEncoder();

export class CharacterVocabulary {
  special = {};

  constructor({ tokens }) {
    this.tokens = tokens;
    this.size = tokens.length;
    this.places = new Map(tokens.map((token, id) => [token, id]));
  }

  encode(text) {
    return Array.from(text, (character, place) => {
      const id = this.places.get(character);
      if (id !== undefined) return id;
      throw new Error(`${called(character)} at place ${place} is not among the ${this.size} of this vocabulary`);
    });
  }

  decode(ids) {
    return knownIds(ids, this.size)
      .map((id) => this.tokens[id])
      .join("");
  }

  words(ids) {
    return knownIds(ids, this.size).map((id) => visible(this.tokens[id]));
  }
}

export class ByteVocabulary {
  size = 256;
  special = {};

  constructor() {}

  // U+DC80 to U+DCFF are bytes that Python could not read as text; any other half of a pair is no text.
  encode(text) {
    const ids = [];
    for (const character of text) {
      const point = character.codePointAt(0);
      if (point >= 0xdc80 && point <= 0xdcff) ids.push(point - 0xdc00);
      else if (HALF.test(character)) throw new Error(`${called(character)} is half of a character, which has no bytes`);
      else ids.push(...UTF8.encode(character));
    }
    return ids;
  }

  decode(ids) {
    return fromBytes(knownIds(ids, this.size));
  }

  words(ids) {
    return knownIds(ids, this.size).map((id) => {
      const character = String.fromCharCode(id);
      return SIGNS.get(character) ?? (id > 32 && id < 127 ? character : hexadecimal([id]));
    });
  }
}

// The ids as they are, if they are tokens of a vocabulary of this size.
export function knownIds(ids, size) {
  return Array.from(ids, (id) => {
    if (Number.isInteger(id) && id >= 0 && id < size) return id;
    throw new Error(`id ${id} is none of the ${size} tokens, 0 to ${size - 1}`);
  });
}

// Whether a text has halves of characters, which UTF-8 cannot hold.
export const broken = (text) => HALF.test(text);

export const toBytes = (text) => UTF8.encode(text);

// What is not UTF-8 becomes U+FFFD; a mark of byte order stays, as any other character.
export function fromBytes(bytes) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

// A text with a sign for each space, tab and end of a line.
export function visible(text) {
  return Array.from(text, (character) => SIGNS.get(character) ?? character).join("");
}

export function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

function called(character) {
  const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return `the character ${JSON.stringify(character)} (U+${code})`;
}

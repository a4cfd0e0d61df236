// A tokenizer whose texts are encoded in Python. The page knows the text of each token, and the texts that it has
// already sent to the kernel.

import { fromBytes, hexadecimal, knownIds, toBytes, visibleToken } from "./characters.js";

/** @import { Tokenizer } from "../types.js" */

const MAX_TEXTS = 2000;

/** A tokenizer that stores the encodings it has received from the kernel. @implements {Tokenizer} */
export class KernelTokenizer {
  /** @type {Map<string, number[]>} */
  learned = new Map();

  /**
   * @param {{ texts: string[], bytes: Record<number, number[]>, names: Record<number, string>, special: Record<string, number> }} spec
   * @param {(texts: string[]) => Promise<number[][]>} ask gives their ids
   */
  constructor({ texts, bytes, names, special }, ask) {
    this.texts = texts;
    this.bytes = bytes;
    this.names = names;
    this.special = special;
    this.ask = ask;
    this.size = texts.length;
  }

  /** Encode a text whose ids the kernel has sent. @param {string} text */
  encode(text) {
    const ids = this.learned.get(text);
    if (!ids) throw new Error("Python has not read this text yet");
    return ids;
  }

  /** Request the encodings of texts that are not known yet; return whether there were any. @param {string[]} texts */
  async preloadEncodings(texts) {
    const unread = [...new Set(texts)].filter((text) => !this.learned.has(text));
    if (!unread.length) return false;
    const ids = await this.ask(unread);
    unread.forEach((text, i) => this.learned.set(text, ids[i]));
    for (const [oldest] of this.learned) {
      if (this.learned.size <= Math.max(MAX_TEXTS, texts.length)) break;
      this.learned.delete(oldest);
    }
    return true;
  }

  /** @param {Iterable<number>} ids */
  decode(ids) {
    return fromBytes(knownIds(ids, this.size).flatMap((id) => this.bytes[id] ?? [...toBytes(this.texts[id])]));
  }

  /** @param {Iterable<number>} ids */
  tokens(ids) {
    return knownIds(ids, this.size).map((id) => {
      if (Object.hasOwn(this.names, id)) return this.names[id];
      return Object.hasOwn(this.bytes, id) ? hexadecimal(this.bytes[id]) : visibleToken(this.texts[id]);
    });
  }
}

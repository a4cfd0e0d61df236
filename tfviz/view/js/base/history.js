// Undo and redo of the reader's choices, and functions that write these choices into a link and read them from one.

/** @import { Choices } from "../types.js" */

const TYPING_PAUSE = 800; // milliseconds; changes of one choice within them are one step of the history

/** A record of changes to a store, with undo and redo. */
export class UndoHistory {
  /** @type {string[]} */
  past = [];
  /** @type {string[]} */
  future = [];
  grouped = false;
  restoring = false;
  changedAt = -Infinity;
  lastNames = "";

  /**
   * @param {Choices<any>} store
   * @param {string[]} names the choices that undo restores; others, such as the cursor, are ignored
   * @param {() => void} moved called when undo or redo becomes possible or impossible
   */
  constructor(store, names, moved) {
    this.store = store;
    this.names = names;
    this.onChange = moved;
    this.first = this.now;
    this.last = this.first;
    this.close = store.on(() => this.record());
  }

  get now() {
    return JSON.stringify(this.names.map((name) => this.store.get(name)));
  }

  record() {
    const { now, last } = this;
    if (this.restoring || now === last) return;
    const changed = this.changedNames(last, now);
    const soon = performance.now() - this.changedAt < TYPING_PAUSE && changed === this.lastNames;
    if (!this.grouped && !soon) this.past.push(last);
    this.future = [];
    this.changedAt = performance.now();
    this.lastNames = changed;
    this.last = now;
    this.onChange();
  }

  /**
   * Name the choices that differ between two states.
   * @param {string} before
   * @param {string} after
   */
  changedNames(before, after) {
    const [left, right] = [JSON.parse(before), JSON.parse(after)];
    return this.names.filter((_, i) => JSON.stringify(left[i]) !== JSON.stringify(right[i])).join(" ");
  }

  /** Run an action as one step: one undo takes back all that it changes. @param {() => any} action */
  async group(action) {
    if (this.grouped) return action();
    const before = this.last;
    this.grouped = true;
    try {
      return await action();
    } finally {
      this.grouped = false;
      this.changedAt = -Infinity;
      if (this.now !== before) this.past.push(before);
      this.onChange();
    }
  }

  undo() {
    this.step(this.past, this.future);
  }

  redo() {
    this.step(this.future, this.past);
  }

  /**
   * @param {string[]} from
   * @param {string[]} to
   */
  step(from, to) {
    const state = from.pop();
    if (state === undefined) return;
    to.push(this.last);
    this.restore(state);
  }

  /** @param {string} state */
  restore(state) {
    const values = JSON.parse(state);
    this.restoring = true;
    this.store.set(Object.fromEntries(this.names.map((name, i) => [name, values[i]])));
    this.restoring = false;
    this.last = this.now;
    this.changedAt = -Infinity;
    this.onChange();
  }
}

/**
 * Write the choices that differ from the first state, for the part of an address after `#`.
 * @param {UndoHistory} history
 */
export function addressOf({ first, now, names }) {
  const [before, after] = [JSON.parse(first), JSON.parse(now)];
  const changed = names.flatMap((name, i) =>
    JSON.stringify(before[i]) === JSON.stringify(after[i]) ? [] : [[name, after[i]]],
  );
  return changed.length ? encodeURIComponent(JSON.stringify(Object.fromEntries(changed))) : "";
}

/**
 * Read the choices of these names from an address; none if it cannot be read.
 * @param {string} text
 * @param {Record<string, any>} state the current values, whose types the new ones must have
 * @returns {Record<string, any>}
 */
export function choicesOf(text, state) {
  try {
    const entries = Object.entries(JSON.parse(decodeURIComponent(text)));
    return Object.fromEntries(entries.filter(([name, value]) => name in state && sameKind(value, state[name])));
  } catch {
    return {};
  }
}

/** @type {(value: any, like: any) => boolean} */
const sameKind = (value, like) =>
  like === null || value === null || (typeof value === typeof like && Array.isArray(value) === Array.isArray(like));

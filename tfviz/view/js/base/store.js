// A store of the reader's choices with the methods `get`, `set` and `on`, as a widget's model has them, so that a view
// works with either.

/** @import { Choices } from "../types.js" */

/**
 * An observable set of named values that is held in the page.
 * @template {object} State
 * @implements {Choices<State>}
 */
export class Store {
  /** @param {State} values */
  constructor(values) {
    this.values = { ...values };
    /** @type {Set<() => void>} */
    this.listeners = new Set();
  }

  /** @template {keyof State} Name @param {Name} name */
  get(name) {
    return this.values[name];
  }

  /** @param {Partial<State>} changes */
  set(changes) {
    const changed = changedEntries(this, changes);
    if (!changed.length) return;
    Object.assign(this.values, Object.fromEntries(changed));
    for (const listener of [...this.listeners]) listener();
  }

  /** @param {() => void} listener */
  on(listener) {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}

/**
 * Return the changes that differ from what is chosen.
 * @param {{ get(name: any): any }} store
 * @param {object} changes
 */
export const changedEntries = (store, changes) =>
  Object.entries(changes).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(store.get(name)));

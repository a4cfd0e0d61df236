// A least-recently-used cache.

/** A map of limited size that drops the least recently used entry. @template Value */
export class LruCache {
  /** @type {Map<string, Value>} the least recently used first */
  entries = new Map();

  /** @param {number} capacity how many entries are kept */
  constructor(capacity) {
    this.capacity = capacity;
  }

  /** @param {string} key @returns {Value | undefined} */
  get(key) {
    const value = this.entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  /** @param {string} key @param {Value} value */
  set(key, value) {
    this.entries.delete(key);
    this.entries.set(key, value);
    for (const oldest of this.entries.keys()) {
      if (this.entries.size <= this.capacity) break;
      this.entries.delete(oldest);
    }
    return value;
  }

  /** Return the entry of a key, made if it is missing. @param {string} key @param {() => Value} make */
  getOrMake(key, make) {
    return this.get(key) ?? this.set(key, make());
  }
}

// What the reader has chosen. A widget's model has the same three verbs, so that either can stand behind a view.

export class Store {
  constructor(values) {
    this.values = { ...values };
    this.listeners = new Set();
  }

  get(name) {
    return this.values[name];
  }

  set(changes) {
    const changed = Object.entries(changes).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(this.values[name]),
    );
    if (!changed.length) return;
    Object.assign(this.values, Object.fromEntries(changed));
    for (const listener of [...this.listeners]) listener();
  }

  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

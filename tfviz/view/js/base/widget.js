// A function that makes an anywidget widget of a view, and a store over the traits of the widget's model.

import { KernelClient } from "./kernel-client.js";
import { changedEntries } from "./store.js";

/** @import { Choices } from "../types.js" */

/** A store over some traits of a widget's model, which Python may read, set and observe. @implements {Choices<any>} */
export class TraitStore {
  /**
   * @param {any} model anywidget's
   * @param {string[]} traits
   */
  constructor(model, traits) {
    this.model = model;
    this.traits = traits;
  }

  /** @param {any} name @returns {any} */
  get(name) {
    return this.model.get(name);
  }

  /** @param {Record<string, any>} changes */
  set(changes) {
    const changed = changedEntries(this.model, changes);
    for (const [name, value] of changed) this.model.set(name, value);
    if (changed.length) this.model.save_changes();
  }

  /** @param {() => void} listener */
  on(listener) {
    for (const name of this.traits) this.model.on(`change:${name}`, listener);
    return () => this.traits.forEach((name) => this.model.off(`change:${name}`, listener));
  }
}

/**
 * Make a widget in the form that anywidget expects.
 * @param {(host: HTMLElement, model: any, kernel: KernelClient) => any} show gives a view with announce(text) and close()
 */
export const widget = (show) => ({
  /** @param {{ model: any, el: HTMLElement }} widget */
  render({ model, el }) {
    const host = document.createElement("div");
    host.className = "tfviz";
    el.append(host);
    /** @type {any} */
    let view = null;
    const kernel = new KernelClient(model, (text) => view?.frame.announce(text));
    view = show(host, model, kernel);
    return () => {
      view.close();
      kernel.close();
      host.remove();
    };
  },
});

// How the next token is drawn: temperature, top-k, top-p.

import { slider } from "../base/elements.js";
import { fixed } from "../base/numbers.js";

export class Knobs {
  // size: tokens of the vocabulary
  constructor(store, size) {
    this.store = store;
    const [temperature, topK, topP] = this.values;
    const knob = (name, key, given) =>
      slider(name, { value: store.get(key), choose: (value) => store.set({ [key]: value }), ...given });
    const most = Math.min(size, Math.max(50, topK));
    this.sliders = {
      temperature: knob("Temperature", "temperature", {
        min: 0,
        max: Math.max(3, temperature),
        step: 0.05,
        text: (t) => fixed(t, 2),
      }),
      top_k: knob("Top-k", "top_k", { min: 0, max: most, text: (k) => (k ? String(k) : "all") }),
      top_p: knob("Top-p", "top_p", {
        min: Math.min(0.05, topP),
        max: 1,
        step: 0.05,
        text: (p) => (p < 1 ? fixed(p, 2) : "all"),
      }),
    };
  }

  get values() {
    return ["temperature", "top_k", "top_p"].map((name) => this.store.get(name));
  }

  get elements() {
    return Object.values(this.sliders).map(({ element }) => element);
  }

  show() {
    for (const [name, knob] of Object.entries(this.sliders)) knob.show(this.store.get(name));
  }

  // As `probabilities` takes them.
  get sampler() {
    const [temperature, topK, topP] = this.values;
    return { temperature, topK: topK || null, topP: topP < 1 ? topP : null };
  }
}

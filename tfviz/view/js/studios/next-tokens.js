// The likeliest next tokens, as bars to press, as numbers and as a drawing.

import { Grid, OPEN } from "../base/grid.js";
import { h } from "../base/elements.js";
import { percent } from "../base/numbers.js";
import { quoted } from "../base/pen.js";
import { lastOf } from "./reading.js";
import { probabilities } from "./sampler.js";
import { bars } from "./studio.js";

const SHOWN = 12;

export class NextTokens {
  found = [];
  changed = false;

  constructor(vocab, take) {
    this.vocab = vocab;
    this.take = take;
    this.element = h("div", { class: "shares", role: "group", "aria-label": "Next token: press one to take it" });
  }

  // answer: as `TextReader` gives it; sampler: temperature, topK, topP
  show({ logits, size, whole }, sampler) {
    const shares = probabilities(lastOf(logits, size), sampler);
    const others = whole && probabilities(lastOf(whole, size), sampler);
    const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a] || a - b).slice(0, SHOWN);
    this.changed = Boolean(whole);
    this.found = order.map((id) => ({
      id,
      word: this.vocab.words([id])[0],
      share: shares[id],
      other: others ? others[id] : null,
    }));
    const { activeElement } = this.element.getRootNode();
    const focused = [...this.element.querySelectorAll("button")].indexOf(activeElement);
    const said = (other) => (other === null ? "take it" : `take it; with all heads on ${percent(other)}`);
    this.element.replaceChildren(
      h("span", { class: "soft" }, this.changed ? "Next token; the line: with all heads on" : "Next token"),
      ...bars(
        this.found.map(({ id, word, share, other }) => ({
          name: quoted(word, 24),
          share,
          other,
          title: said(other),
          onclick: () => this.take(id),
        })),
      ),
    );
    if (focused >= 0)
      (this.element.querySelectorAll("button")[focused] ?? this.element.querySelector("button"))?.focus();
  }

  get panels() {
    const cols = this.changed ? ["heads off", "all on"] : ["probability"];
    const values = this.found.flatMap(({ share, other }) => (this.changed ? [share, other] : [share]));
    const rows = this.found.map(({ word }) => word);
    const grid = Grid.of(rows, cols, Float32Array.from(values), new Uint8Array(values.length).fill(OPEN), {
      scale: "linear",
    });
    return [{ name: "", grid, axes: ["next token", ""] }];
  }

  drawing(theme) {
    const most = Math.max(...this.found.flatMap(({ share, other }) => [share, other ?? 0]), 1e-9);
    const long = (share) => (220 * share) / most;
    return {
      width: 420,
      height: 22 * this.found.length + 8,
      draw: (pen) =>
        this.found.forEach(({ word, share, other }, i) => {
          const y = 22 * i + 12;
          pen.text(0, y, quoted(word, 16), { fill: theme.ink, size: 12 });
          pen.rect(130, y - 7, Math.max(1, long(share)), 14, { fill: theme.ramp });
          if (other !== null) pen.rect(129 + long(other), y - 9, 2, 18, { fill: theme.mark });
          pen.text(360, y, percent(share), { fill: theme.ink, size: 12 });
        }),
    };
  }
}

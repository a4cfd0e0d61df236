// What all studios share: a frame, an engine with the model's programs, its vocabulary, heads to switch off, and the
// view of heads inside.

import { percent } from "../base/numbers.js";
import { Engine } from "../engine/client.js";
import { Explorer } from "../stages/explorer.js";
import { Frame } from "../controls/frame.js";
import { h } from "../base/elements.js";
import { headsOf, CapturedMaps, partsOf } from "./captured-maps.js";
import { label } from "../base/pen.js";
import { table } from "../controls/table.js";
import { vocabulary } from "../text/vocabulary.js";

export class Studio {
  /** @abstract @returns {string[][]} each key, and what it does */
  get keys() {
    return [];
  }

  /** @abstract @returns {import("../types.d.ts").Drawing | null} */
  get drawing() {
    return null;
  }

  /** @abstract make what is inside the frame; called by the constructor */
  build() {}

  /** @abstract ask for what is chosen now, and show it */
  async refresh() {}

  /** @abstract @returns {{ name: string, grid: any, axes: string[] }[] | null} */
  panels() {
    return null;
  }

  tables() {
    return (this.panels() ?? []).map(table);
  }

  constructor(host, source, store, options) {
    const described = source.document;
    this.described = described;
    this.store = store;
    this.options = options;
    this.vocabularies = described.vocabularies.map(options.vocabulary ?? vocabulary);
    this.frame = new Frame(host, described, store, {
      ...options,
      keys: this.keys,
      shown: () => this.panels(),
      drawing: () => this.drawing,
      tables: () => this.tables(),
      redraw: () => this.refresh(),
    });
    this.frame.zooms = false;
    this.frame.body.classList.add("studio");
    this.live = new CapturedMaps({ title: "", axes: described.axes ?? ["query", "key"] });
    this.chips = h("div", { class: "heads-off", role: "group", "aria-label": "Heads: press to switch one off" });
    this.inner = h("div", { class: "inner" });
    this.data = source.data;
    this.start();
    this.build();
    // A worker lives until it is told to stop, whatever becomes of its view: one that is off the page has none.
    const watcher = new ResizeObserver(() => host.isConnected || this.rest());
    watcher.observe(host);
    const end = this.frame.open();
    this.frame.place.before(this.frame.status); // what is said is read beside what was typed
    this.close = () => {
      watcher.disconnect();
      this.explorer?.close();
      this.rest();
      end();
    };
  }

  start() {
    const { described, options } = this;
    this.engine = options.engine?.(described) ?? new Engine(options.worker);
    this.ready = options.engine ? Promise.resolve() : this.engine.load(described.programs, bytesOf(this.data));
    this.ready.catch((error) => this.frame.failed(error));
    this.gone = new Promise((done) => {
      this.leave = () => done(null);
    });
  }

  // Until something is asked again.
  rest() {
    this.engine?.close();
    this.engine = null;
    this.leave();
  }

  get vocab() {
    return this.vocabularies[0];
  }

  // Where Python encodes: whether there was a text that it had not read yet; null if it could not, which is said.
  async learn(vocab, texts) {
    try {
      return vocab.learn ? await vocab.learn(texts) : false;
    } catch (error) {
      this.frame.failed(error);
      return null;
    }
  }

  // The heads that are off, as the engine is told.
  get edits() {
    return this.store.get("off").map(([site, head]) => ({ site, head, do: "zero" }));
  }

  // Ask for what is shown now; null if something else was asked for meanwhile, or it failed, which is then said.
  async run(lane, program, inputs, options) {
    this.going = (this.going ?? 0) + 1;
    this.frame.body.setAttribute("aria-busy", "true");
    try {
      if (!this.engine) this.start();
      const { engine, gone } = this;
      await Promise.race([this.ready, gone]);
      return await Promise.race([engine.latest(lane, program, inputs, options), gone]);
    } catch (error) {
      this.frame.failed(error);
      return null;
    } finally {
      this.going--;
      if (!this.going) this.frame.body.removeAttribute("aria-busy");
    }
  }

  // The maps of a run go to the view of heads. words: (part) -> [words of the rows, words of the columns]
  showMaps(patterns, words) {
    const parts = partsOf(patterns, (site) => this.named(site));
    this.live.renew(parts.map((part) => ({ ...part, rows: words(part)[0], cols: words(part)[1] })));
    if (!parts.length) return;
    if (this.explorer) this.explorer.renew();
    else this.explorer = new Explorer(this.inner, this.live, this.store, { away: "Take the heads away" });
    this.showChips(parts);
  }

  named(site) {
    const found = ["cross", "encoder", "decoder"].filter((word) => site.includes(word));
    return found.at(0) === "cross" ? "cross-attention" : (found.at(0) ?? "attention");
  }

  // A button for each head: pressed while it is off.
  showChips(parts) {
    const sites = parts.flatMap((part) => part.sites.map((site, layer) => [part, site, layer]));
    const key = JSON.stringify(sites.map(([part, site]) => [site, headsOf(part)]));
    if (this.chips.key !== key) {
      this.chips.key = key;
      this.chips.replaceChildren(
        h("span", { class: "soft" }, "Switch off"),
        ...sites.map(([part, site, layer]) =>
          h(
            "span",
            {
              class: "chips",
              role: "group",
              "aria-label": `${parts.length > 1 ? `${part.name}, ` : ""}layer ${layer}`,
            },
            h("span", { class: "soft" }, parts.length > 1 && layer === 0 ? `${part.name} ${layer}` : String(layer)),
            ...Array.from({ length: headsOf(part) }, (_, head) => this.chip(site, layer, head)),
          ),
        ),
        h("button", { type: "button", class: "all-on", onclick: () => this.allOn() }, "all on"),
      );
    }
    this.markChips();
  }

  markChips() {
    const off = new Set(this.store.get("off").map(String));
    for (const chip of this.chips.querySelectorAll(".chip")) {
      chip.setAttribute("aria-pressed", String(off.has(chip.dataset.head)));
      chip.style.setProperty("--head", this.frame.theme.head(Number(chip.textContent)));
    }
    this.chips.querySelector(".all-on")?.toggleAttribute("hidden", off.size === 0);
  }

  allOn() {
    this.store.set({ off: [] });
    this.chips.querySelector(".chip").focus(); // the button goes
  }

  chip(site, layer, head) {
    const onclick = () => {
      const off = this.store.get("off");
      const without = off.filter(([other, number]) => other !== site || number !== head);
      this.store.set({ off: without.length < off.length ? without : [...off, [site, head]] });
    };
    const name = `layer ${layer}, head ${head}: off`;
    return h(
      "button",
      { type: "button", class: "chip", "aria-label": name, title: name, "data-head": `${site},${head}`, onclick },
      String(head),
    );
  }

  // Whether tokens stand apart in a running text, since they do not carry their own spaces.
  get apart() {
    return ["spaces", "pieces"].includes(this.vocab.joiner?.kind);
  }

  // The text of one token, to stand in a running text: as it is where that can be seen, else signs for it.
  piece(id) {
    const text = this.vocab.decode([id]);
    return text && !/[\uFFFD\p{C}]/u.test(text.replace(/\n/g, "")) ? text : label(this.vocab.words([id])[0], 40);
  }

  announce(text) {
    this.frame.announce(text);
  }
}

// A button with a bar behind its text: [{ name, share, other, title, onclick }], `other` a second share to compare with.
// `most`: the share of a whole bar, the largest unless given.
export function bars(rows, most = Math.max(...rows.flatMap(({ share, other }) => [share, other ?? 0]), 1e-9)) {
  return rows.map(({ name, share, other = null, title = "", onclick = null }) => {
    const bar = h("span", { class: "bar", style: `width: ${(100 * share) / most}%` });
    const mark = other === null ? null : h("span", { class: "mark", style: `left: ${(100 * other) / most}%` });
    return h(
      onclick ? "button" : "div",
      { class: "share", title, type: onclick ? "button" : undefined, onclick },
      h("span", { class: "name", dir: "auto" }, name),
      h("span", { class: "track" }, bar, mark),
      h("output", {}, percent(share)),
    );
  });
}

function bytesOf(data) {
  if (typeof data !== "string") return data;
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// A view of how one query's weights are computed. The query is chosen in the text, the head in menus; a key and a
// dimension are read under the pointer.

import { chartCanvas, h, select, shadeElement } from "../base/elements.js";
import { ARROW_STEPS, consume, followPointer, hasModifier, pointIn } from "../base/events.js";
import { Grid, ALLOWED } from "../base/grid.js";
import { LatestRequest } from "../base/latest-request.js";
import { clamp, formatNumber } from "../base/numbers.js";
import { CanvasPen } from "../base/pen.js";
import { quoted } from "../base/visible-text.js";
import { Frame } from "../controls/frame.js";
import { table } from "../controls/table.js";
import { NeuronDrawing } from "./neuron-drawing.js";
import { visibleKeys, neuronPanels, neuronParts } from "./neuron-parts.js";
import { wordList } from "./shaded-words.js";

/** @import { NeuronsDocument, NeuronsState } from "../documents.js" */
/** @import { Choices, Drawing, Point, ViewOptions } from "../types.js" */
/** @import { NeuronContent } from "./neuron-drawing.js" */

const MAX_KEYS = 60; // that are drawn
const SHORTCUTS = [
  ["arrows", "in the text: the next word; in the drawing: another key, another dimension"],
  ["Home, End", "in the text: the first word, the last"],
];

export class Neurons {
  /** @type {Point | null} a key that is drawn, and a dimension */
  cursor = null;
  requests = new LatestRequest();

  /**
   * @param {HTMLElement} host
   * @param {import("../base/page-data.js").PageData<NeuronsDocument>} source
   * @param {Choices<NeuronsState>} store
   * @param {ViewOptions} options
   */
  constructor(host, source, store, options) {
    this.source = source;
    this.store = store;
    this.viewDocument = source.viewDocument;
    this.frame = new Frame(host, source.viewDocument, store, {
      ...options,
      shortcuts: SHORTCUTS,
      grids: () => this.panels,
      drawing: () => this.drawing,
      tables: () => this.panels.map(table),
      redraw: () => void this.refresh(),
    });
    /** @type {NeuronContent | null} */
    this.content = null;
    this.neurons = new NeuronDrawing(this.frame.theme);
    this.canvas = chartCanvas("Query, keys and their products: arrows move over keys and dimensions");
    const { rows, layers } = this.viewDocument;
    const { element, spans } = wordList(rows, "the query: choose a word", {
      choose: (index) => store.set({ query: clamp(index, 0, rows.length - 1) }),
      hover: true,
    });
    this.spans = spans;
    this.note = h("p", { class: "muted" });
    this.stage = h("div", { class: "stage neurons" }, element, this.canvas, this.note);
    this.layerChoice = this.choice("Layer", layers.length, "layer");
    this.headChoice = this.choice("Head", layers[0].queries.length, "head");
    this.frame.body.append(h("div", { class: "controls" }, this.layerChoice.element, this.headChoice.element));
    this.listenToCanvas();
    const end = this.frame.open();
    this.close = () => {
      this.requests.end();
      end();
    };
  }

  /** @param {string} name @param {number} count @param {"layer" | "head"} member */
  choice(name, count, member) {
    const numbers = Array.from({ length: count }, (_, i) => /** @type {[number, string]} */ ([i, String(i)]));
    return select(name, numbers, this.store.get(member), (at) => this.store.set({ [member]: at }));
  }

  listenToCanvas() {
    const { canvas, neurons } = this;
    const point = (/** @type {Point | null} */ cell) => {
      this.cursor = cell;
      this.read();
      this.paint();
    };
    followPointer(
      canvas,
      (event) => point(neurons.cellAt(...pointIn(canvas, event))),
      () => point(null),
    );
    canvas.onkeydown = (event) => {
      const step = ARROW_STEPS[event.key];
      if (!step || hasModifier(event) || !this.content) return;
      const { keys, parts } = this.content;
      const [row, dimension] = this.cursor ?? [0, -1];
      const moved = this.cursor ? step : [0, 0];
      point([clamp(row + moved[0], 0, keys.length - 1), clamp(dimension + moved[1], -1, parts.dim - 1)]);
      consume(event);
    };
    canvas.onblur = () => point(null);
  }

  get query() {
    return clamp(this.store.get("query"), 0, this.viewDocument.rows.length - 1);
  }

  /** The layer and the head that are chosen, of those there are. */
  get address() {
    const { layers } = this.viewDocument;
    const layer = clamp(this.store.get("layer"), 0, layers.length - 1);
    return { layer, head: clamp(this.store.get("head"), 0, layers[layer].queries.length - 1) };
  }

  /** Return what a head multiplies for a query. @param {number} query @returns {Promise<NeuronContent>} */
  async contentOf(query) {
    const { source, viewDocument } = this;
    const { rows, columns } = viewDocument;
    const { layer, head } = this.address;
    const { dim, scale, queries, keys, biases, masks } = viewDocument.layers[layer];
    const group = Math.floor((head * keys.length) / queries.length);
    const numbers = (/** @type {import("../documents.js").ByteRange} */ piece) =>
      source.cached(`${piece}`, async () => source.numbers(piece));
    const bias = biases[head];
    const [asked, answering, added, state] = await Promise.all([
      numbers(queries[head]),
      numbers(keys[group]),
      bias && numbers(bias),
      source.mask(masks[head], rows.length * columns.length),
    ]);
    const ofRow = (/** @type {any} */ all) => all.subarray(query * columns.length, (query + 1) * columns.length);
    const vectors = {
      query: asked.subarray(query * dim, (query + 1) * dim),
      keys: answering,
      scale,
      bias: added && ofRow(added),
      state: ofRow(state),
    };
    const parts = neuronParts(vectors);
    return { vectors, parts, keys: visibleKeys(parts, MAX_KEYS), words: columns, word: rows[query] };
  }

  async refresh() {
    const isCurrent = this.requests.begin();
    const content = await this.contentOf(this.query);
    if (!isCurrent()) return;
    this.content = content;
    const { layer, head } = this.address;
    this.layerChoice.show(layer);
    this.headChoice.show(head);
    this.shadeWords(content);
    const { length } = content.keys;
    this.note.textContent =
      length < content.words.length ? `the ${length} keys with the largest weights; CSV has all` : "";
    this.frame.showStage(this.stage, `layer ${layer}, head ${head}`);
    this.neurons.layout(content, this.frame.width);
    if (this.cursor && this.cursor[0] >= length) this.cursor = null;
    this.read();
    this.paint();
    this.frame.updateTable();
  }

  /** Mark the query in the text; where the keys are the same text, its words are shaded by their weights. @param {NeuronContent} content */
  shadeWords({ parts, words }) {
    const { rows } = this.viewDocument;
    const { theme } = this.frame;
    const same = rows.length === words.length && rows.every((word, i) => word === words[i]);
    const grid = Grid.of([""], words, parts.weights, new Uint8Array(words.length));
    this.spans.forEach((span, i) => {
      const shade = same ? theme.shadeOfText(grid, grid.codes[i]) : null;
      shadeElement(span, shade);
      span.classList.toggle("picked", i === this.query);
      span.setAttribute("aria-selected", String(i === this.query));
      span.tabIndex = i === this.query ? 0 : -1;
    });
  }

  /** Say what is under the cursor, or where the query looks most. */
  read() {
    if (this.content) this.frame.announce(this.reading(this.content));
  }

  /** @param {NeuronContent} content */
  reading({ vectors, parts, keys, words, word }) {
    const { sums, scores, weights, products, dim } = parts;
    const best = weights.indexOf(Math.max(...weights));
    const key = this.cursor ? keys[this.cursor[0]] : best;
    const names = `query ${quoted(word)}, key ${quoted(words[key])}: `;
    const dimension = this.cursor?.[1] ?? -1;
    if (dimension >= 0) {
      const [q, k] = [vectors.query[dimension], vectors.keys[key * dim + dimension]];
      return `${names}dimension ${dimension}: ${formatNumber(q, 3)} × ${formatNumber(k, 3)} = ${formatNumber(products[key * dim + dimension], 3)}`;
    }
    if (vectors.state[key] !== ALLOWED) return `${names}may not look`;
    const bias = vectors.bias ? ` + ${formatNumber(vectors.bias[key], 3)}` : "";
    const sum = `${formatNumber(sums[key], 3)} × ${formatNumber(vectors.scale, 3)}${bias}`;
    return `${names}${sum} = ${formatNumber(scores[key], 3)}, weight ${formatNumber(weights[key])}`;
  }

  paint() {
    const { neurons, canvas } = this;
    if (this.content) neurons.draw(new CanvasPen(canvas, neurons.width, neurons.height), this.cursor);
  }

  get panels() {
    return this.content
      ? neuronPanels(this.content.vectors, this.content.parts, this.content.words, this.content.word)
      : [];
  }

  /** @returns {Drawing} */
  get drawing() {
    const { width, height } = this.neurons;
    return { width, height, draw: (pen) => this.neurons.draw(pen, null) };
  }
}

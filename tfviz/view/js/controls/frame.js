// What every view stands in: title, controls, stage, a line that reads the cursor, what can be taken away, the table twin.

import { h } from "../base/elements.js";
import { download, png, svg } from "./export.js";
import { csvs } from "./table.js";
import { Theme } from "../base/theme.js";
import spec from "../base/spec.json" with { type: "json" };
import CSS from "./frame.css";

export class Frame {
  /** @type {HTMLElement | undefined} */
  zoomButtons;

  // options: { page() -> Blob, keys, shown() -> [{ name, grid, axes }], drawing(), tables(), redraw(), away }; without
  // `page` it is a part of a view, and `away` says what can be taken away here
  constructor(host, document, store, options) {
    const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    this.host = host;
    this.document = document;
    this.store = store;
    this.options = options;
    this.theme = new Theme(host, spec.themes);
    host.dataset.lmSuppressShortcuts = "true"; // in JupyterLab, keys pressed here are not commands
    this.title = h("h3");
    this.subject = h("span", { class: "subject" });
    this.place = h("div", { class: "place", role: "tabpanel", "aria-label": document.title || "Drawing" });
    this.status = h("p", { class: "status", role: "status" });
    this.twin = h(
      "details",
      { ontoggle: () => this.renewTable() },
      h("summary", {}, "Table"),
      h("div", { class: "twin", tabIndex: 0, role: "region", "aria-label": "Table of what is shown" }),
    );
    this.help = h(
      "details",
      {},
      h("summary", {}, "Keys"),
      h("dl", {}, ...options.keys.flatMap(([key, text]) => [h("dt", {}, key), h("dd", {}, text)])),
    );
    this.body = h("div", { class: "view" }, h("header", {}, this.title, this.subject));
    this.foot = h(
      "footer",
      {},
      this.away(),
      this.twin,
      this.help,
      document.note ? h("p", { class: "note" }, document.note) : null,
    );
    shadow.replaceChildren(h("style", {}, CSS), this.body);
  }

  // Puts the parts together and begins to follow width, colours and choices; returns what ends it.
  open() {
    const { body, options, store } = this;
    const redraw = () => {
      if (this.asked) return;
      this.asked = true; // all that one event changes is drawn once, and before the next frame
      queueMicrotask(() => {
        this.asked = false;
        if (this.closed || !this.wide) return; // it is not laid out, and will be told when it is
        this.restyle();
        options.redraw();
      });
    };
    this.buttons.hidden = !this.zooms;
    body.append(this.place, h("div", { class: "below" }, this.buttons, this.status), this.foot);
    this.restyle();
    const sized = new ResizeObserver(([{ contentRect }]) => {
      const wide = Math.round(contentRect.width);
      if (wide !== this.wide) redraw();
      this.wide = wide;
    });
    sized.observe(this.place);
    // Text colour comes from the page: when its theme changes, so does the colour, and a transition begins.
    body.ontransitionrun = (event) => {
      if (event.target === body) redraw();
    };
    body.ontransitionend = body.ontransitionrun;
    const off = store.on(redraw);
    return () => {
      sized.disconnect();
      off();
      this.closed = true;
      this.host.shadowRoot.replaceChildren();
    };
  }

  // Lock a row or column, or let it go.
  lock(side, index) {
    const locked = this.store.get(side);
    this.store.set({ [side]: locked.includes(index) ? locked.filter((other) => other !== index) : [...locked, index] });
  }

  restyle() {
    const { theme } = this;
    if (!theme.renew()) return;
    const inks = {
      ink: theme.ink,
      soft: theme.soft,
      faint: theme.faint,
      line: theme.line,
      focus: theme.focus,
      mark: theme.mark,
      ramp: theme.ramp,
      page: theme.page,
    };
    for (const [name, value] of Object.entries(inks)) this.body.style.setProperty(`--${name}`, value);
    this.body.classList.toggle("dark", theme.dark);
  }

  // As the browser tells it: to ask would lay out the page at each drawing.
  get width() {
    return Math.max(220, this.wide);
  }

  stage(element, subject) {
    if (this.place.firstChild !== element) this.place.replaceChildren(element);
    this.title.textContent = this.document.title || capital(subject);
    this.subject.textContent = this.document.title ? subject : "";
  }

  announce(text) {
    this.status.textContent = text;
  }

  busy(now) {
    if (now) this.announce("loading this head in full …");
    else if (this.status.textContent.startsWith("loading")) this.announce("");
  }

  failed(error) {
    this.announce(`cannot show this: ${error.message}`);
  }

  renewTable() {
    if (!this.twin.open) return;
    this.twin.lastChild.replaceChildren(...this.options.tables());
  }

  zoom(change) {
    this.zooms = true;
    this.change = change;
  }

  get buttons() {
    this.zoomButtons ??= h(
      "span",
      { class: "zoom", role: "group", "aria-label": "Zoom" },
      ...[
        ["−", "farther", 1 / 1.5],
        ["+", "closer", 1.5],
        ["all", "show all", 0],
      ].map(([text, name, factor]) =>
        h("button", { type: "button", "aria-label": name, title: name, onclick: () => this.change(factor) }, text),
      ),
    );
    return this.zoomButtons;
  }

  away() {
    const named = (ending) =>
      `${
        (this.title.textContent + " " + this.subject.textContent)
          .replace(/[^\p{L}\p{N}]+/gu, "-")
          .replace(/^-|-$/g, "")
          .slice(0, 80) || "view"
      }.${ending}`;
    const kinds = {
      PNG: async () => download(await png(this.titled(), this.theme.page), named("png")),
      SVG: () => download(svg(this.titled(), this.theme.page), named("svg")),
      CSV: () => {
        const panels = this.options.shown();
        if (panels) download(new Blob([csvs(panels)], { type: "text/csv" }), named("csv"));
        else this.announce("open one head first: CSV holds the numbers of one");
      },
      HTML: async () => download(await this.options.page(), named("html")),
    };
    if (!this.options.page) delete kinds.HTML;
    const said = this.options.away ?? "Take away";
    return h(
      "div",
      { class: "away", role: "group", "aria-label": said },
      h("span", {}, said),
      ...Object.entries(kinds).map(([name, take]) =>
        h(
          "button",
          { type: "button", onclick: () => Promise.resolve(take()).catch((error) => this.failed(error)) },
          name,
        ),
      ),
    );
  }

  // What is on the stage, with its title above.
  titled() {
    const { width, height, draw } = this.options.drawing();
    const pad = 12;
    const top = 34;
    const said = [this.title.textContent, this.subject.textContent].filter(Boolean).join(" · ");
    return {
      width: Math.max(width, 240) + 2 * pad,
      height: height + top + pad,
      draw: (pen) => {
        pen.text(pad, 18, said, { fill: this.theme.ink, size: 13, bold: true });
        const from = pen.from.bind(pen);
        pen.from = (x, y) => from(x + pad, y + top);
        pen.from(0, 0);
        draw(pen);
      },
    };
  }
}

// A site's name is left as it is.
const capital = (text) => text.replace(/^\p{Ll}(?=\p{L}*(?:[\s,]|$))/u, (letter) => letter.toUpperCase());

// The frame around each view: title, controls, stage, status line, menus of shortcuts and downloads, table of the values
// shown.

import { button, h } from "../base/elements.js";
import { consume } from "../base/events.js";
import { download, png, svg } from "./export.js";
import { csvs } from "./table.js";
import { LOCKS } from "../base/locks.js";
import { Theme } from "../base/theme.js";
import spec from "../base/spec.json" with { type: "json" };
import CSS from "./frame.css";

/** @import { Grid } from "../base/grid.js" */
/** @import { Choices, Drawing, GridPanel, Side, ViewOptions } from "../types.js" */
/**
 * @typedef {ViewOptions & {
 *   shortcuts: string[][],
 *   grids(): GridPanel<Grid>[] | null | undefined,
 *   drawing(): Drawing | null,
 *   tables(): Node[],
 *   redraw(): void,
 * }} FrameOptions without `page` the frame is part of a larger view
 */

/** The frame of a view, in a shadow root of its host element. */
export class Frame {
  /** @type {HTMLElement | undefined} */
  zoomButtons;
  /** @type {((factor: number) => void) | undefined} */
  onZoom;
  hasZoom = false;
  /** The size of what is shown in pixels, as the browser reports it. */
  measuredWidth = 0;
  closed = false;
  redrawQueued = false;

  /**
   * @param {HTMLElement} host
   * @param {{ title: string, note?: string }} viewDocument
   * @param {Choices<any>} store
   * @param {FrameOptions} options
   */
  constructor(host, viewDocument, store, options) {
    const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    this.host = host;
    this.viewDocument = viewDocument;
    this.store = store;
    this.options = options;
    this.theme = new Theme(host, spec.themes);
    host.dataset.lmSuppressShortcuts = "true"; // in JupyterLab, keys pressed here are not commands
    // A page with only this view takes its title from it.
    const alone = options.page && host.parentElement?.matches("body, body > main");
    this.title = h(alone ? "h1" : "h3");
    this.caption = h("span", { class: "caption" });
    this.stageBox = h("div", { class: "stage-box", role: "tabpanel", "aria-label": viewDocument.title || "Drawing" });
    this.status = h("p", { class: "status", role: "status" });
    const region = { role: "region", "aria-label": "Table of what is shown" };
    this.tables = h("div", { class: "tables", tabIndex: 0, ...region });
    this.tableDetails = h("details", { ontoggle: () => this.updateTable() }, h("summary", {}, "Table"), this.tables);
    const shortcuts = options.shortcuts.flatMap(([key, text]) => [h("dt", {}, key), h("dd", {}, text)]);
    this.saveMenu = menu("Save", "save-it", h("div", {}, this.exportButtons()));
    this.shortcutsMenu = menu("Shortcuts", "", h("dl", {}, ...shortcuts));
    this.shortcutsMenu.classList.add("shortcuts");
    this.actions = h("span", { class: "actions" }, this.saveMenu, this.shortcutsMenu);
    this.header = h("header", {}, h("div", { class: "titles" }, this.title, this.caption), this.actions);
    this.body = h("div", { class: "view" }, this.header);
    this.foot = h(
      "footer",
      {},
      this.tableDetails,
      viewDocument.note ? h("p", { class: "note" }, viewDocument.note) : null,
    );
    this.closeMenus();
    shadow.replaceChildren(h("style", {}, CSS), this.body);
  }

  /** Close an open menu when something else is pressed, one of its buttons is, or Escape. */
  closeMenus() {
    const menus = [this.saveMenu, this.shortcutsMenu];
    this.body.addEventListener("pointerdown", ({ target }) => {
      for (const each of menus) if (each.open && !each.contains(/** @type {Node} */ (target))) each.open = false;
    });
    const close = (/** @type {HTMLDetailsElement} */ open) => {
      open.open = false;
      open.querySelector("summary")?.focus();
    };
    const closeAfter = (/** @type {Event} */ { target }) => {
      if (!(/** @type {Element} */ (target).matches("button"))) return;
      close(this.saveMenu);
      this.announce("");
    };
    this.saveMenu.addEventListener("click", closeAfter, true); // before the button says what it did
    this.body.addEventListener("keydown", (event) => {
      const open = menus.find((each) => event.key === "Escape" && each.open);
      if (!open) return;
      close(open);
      event.stopImmediatePropagation();
      consume(event);
    });
  }

  /** Assemble the parts and start to follow width, colours and choices; return the function that ends this. */
  open() {
    const { body, options, store } = this;
    const redraw = () => {
      if (this.redrawQueued) return;
      this.redrawQueued = true; // all that one event changes is drawn once, and before the next frame
      queueMicrotask(() => {
        this.redrawQueued = false;
        if (this.closed || !this.measuredWidth) return; // it is not laid out, and will be told when it is
        this.restyle();
        options.redraw();
      });
    };
    this.zoomGroup.hidden = !this.hasZoom;
    body.append(this.stageBox, h("div", { class: "below" }, this.zoomGroup, this.status), this.foot);
    this.restyle();
    const sized = new ResizeObserver(([{ contentRect }]) => {
      const width = Math.round(contentRect.width);
      if (width !== this.measuredWidth) redraw();
      this.measuredWidth = width;
    });
    sized.observe(this.stageBox);
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
      this.host.shadowRoot?.replaceChildren();
    };
  }

  /**
   * Lock a row or column, or unlock it.
   * @param {Side} side
   * @param {number} index
   */
  lock(side, index) {
    const name = LOCKS[side];
    const locked = this.store.get(name);
    this.store.set({
      [name]: locked.includes(index)
        ? locked.filter((/** @type {number} */ other) => other !== index)
        : [...locked, index],
    });
  }

  restyle() {
    const { theme } = this;
    if (!theme.update()) return;
    for (const name of CSS_COLOURS) this.body.style.setProperty(`--${name}`, theme[name]);
    this.body.classList.toggle("dark", theme.dark);
  }

  /** The width as the browser has reported it; asking for it would lay out the page at each drawing. */
  get width() {
    return Math.max(220, this.measuredWidth);
  }

  /** @param {HTMLElement} element @param {string} caption */
  showStage(element, caption) {
    if (this.stageBox.firstChild !== element) this.stageBox.replaceChildren(element);
    this.title.textContent = this.viewDocument.title || capitalTitle(caption);
    const repeats = caption.toLowerCase() === this.title.textContent?.toLowerCase();
    this.caption.textContent = this.viewDocument.title && !repeats ? caption : "";
  }

  /** @param {string} text */
  announce(text) {
    this.status.textContent = text;
  }

  /** @param {boolean} now */
  showLoading(now) {
    if (now) this.announce("loading this head in full …");
    else if (this.status.textContent.startsWith("loading")) this.announce("");
  }

  /** @param {Error} error */
  showError(error) {
    this.announce(`cannot show this: ${error.message}`);
  }

  updateTable() {
    if (!this.tableDetails.open) return;
    this.tables.replaceChildren(...this.options.tables());
  }

  /** @param {(factor: number) => void} change */
  enableZoom(change) {
    this.hasZoom = true;
    this.onZoom = change;
  }

  /** @returns {HTMLElement} */
  get zoomGroup() {
    this.zoomButtons ??= h(
      "span",
      { class: "zoom", role: "group", "aria-label": "Zoom" },
      ...[
        ["−", "farther", 1 / 1.5],
        ["+", "closer", 1.5],
        ["all", "show all", 0],
      ].map(([text, name, factor]) =>
        button(String(text), () => this.onZoom?.(Number(factor)), { "aria-label": String(name), title: String(name) }),
      ),
    );
    return this.zoomButtons;
  }

  exportButtons() {
    /** @param {string} ending */
    const fileName = (ending) =>
      `${
        (this.title.textContent + " " + this.caption.textContent)
          .replace(/[^\p{L}\p{N}]+/gu, "-")
          .replace(/^-|-$/g, "")
          .slice(0, 80) || "view"
      }.${ending}`;
    const { page } = this.options;
    /** @type {Record<string, () => any>} */
    const kinds = {
      ...(page && { HTML: async () => download(await page(), fileName("html")) }),
      PNG: async () => download(await png(this.titledDrawing(), this.theme.page), fileName("png")),
      SVG: () => download(svg(this.titledDrawing(), this.theme.page), fileName("svg")),
      CSV: () => {
        const panels = this.options.grids();
        if (panels) download(new Blob([csvs(panels)], { type: "text/csv" }), fileName("csv"));
        else this.announce("open one head first: CSV holds the numbers of one");
      },
    };
    const caption = this.options.saveCaption ?? "Save as";
    return h(
      "div",
      { class: "save-as", role: "group", "aria-label": caption },
      h("span", {}, caption),
      ...Object.entries(kinds).map(([name, take]) =>
        button(name, () => Promise.resolve(take()).catch((error) => this.showError(error)), {
          title: EXPORT_TITLES[name],
        }),
      ),
    );
  }

  /** Return the drawing of what is on the stage, with its title above. @returns {Drawing} */
  titledDrawing() {
    const { width, height, draw } = this.options.drawing() ?? EMPTY_PICTURE;
    const pad = 12;
    const top = 34;
    const caption = [this.title.textContent, this.caption.textContent].filter(Boolean).join(" · ");
    return {
      width: Math.max(width, 240, LETTER_WIDTH * caption.length) + 2 * pad,
      height: height + top + pad,
      draw: (pen) => {
        pen.text(pad, 18, caption, { fill: this.theme.ink, size: 13, bold: true });
        pen.drawAt(pad, top, () => draw(pen));
      },
    };
  }
}

/** A button that opens a menu below it. @param {string} name @param {string} kind @param {HTMLElement} content */
const menu = (name, kind, content) =>
  h("details", { class: "menu" }, h("summary", { class: `top-button ${kind}` }, name), content);

/** @type {Record<string, string>} */
const EXPORT_TITLES = {
  HTML: "this view as a page, to send to someone",
  PNG: "the picture, as pixels",
  SVG: "the picture, to be scaled",
  CSV: "the numbers",
};

// Colours of the theme that the style sheets use, as --ink and so on.
/** @type {("ink" | "soft" | "faint" | "line" | "focus" | "ramp" | "prediction" | "high" | "low" | "page")[]} */
const CSS_COLOURS = ["ink", "soft", "faint", "line", "focus", "ramp", "prediction", "high", "low", "page"];
const LETTER_WIDTH = 7.6; // average pixels of a bold letter in a caption
/** @type {Drawing} */
const EMPTY_PICTURE = { width: 0, height: 0, draw: () => {} };

/** Capitalize a title, unless it begins with the name of a site. @param {string} text */
const capitalTitle = (text) => text.replace(/^\p{Ll}(?=\p{L}*(?:[\s,]|$))/u, (letter) => letter.toUpperCase());

// A text field in which each token is shaded. The token at the caret or under the pointer is reported.

import { h } from "../../base/elements.js";
import { hasModifier } from "../../base/events.js";
import { joinPresent } from "../small-elements.js";

/**
 * @typedef {object} Token
 * @property {string} text its exact text
 * @property {string} [kind] a class: "written", "struck", "hidden" ...
 * @property {string} [sign] the sign shown for an invisible token
 * @property {string} [title]
 * @property {number} [bar] the height, 0 to 1, of a bar under it; left as it is if there is none
 * @property {number | null} [line] the height of a line over the bar; null: none
 * @typedef {object} Handlers
 * @property {(text: string) => void} typed the reader has changed the text
 * @property {(index: number | null) => void} point the token at the pointer or the caret
 * @property {(index: number, event: MouseEvent) => void} [press] a token was clicked
 */

/** An editable text over shaded tokens. */
export class TextEditor {
  /** @type {import("./look-arcs.js").ShadedPiece[]} the pieces that are shaded */
  shadedPieces = [];
  /** @type {Token[]} */
  tokens = [];
  /** @type {HTMLElement[]} */
  spans = [];
  composing = false;
  pressed = false;
  /** @type {number | undefined} where the caret will stand */
  nextCaret;

  /**
   * @param {string} name
   * @param {Handlers} handlers
   */
  constructor(name, handlers) {
    this.handlers = handlers;
    this.end = h("br");
    this.element = h("div", {
      class: "editor",
      role: "textbox",
      "aria-multiline": "true",
      "aria-label": name,
      dir: "auto",
      spellcheck: false,
      tabIndex: 0,
    });
    // Plain text only; in browsers without this mode, formats are removed from pasted text below.
    this.element.setAttribute("contenteditable", "plaintext-only");
    if (this.element.contentEditable !== "plaintext-only") this.element.setAttribute("contenteditable", "true");
    this.listen();
  }

  listen() {
    const { element, handlers } = this;
    /** @type {Record<string, (event: any) => unknown>} */
    const listeners = {
      compositionstart: () => (this.composing = true),
      compositionend: () => {
        this.composing = false;
        this.read();
      },
      input: () => this.composing || this.read(),
      beforeinput: (event) => this.editBefore(event),
      keydown: (event) => hasModifier(event) || event.stopPropagation(), // letters are not shortcuts while one types
      // A browser puts the caret before the first letter when the field is reached by Tab; one writes on at its end.
      pointerdown: () => (this.pressed = true),
      pointerup: () => (this.pressed = false),
      focus: () => this.pressed || this.spans.length === 0 || this.putCaret(this.text.length),
      keyup: () => this.caretMoved(),
      pointermove: ({ target }) => this.pointerMoved(target),
      pointerleave: () => handlers.point(this.indexAtCaret()),
      click: (event) => {
        this.caretMoved();
        const index = this.tokenIndexOf(event.target);
        if (index !== null) handlers.press?.(index, event);
      },
    };
    for (const [type, listener] of Object.entries(listeners)) element.addEventListener(type, listener);
  }

  get text() {
    return this.tokens.map(({ text }) => text).join("");
  }

  /**
   * @param {Token[]} tokens
   * @param {((index: number) => { background: string, ink: string, code: number } | null) | null} shade null: the
   *   shades and the outline stay
   * @param {number | null} from the query
   */
  show(tokens, shade, from) {
    if (this.composing) return;
    if (!this.isShowing(tokens)) this.render(tokens);
    this.shadedPieces = [];
    this.tokens = tokens;
    this.spans.forEach((span, index) => {
      const { kind = "", title = "", sign = "" } = tokens[index];
      const isFrom = shade ? index === from : span.classList.contains("from");
      span.className = joinPresent(["token", kind, isFrom && "from"]);
      if (shade) this.shade(span, shade(index));
      this.drawBar(span, tokens[index]);
      if (span.title !== title) span.title = title;
      if (sign) span.dataset.sign = sign;
      else delete span.dataset.sign;
    });
  }

  /** @param {HTMLElement} span @param {{ background: string, ink: string, code: number } | null} colours */
  shade(span, colours) {
    if (colours) this.shadedPieces.push({ element: span, code: colours.code });
    span.style.backgroundColor = colours?.background ?? "";
    span.style.color = colours?.ink ?? "";
  }

  /** Return the element of a token; null without one. @param {number | null} index */
  spanOf(index) {
    return this.spans[index ?? -1] ?? null;
  }

  /** @param {HTMLElement} span @param {Token} token */
  drawBar({ style }, { bar, line = null }) {
    if (bar === undefined) return;
    style.setProperty("--bar", String(bar));
    if (line === null) style.removeProperty("--bar-line");
    else style.setProperty("--bar-line", String(line));
  }

  /** @param {Token[]} tokens */
  isShowing(tokens) {
    const { childNodes } = this.element;
    return (
      this.spans.length === tokens.length &&
      childNodes.length === tokens.length + 1 &&
      tokens.every(({ text }, i) => childNodes[i] === this.spans[i] && this.spans[i].textContent === text)
    );
  }

  /**
   * Make elements for tokens. Elements of unchanged tokens and the caret stay.
   * @param {Token[]} tokens
   */
  render(tokens) {
    const caret = this.caretOffset();
    this.spans = tokens.map(({ text }, i) => {
      const old = this.spans[i];
      const same = old?.childNodes.length === 1 && old.firstChild?.nodeType === 3 && old.textContent === text;
      const span = same ? old : h("span", {}, text);
      span.dataset.index = String(i);
      return span;
    });
    this.element.replaceChildren(...this.spans, this.end); // a last line feed needs something after it
    if (caret !== null) this.putCaret(caret);
  }

  /**
   * Handle edits that browsers do differently or slowly: new lines, formatted text, selections of many tokens.
   * @param {InputEvent} event
   */
  editBefore(event) {
    const [start, end] = this.selection() ?? [this.text.length, this.text.length];
    const text = this.insertedText(event, end > start);
    if (text === undefined || this.composing) return;
    event.preventDefault();
    const now = this.text;
    this.nextCaret = start + text.length;
    this.handlers.typed(now.slice(0, start) + text + now.slice(end));
  }

  /**
   * Return the text that replaces the selection; undefined if the browser's own behaviour is right.
   * @param {InputEvent} event
   * @param {boolean} selected
   * @returns {string | undefined}
   */
  insertedText({ inputType, data, dataTransfer }, selected) {
    if (inputType === "insertParagraph" || inputType === "insertLineBreak") return "\n";
    if (inputType.startsWith("insertFrom")) return dataTransfer?.getData("text/plain") ?? data ?? undefined;
    if (!selected) return undefined;
    if (inputType === "insertText") return data ?? undefined;
    return inputType.startsWith("delete") ? "" : undefined;
  }

  read() {
    this.nextCaret = undefined;
    this.handlers.typed(this.element.textContent);
    this.caretMoved();
  }

  caretMoved() {
    this.handlers.point(this.indexAtCaret());
  }

  /** Return the token before the caret, or null where there is none. */
  indexAtCaret() {
    const caret = this.element.getRootNode() instanceof ShadowRoot ? this.caretOffset() : null;
    if (caret === null) return null;
    let before = 0;
    for (const [index, { text }] of this.tokens.entries()) {
      before += text.length;
      if (before >= caret && caret > 0) return index;
    }
    return this.tokens.length ? 0 : null;
  }

  /** @param {EventTarget | null} target */
  pointerMoved(target) {
    const index = this.tokenIndexOf(target);
    if (index !== null) this.handlers.point(index);
  }

  /** @param {EventTarget | null} target */
  tokenIndexOf(target) {
    const index = /** @type {HTMLElement} */ (target).dataset?.index;
    return index === undefined ? null : Number(index);
  }

  /** Return the position of the caret in the text; null if it is elsewhere. */
  caretOffset() {
    return this.nextCaret ?? this.selection()?.[1] ?? null;
  }

  /** @returns {[start: number, end: number] | null} */
  selection() {
    const root = /** @type {any} */ (this.element.getRootNode());
    if (root.activeElement !== this.element) return null;
    const selection = root.getSelection?.() ?? document.getSelection();
    const [range] = selection.getComposedRanges?.({ shadowRoots: [root] }) ?? [];
    const { startContainer, startOffset, endContainer, endOffset } =
      range ?? (selection.rangeCount ? selection.getRangeAt(0) : {});
    if (!startContainer || !this.element.contains(startContainer)) return null;
    return [this.lettersBefore(startContainer, startOffset), this.lettersBefore(endContainer, endOffset)];
  }

  /**
   * Count the letters before a point in the tree.
   * @param {Node} node
   * @param {number} offset
   */
  lettersBefore(node, offset) {
    const range = document.createRange();
    range.setStart(this.element, 0);
    range.setEnd(node, offset);
    return range.toString().length;
  }

  /**
   * Put the caret at a position of the text.
   * @param {number} caret
   */
  putCaret(caret) {
    this.nextCaret = undefined;
    const root = /** @type {any} */ (this.element.getRootNode());
    const selection = root.getSelection?.() ?? document.getSelection();
    let left = caret;
    for (const span of this.spans) {
      const { length } = String(span.textContent);
      if (left <= length) return selection.collapse(span.firstChild, left);
      left -= length;
    }
    return selection.collapse(this.element, this.spans.length);
  }

  /** Scroll to the end of the text. */
  scrollToEnd() {
    this.element.scrollTop = this.element.scrollHeight;
  }
}

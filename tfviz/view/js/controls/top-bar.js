// What a view that computes has besides the menus of its frame: undo, redo, and a link to share. It also reads the
// reader's choices from the page's address and writes them there.

/** @import { Frame } from "./frame.js" */

import { button } from "../base/elements.js";
import { consume } from "../base/events.js";
import { addressOf, choicesOf, UndoHistory } from "../base/history.js";

/** A bar of buttons and menus for a frame, with the history of the reader's choices. */
export class TopBar {
  /**
   * @param {Frame} frame
   * @param {Record<string, any>} state where the choices begin
   * @param {string[]} names the choices that are undone and shared
   * @param {boolean} addressed the page's address may hold choices
   */
  constructor(frame, state, names, addressed) {
    this.frame = frame;
    const topButton = (/** @type {string} */ words, /** @type {string} */ title, /** @type {() => any} */ onclick) =>
      button(words, onclick, { class: `top-button ${words.toLowerCase()}`, title });
    this.undoButton = topButton("Undo", "take back what you did last (Ctrl+Z)", () => this.history.undo());
    this.redoButton = topButton("Redo", "do it again (Ctrl+Shift+Z)", () => this.history.redo());
    const linkTitle = "the address of this page as it stands now";
    const link = button("Copy link", () => this.copyLink(), { title: linkTitle });
    const { saveMenu, actions } = frame;
    const summary = saveMenu.querySelector("summary");
    summary?.replaceChildren("Share");
    summary?.classList.replace("save-it", "share-it");
    if (addressed) saveMenu.lastElementChild?.prepend(link);
    actions.prepend(this.undoButton, this.redoButton);
    frame.body.addEventListener("keydown", (event) => this.press(event));
    this.history = new UndoHistory(frame.store, names, () => this.markButtons());
    if (addressed) this.readAddress(state);
    this.markButtons();
  }

  close() {
    this.history.close();
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const undoes = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
    if (undoes && event.shiftKey) this.history.redo();
    else if (undoes) this.history.undo();
    else return;
    consume(event);
  }

  markButtons() {
    // A disabled button would lose the focus, also just after it was pressed.
    this.undoButton.setAttribute("aria-disabled", String(!this.history?.past.length));
    this.redoButton.setAttribute("aria-disabled", String(!this.history?.future.length));
  }

  get addressName() {
    return `${this.frame.host.dataset.view ?? "view"}=`;
  }

  /**
   * Read the choices from the page's address, unless its fragment is not this view's.
   * @param {Record<string, any>} state
   */
  readAddress(state) {
    const text = location.hash.slice(1);
    if (text.startsWith(this.addressName)) this.frame.store.set(choicesOf(text.slice(this.addressName.length), state));
  }

  async copyLink() {
    const address = addressOf(this.history);
    const url = new URL(location.href);
    url.hash = address && this.addressName + address;
    try {
      globalThis.history.replaceState(null, "", url);
      await navigator.clipboard.writeText(url.href);
      this.frame.announce(
        url.protocol === "file:"
          ? "The link is copied: it opens this page on this computer. To send it to someone, save the HTML."
          : "The link is copied: it opens this page as it stands now.",
      );
    } catch {
      this.frame.announce("The link is in the address bar: copy it from there.");
    }
  }
}

// A running text whose every token can be chosen, by mouse or keys; it is one stop for the tab key.

import { h } from "../base/elements.js";

export class TokenText {
  constructor(name, choose) {
    Object.assign(this, { choose, count: 0 });
    this.element = h("p", {
      class: "sentence written",
      role: "listbox",
      "aria-label": name,
      dir: "auto",
      tabIndex: -1,
      onclick: ({ target }) => target.dataset.place && choose(Number(target.dataset.place)),
      onkeydown: (event) => this.key(event),
    });
  }

  // tokens: [{ text, fresh }]; chosen: the place of one of them, or undefined; apart: with spaces between them
  show(tokens, chosen, apart = false) {
    const { activeElement } = this.element.getRootNode();
    const focused = this.element.contains(activeElement) ? Number(activeElement.dataset.place) : null;
    const last = tokens.length - 1;
    this.element.classList.toggle("loose", apart);
    this.element.replaceChildren(
      ...tokens.flatMap(({ text, fresh }, place) => {
        const classes = ["word", fresh && "new", place === chosen && "picked"].filter(Boolean).join(" ");
        const selected = String(place === chosen);
        const tabIndex = place === (chosen ?? last) ? 0 : -1;
        const token = h("span", { class: classes, role: "option", "aria-selected": selected, tabIndex }, text.replace(/\n/g, "⏎"));
        token.dataset.place = place;
        return text.includes("\n") ? [token, h("br")] : apart ? [token, " "] : [token];
      }),
    );
    if (focused !== null) this.focus(Math.min(focused, last));
    else if (tokens.length !== this.count) this.element.scrollTop = this.element.scrollHeight; // what is new is in sight
    this.count = tokens.length;
  }

  focus(place) {
    this.element.querySelector(`[data-place="${place}"]`)?.focus();
  }

  key(event) {
    const place = Number(event.target.dataset.place);
    const last = this.count - 1;
    const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (event.altKey || (next === undefined && event.key !== "Enter" && event.key !== " ")) return;
    if (next === undefined) this.choose(place);
    else this.focus(Math.max(0, Math.min(last, next)));
    event.preventDefault();
    event.stopPropagation();
  }
}

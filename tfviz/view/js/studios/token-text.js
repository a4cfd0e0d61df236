// A running text whose every token can be chosen, by mouse or keys; it is one stop for the tab key.

import { h } from "../base/elements.js";

export class TokenText {
  shown = [];

  constructor(name, choose) {
    this.choose = choose;
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

  // tokens: [{ text, fresh }]; chosen: the place of one of them, or undefined; apart: with spaces between them.
  // Tokens that stay are the same elements: a long text is not laid out again for each letter.
  show(tokens, chosen, apart = false) {
    const { activeElement } = this.element.getRootNode();
    const focused = this.element.contains(activeElement) ? Number(activeElement.dataset.place) : null;
    const [last, longer] = [tokens.length - 1, tokens.length !== this.shown.length];
    this.element.classList.toggle("loose", apart);
    tokens.forEach((token, place) => this.put(token, place, apart));
    for (const { nodes } of this.shown.splice(tokens.length)) nodes.forEach((node) => node.remove());
    this.shown.forEach(({ nodes: [span] }, place) => {
      span.classList.toggle("picked", place === chosen);
      span.setAttribute("aria-selected", String(place === chosen));
      span.tabIndex = place === (chosen ?? last) ? 0 : -1;
    });
    if (focused !== null) this.focus(Math.min(focused, last));
    else if (longer) requestAnimationFrame(() => (this.element.scrollTop = this.element.scrollHeight)); // what is new is in sight
  }

  put({ text, fresh }, place, apart) {
    const key = `${fresh} ${apart} ${text}`;
    const old = this.shown[place];
    if (old?.key === key) return;
    const name = text.replace(/\n/g, "⏎");
    const said = name.trim() ? null : "space"; // a screen reader needs a name for what has no letters
    const span = h(
      "span",
      { class: fresh ? "word new" : "word", role: "option", "data-place": place, "aria-label": said },
      name,
    );
    const nodes = text.includes("\n") ? [span, h("br")] : apart ? [span, document.createTextNode(" ")] : [span];
    if (old) old.nodes[0].before(...nodes);
    else this.element.append(...nodes);
    old?.nodes.forEach((node) => node.remove());
    this.shown[place] = { key, nodes };
  }

  focus(place) {
    this.element.querySelector(`[data-place="${place}"]`)?.focus();
  }

  key(event) {
    const place = Number(event.target.dataset.place);
    const last = this.shown.length - 1;
    const next = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: last }[event.key];
    if (event.altKey || (next === undefined && event.key !== "Enter" && event.key !== " ")) return;
    if (next === undefined) this.choose(place);
    else this.focus(Math.max(0, Math.min(last, next)));
    event.preventDefault();
    event.stopPropagation();
  }
}

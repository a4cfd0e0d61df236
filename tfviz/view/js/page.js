// The entry of a page: brings to life every view of this name that is not alive yet, with no kernel behind it.

import { Source } from "./base/data.js";
import { h } from "./base/elements.js";
import { Store } from "./base/store.js";

// Kind: the class that shows it; a page carries the modules of its own kind only.
export function wake(name, Kind) {
  for (const root of document.querySelectorAll(`.tfviz[data-view="${name}"]:not([data-alive])`)) {
    root.dataset.alive = "true";
    const described = JSON.parse(root.querySelector(".tfviz-document").textContent);
    const store = new Store(described.state);
    const source = new Source(described, root.querySelector(".tfviz-data").textContent);
    const script = document.querySelector(`script[data-view="${name}"]`).textContent;
    new Kind(root, source, store, { page: async () => saved(root, store, described, script) });
  }
}

// The view as a page of its own, as it stands now: the same data, the same script, no link.
function saved(root, store, described, script) {
  const page = document.implementation.createHTMLDocument(described.title || "tfviz");
  const clone = page.importNode(root, true);
  clone.removeAttribute("data-alive");
  const state = { ...described, state: { ...described.state, ...store.values } };
  clone.querySelector(".tfviz-document").textContent = JSON.stringify(state).replace(/</g, "\\u003c");
  page.head.prepend(
    h("meta", { charset: "utf-8" }),
    h("meta", { name: "viewport", content: "width=device-width" }),
    h("meta", { name: "color-scheme", content: "light dark" }),
  );
  page.head.append(h("style", {}, PAGE_STYLE));
  page.body.append(clone, h("script", { "data-view": root.dataset.view }, script));
  page.documentElement.lang = "en";
  return new Blob([`<!doctype html>\n${page.documentElement.outerHTML}\n`], { type: "text/html" });
}

// Views in a page, with no kernel behind them.

import { Source } from "./data.js";
import { h } from "./elements.js";
import { Store } from "./store.js";
import PAGE_STYLE from "../../page/page.css";

// Each bundle of this page by its key, as `tfviz/view/page/bundle.py` registers it: a function that gives its exports.
const BUNDLES = (globalThis.tfvizBundles ??= {});

/**
 * Make the function that brings the views of a name to life, those that are not alive yet.
 * @param {Record<string, new (...args: any[]) => object>} kinds the class that shows each kind of view
 * @returns {(name: string, kind: string, keys: string[]) => void} `keys`: this bundle, and that of the view's worker
 */
export const waking = (kinds) => (name, kind, keys) => {
  const views = document.querySelectorAll(`.tfviz[data-view="${name}"]:not([data-alive])`);
  for (const root of /** @type {NodeListOf<HTMLElement>} */ (views)) {
    root.dataset.alive = "true";
    const described = JSON.parse(root.querySelector(".tfviz-document").textContent);
    const store = new Store(described.state);
    const source = new Source(described, root.querySelector(".tfviz-data").textContent);
    const page = async () => saved(root, { ...described, state: { ...described.state, ...store.values } }, keys);
    new kinds[kind](root, source, store, { page, worker: BUNDLES[keys[1]] });
  }
};

// The view as a page of its own, as it stands now: the same data, the same scripts, no link.
function saved(root, described, keys) {
  const page = document.implementation.createHTMLDocument(described.title || "tfviz");
  const clone = page.importNode(root, true);
  clone.removeAttribute("data-alive");
  clone.querySelector(".tfviz-document").textContent = JSON.stringify(described).replace(/</g, "\\u003c");
  page.head.prepend(
    h("meta", { charset: "utf-8" }),
    h("meta", { name: "viewport", content: "width=device-width" }),
    h("meta", { name: "color-scheme", content: "light dark" }),
  );
  page.head.append(h("style", {}, PAGE_STYLE));
  const bundles = keys.map((key) => `(globalThis.tfvizBundles??={})["${key}"]??=${BUNDLES[key]}`);
  const wakes = `tfvizBundles["${keys[0]}"]().wake("${root.dataset.view}","${described.kind}",${JSON.stringify(keys)})`;
  page.body.append(clone, ...[...bundles, wakes].map((script) => h("script", {}, script)));
  page.documentElement.lang = "en";
  return new Blob([`<!doctype html>\n${page.documentElement.outerHTML}\n`], { type: "text/html" });
}

// A function that mounts views in a page that has no kernel.

import { h } from "./elements.js";
import { PageData } from "./page-data.js";
import { Store } from "./store.js";
import PAGE_STYLE from "./page.css";

/** @import { ViewDocument } from "../documents.js" */
/** @import { ViewOptions } from "../types.js" */

/**
 * The bundles of this page by key, as `tfviz/view/page/bundle.py` registers them: functions that return their exports.
 * @type {Record<string, () => any>}
 */
const BUNDLES = /** @type {any} */ (globalThis.tfvizBundles ??= {});

/**
 * Make the function that mounts the views of a name that are not mounted yet.
 * @param {Record<string, new (host: HTMLElement, data: any, store: Store<any>, options: ViewOptions) => object>} kinds the
 *   class that shows each kind of view
 * @returns {(name: string, kind: string, keys: string[]) => void} `keys`: this bundle, and that of the view's worker
 */
export const viewMounter = (kinds) => (name, kind, keys) => {
  const views = document.querySelectorAll(`.tfviz[data-view="${name}"]:not([data-alive])`);
  for (const root of /** @type {NodeListOf<HTMLElement>} */ (views)) {
    root.dataset.alive = "true";
    const viewDocument = JSON.parse(textOf(root, ".tfviz-document"));
    const store = new Store(viewDocument.state);
    const data = new PageData(viewDocument, textOf(root, ".tfviz-data"));
    const page = async () => saved(root, { ...viewDocument, state: { ...viewDocument.state, ...store.values } }, keys);
    new kinds[kind](root, data, store, { page, worker: BUNDLES[keys[1]] });
  }
};

/** @param {HTMLElement} root @param {string} selector */
const textOf = (root, selector) => root.querySelector(selector)?.textContent ?? "";

/**
 * Return the view as a page of its own, as it stands now: the same data and scripts, no link.
 * @param {HTMLElement} root
 * @param {ViewDocument} viewDocument
 * @param {string[]} keys
 */
function saved(root, viewDocument, keys) {
  const page = document.implementation.createHTMLDocument(viewDocument.title || "tfviz");
  const clone = page.importNode(root, true);
  clone.removeAttribute("data-alive");
  const script = /** @type {Element} */ (clone.querySelector(".tfviz-document"));
  script.textContent = JSON.stringify(viewDocument).replace(/</g, "\\u003c");
  page.head.prepend(
    h("meta", { charset: "utf-8" }),
    h("meta", { name: "viewport", content: "width=device-width" }),
    h("meta", { name: "color-scheme", content: "light dark" }),
  );
  page.head.append(h("style", {}, PAGE_STYLE));
  const bundles = keys.map((key) => `(globalThis.tfvizBundles??={})["${key}"]??=${BUNDLES[key]}`);
  const mounts = `tfvizBundles["${keys[0]}"]().mount("${root.dataset.view}","${viewDocument.kind}",${JSON.stringify(keys)})`;
  if (keys.length > 1) page.body.className = "screen"; // what computes takes the whole screen
  page.body.append(clone, ...[...bundles, mounts].map((script) => h("script", {}, script)));
  page.documentElement.lang = "en";
  return new Blob([`<!doctype html>\n${page.documentElement.outerHTML}\n`], { type: "text/html" });
}

// The search of the site: an index of headings and prose, searched in the browser.

import MiniSearch from "minisearch";
import { snippet } from "./snippet.js";

/** @typedef {{ address: string, page: string, heading: string, text: string }} Section */

const SHOWN = 12; // results
const script = /** @type {HTMLScriptElement} */ (document.currentScript);
const root = script.src.slice(0, script.src.lastIndexOf("/") + 1);
const box = /** @type {HTMLElement} */ (document.querySelector(".search"));
const input = /** @type {HTMLInputElement} */ (box.querySelector("input"));
const results = document.createElement("div");
const status = document.createElement("p");
/** @type {Promise<MiniSearch> | undefined} */
let loading;

/** @param {Section[]} sections */
function index(sections) {
  const search = new MiniSearch({
    fields: ["heading", "page", "text"],
    storeFields: ["address", "heading", "page", "text"],
    searchOptions: {
      boost: { heading: 3, page: 0.5 },
      combineWith: "AND",
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    },
  });
  search.addAll(sections.map((section, id) => ({ ...section, id })));
  return search;
}

/** Load the index, once: as a script, since a page opened as a file may not fetch. */
function load() {
  loading ??= new Promise((resolve, reject) => {
    const element = document.createElement("script");
    element.src = `${root}search-index.js`;
    element.onload = () => resolve(index(/** @type {any} */ (globalThis).tfvizSearchIndex));
    element.onerror = () => reject(new Error(`${element.src} cannot be read`));
    document.head.append(element);
  });
  return loading;
}

/** @param {import("minisearch").SearchResult} result */
function link({ address, page, heading, text, queryTerms, terms }) {
  const element = document.createElement("a");
  const title = document.createElement("b");
  const prose = document.createElement("span");
  element.href = root + address;
  title.textContent = heading === page ? page : `${page} › ${heading}`;
  for (const [piece, found] of snippet(text, [...terms, ...queryTerms])) {
    const part = document.createElement(found ? "mark" : "span");
    part.textContent = piece;
    prose.append(found ? part : piece);
  }
  element.append(title, prose);
  return element;
}

/** Show what is found for the words in the field. */
async function show() {
  const query = input.value.trim();
  /** @type {import("minisearch").SearchResult[]} */
  let found = [];
  try {
    found = query ? (await load()).search(query) : [];
    status.textContent = found.length ? `${found.length} found` : `Nothing for “${query}”`;
  } catch (error) {
    status.textContent = /** @type {Error} */ (error).message;
  }
  if (query !== input.value.trim()) return; // another letter was typed meanwhile
  results.replaceChildren(status, ...found.slice(0, SHOWN).map(link));
  results.hidden = !query;
}

/**
 * Move the focus over the results: up from the first leads back to the field.
 *
 * @param {number} step
 */
function move(step) {
  const stops = [input, ...results.querySelectorAll("a")];
  const at = stops.findIndex((stop) => stop === document.activeElement) + step;
  stops[Math.min(Math.max(at, 0), stops.length - 1)].focus();
}

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.key === "Escape") {
    input.focus();
    results.hidden = true;
  } else if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp") move(-1);
  else if (event.key === "Enter" && document.activeElement === input) results.querySelector("a")?.click();
  else return;
  event.preventDefault();
}

/**
 * Focus the field at "/", unless that is written into a field of the page or of a view in it.
 *
 * @param {KeyboardEvent} event
 */
function focusAtSlash(event) {
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  const writing = target.isContentEditable || target.matches?.("input, textarea, select");
  if (event.key !== "/" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || writing) return;
  event.preventDefault();
  input.focus();
  input.select();
}

results.className = "results";
results.hidden = true;
status.setAttribute("role", "status");
box.append(results);
box.classList.add("ready");
box.addEventListener("keydown", press);
box.addEventListener("focusout", (event) => {
  if (!box.contains(/** @type {Node | null} */ (event.relatedTarget))) results.hidden = true;
});
input.addEventListener("focus", () => void load().catch(() => {}));
input.addEventListener("input", show);
document.addEventListener("keydown", focusAtSlash);

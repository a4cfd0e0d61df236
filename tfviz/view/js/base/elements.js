// Functions that make HTML elements and form controls. The controls are native elements, which support keyboard and
// screen reader by themselves.

import { ARROW_STEPS } from "./events.js";

/** @import { Properties } from "../types.js" */

/**
 * Make an element: h("button", { onclick, class: "tool", "aria-label": name }, "text", child). Names that are
 * properties of the element are set as properties, all others as attributes; null, undefined and false leave an attribute out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties<HTMLElementTagNameMap[Tag]>} [properties]
 * @param {(Node | string | null | undefined | false)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, properties = {}, ...children) {
  /** @type {any} */
  const element = document.createElement(/** @type {string} */ (tag));
  for (const [name, value] of Object.entries(/** @type {Record<string, any>} */ (properties))) {
    if (name.startsWith("on") || (name in element && !name.includes("-"))) element[name] = value;
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Make a button.
 * @param {Node | string | null | (Node | string | null)[]} content
 * @param {((event: MouseEvent) => unknown) | null} onclick
 * @param {Properties<HTMLButtonElement>} [properties]
 */
export const button = (content, onclick, properties = {}) =>
  h("button", { type: "button", ...properties, onclick }, ...[content].flat());

/**
 * Make a drop-down list to choose one option from: [[value, text], ...].
 * @template Value
 * @param {string} name
 * @param {(readonly [Value, string])[]} options
 * @param {Value} value
 * @param {(value: Value) => void} choose
 */
export function select(name, options, value, choose) {
  const list = h(
    "select",
    { onchange: () => choose(options[list.selectedIndex][0]) },
    ...options.map(([key, text]) => h("option", { selected: key === value, title: text }, text)),
  );
  const element = h("label", {}, h("span", { title: name }, name), list);
  return {
    element,
    /** @param {Value} now */
    show: (now) => {
      list.selectedIndex = options.findIndex(([key]) => key === now);
    },
  };
}

/**
 * Make a slider for a number, with its value as text.
 * @param {string} name
 * @param {{ min: number, max: number, step?: number, value: number, text?: (value: any) => string, choose: (value: number) => void }} options
 */
export function slider(name, { min, max, step = 1, value, text = String, choose }) {
  const output = h("output", {});
  const input = h("input", {
    type: "range",
    min,
    max,
    step,
    oninput: () => {
      show(Number(input.value));
      choose(Number(input.value));
    },
  });
  /** @param {number} now */
  const show = (now) => {
    input.value = String(now);
    output.value = text(now);
    output.title = output.value;
    input.setAttribute("aria-valuetext", output.value);
  };
  show(value);
  return { element: h("label", { class: "slider" }, h("span", {}, name), input, output), show };
}

/** Make a checkbox. @param {string} name @param {boolean} value @param {(value: boolean) => void} choose */
export function checkbox(name, value, choose) {
  const box = h("input", { type: "checkbox", checked: value, onchange: () => choose(box.checked) });
  return {
    element: h("label", { class: "check" }, box, h("span", {}, name)),
    /** @param {boolean} now */
    show: (now) => {
      box.checked = now;
    },
  };
}

/**
 * Call a function when an element has left the page, such as one that closes a worker, which runs until it is
 * terminated. Return a function that ends this.
 * @param {HTMLElement} element
 * @param {() => void} act
 */
export function whenRemoved(element, act) {
  const watcher = new ResizeObserver(() => element.isConnected || act());
  watcher.observe(element);
  return () => watcher.disconnect();
}

/**
 * Colour a word; null: as it is without a shade.
 * @param {HTMLElement} element
 * @param {{ background: string, ink: string } | null} shade
 */
export function shadeElement({ style }, shade) {
  style.background = shade?.background ?? "";
  style.color = shade?.ink ?? "";
}

/** Make a canvas for a drawing that is operated by keys. @param {string} label @returns {HTMLCanvasElement} */
export const chartCanvas = (label) =>
  h("canvas", { tabIndex: 0, role: "application", "aria-label": label, "aria-roledescription": "chart" });

/**
 * Make a row of buttons of which one is pressed. Arrow keys move between them, so that they are a single tab stop.
 * @template Value
 * @param {string} name
 * @param {(readonly [Value, string])[]} options
 * @param {Value} value
 * @param {(value: Value) => void} choose
 */
export function tabs(name, options, value, choose) {
  const buttons = options.map(([key, text]) => button(text, () => choose(key), { role: "tab", title: text }));
  /** @param {Value} now */
  const show = (now) =>
    buttons.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(options[i][0] === now));
      tab.tabIndex = options[i][0] === now ? 0 : -1;
    });
  const element = h(
    "div",
    {
      class: "tabs",
      role: "tablist",
      "aria-label": name,
      onkeydown: (event) => {
        const open = buttons.filter((tab) => !tab.hidden);
        const step = ARROW_STEPS[event.key]?.[1];
        const at = open.indexOf(/** @type {HTMLButtonElement} */ (event.target));
        if (!step || at < 0) return;
        const next = open[(at + step + open.length) % open.length];
        choose(options[buttons.indexOf(next)][0]);
        next.focus();
        event.preventDefault();
      },
    },
    ...buttons,
  );
  show(value);
  return { element, show };
}

/** @param {Node} node @returns {any} the focused element in the same root */
export const focusedIn = (node) => /** @type {ShadowRoot} */ (node.getRootNode()).activeElement;

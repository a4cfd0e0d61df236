// Buttons of the studios.

import { h } from "../base/elements.js";

/** @import { Properties } from "../types.d.ts" */

/**
 * @param {Node | string | null | (Node | string | null)[]} content
 * @param {((event: MouseEvent) => unknown) | null} onclick
 * @param {Properties<HTMLButtonElement>} [properties]
 */
export const button = (content, onclick, properties = {}) =>
  h("button", { type: "button", ...properties, onclick }, ...[content].flat());

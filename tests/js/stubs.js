// What modules need of a browser where they only measure texts: six pixels a letter.

import { stub } from "./helpers.js";

globalThis.document = stub({
  createElement: () => ({
    getContext: () => ({ measureText: (/** @type {string} */ text) => ({ width: 6 * [...text].length }) }),
  }),
});

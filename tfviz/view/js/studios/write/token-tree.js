// A tree of the tokens written so far: each has the token before it as its parent, so that a different choice makes a
// branch and no text is lost.

import { NO_LOCKS } from "../../base/locks.js";

/** @import { WriteState } from "../../documents.js" */
/** @import { Choices } from "../../types.js" */

/** A tree of tokens by the index of their node. */
export class TokenTree {
  /** @param {Choices<WriteState>} store */
  constructor(store) {
    this.store = store;
  }

  get tokens() {
    return this.to(this.store.get("node"));
  }

  /** @param {number} node */
  to(node) {
    const tree = this.store.get("tree");
    /** @type {number[]} */
    const tokens = [];
    for (let at = node; at >= 0; at = tree[at][0]) tokens.unshift(tree[at][1]);
    return tokens;
  }

  /** Append a token: by an existing branch, or a new one. @param {number} token */
  take(token) {
    const tree = this.store.get("tree");
    const node = this.store.get("node");
    const known = tree.findIndex(([before, other]) => before === node && other === token);
    if (known >= 0) this.store.set({ node: known, ...NO_LOCKS });
    else this.store.set({ tree: [...tree, [node, token]], node: tree.length, ...NO_LOCKS });
  }

  back() {
    const node = this.store.get("node");
    if (node >= 0) this.store.set({ node: this.store.get("tree")[node][0], ...NO_LOCKS });
  }

  /** The last nodes of all branches. */
  get leaves() {
    const tree = this.store.get("tree");
    const inner = new Set(tree.map(([before]) => before));
    return [...tree.keys()].filter((node) => !inner.has(node));
  }
}

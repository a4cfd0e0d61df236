// The attention of each head of a model over the patches of a picture, from one token or averaged over all tokens, on
// one scale.

import { PatchGrid, largest, spread } from "../../base/patch-grid.js";
import { attentionProfile } from "./image-summary.js";
import { keyOf } from "../model-pane.js";

/** @import { ClassifyImageDocument } from "../../documents.js" */
/** @import { Grid } from "../../base/grid.js" */
/** @import { Profile } from "../../base/patch-grid.js" */
/** @import { ModelHeads } from "../model-heads.js" */
/** @import { HeadAddress } from "../model-pane.js" */

const MIN_SCALE_EVEN_SHARES = 4; // times the even weight: where no weight is larger, all are pale

/** The grids of a model's heads over the patches of a picture. */
export class PatchAttention {
  /** @type {Map<string, Profile>} of each head, by address */
  profiles = new Map();
  /** @type {Map<string, Grid>} the same on the patches of the picture */
  thumbs = new Map();
  /** The weight of the strongest colour: of the first maps, so that later ones can be compared with them. */
  limit = 0;

  /** @param {ClassifyImageDocument} viewDocument */
  constructor({ patches, tokens }) {
    this.patchGrid = new PatchGrid(patches, tokens);
    this.tokenCount = tokens.length;
  }

  /**
   * Recompute the attention of all heads from a token; null for the mean over all tokens.
   * @param {ModelHeads} heads
   * @param {number | null} query
   */
  update(heads, query) {
    this.profiles = new Map(
      heads.addresses.map((address) => [keyOf(address), attentionProfile(heads.grid(address), query)]),
    );
    this.limit ||= Math.max(largest([...this.profiles.values()]), Math.min(1, MIN_SCALE_EVEN_SHARES / this.tokenCount));
    this.thumbs = new Map([...this.profiles].map(([key, look]) => [key, spread(look, this.patchGrid, this.limit)]));
  }

  /** Return the weights of all tokens. @param {HeadAddress} address */
  of(address) {
    return /** @type {Profile} */ (this.profiles.get(keyOf(address)));
  }

  /** Return a head's weights as a grid of the picture's patches. @param {HeadAddress} address */
  thumb(address) {
    return /** @type {Grid} */ (this.thumbs.get(keyOf(address)));
  }
}

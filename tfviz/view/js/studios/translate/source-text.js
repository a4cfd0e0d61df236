// The source sentence of the translation studio: an editor whose words are shaded by what a head looks at.

import { TextEditor } from "../text/text-editor.js";
import { TextPieces } from "../text/text-pieces.js";
import { shadeOf } from "../text/token-text.js";

/** @import { Grid } from "../../base/grid.js" */
/** @import { PlacedPiece } from "../text/text-pieces.js" */
/** @import { TranslateStudio } from "./translate-studio.js" */
/** @typedef {{ grid: Grid, row: number } | null} Shading the row of a head's map that shades a text */

/** An editor of the sentence that is translated. */
export class SourceText {
  /** @type {number | null} the piece under the pointer or at the caret */
  pointed = null;
  /** @type {import("../text/prompt.js").Prompted | null} the sentence as it was cut last */
  prompted = null;

  /** @param {TranslateStudio} studio @param {(text: string) => void} changeText */
  constructor(studio, changeText) {
    this.studio = studio;
    this.pieceCutter = new TextPieces(studio.tokenizers[0]);
    this.editor = new TextEditor("Sentence", { typed: changeText, point: (index) => this.point(index) });
    this.editor.element.classList.add("field");
  }

  /** @param {number | null} index */
  point(index) {
    if (index === this.pointed) return;
    this.pointed = index;
    this.studio.repoint();
  }

  /** The words of the sentence; spaces stand alone, unshaded. @returns {PlacedPiece[]} */
  get pieces() {
    const { source, store } = this.studio;
    const text = store.get("sentence");
    const ids = source.latest?.text === text ? source.latest.ids : null;
    if (this.prompted?.text !== text || this.prompted.ids !== ids) this.prompted = { text, ids };
    const pieces = this.pieceCutter.piecesFor(this.prompted, [], undefined);
    return pieces.flatMap((piece) => {
      const words = piece.text.trimStart();
      const lead = piece.text.slice(0, piece.text.length - words.length);
      return lead && words
        ? [
            { text: lead, count: 0, first: 0, last: -1 },
            { ...piece, text: words },
          ]
        : [piece];
    });
  }

  /** The position of the token that is pointed at. @returns {number | null} */
  get row() {
    const piece = this.pointed === null ? null : this.pieces[this.pointed];
    return piece && piece.last >= piece.first ? piece.last : null;
  }

  /** @param {Shading} shading @param {number | null} from the position of the query, if it is in this text */
  show(shading, from) {
    const { pieces } = this;
    const { theme } = this.studio.frame;
    const count = shading?.grid.columns.length ?? 0;
    const shade = (/** @type {number} */ index) => {
      const { first, last } = pieces[index];
      if (!shading || last < first || last >= count) return null;
      return shadeOf(theme, shading.grid, shading.row, first, last);
    };
    const index = from === null ? null : pieces.findIndex(({ first, last }) => first <= from && from <= last);
    const tokens = pieces.map(({ text }) => ({ text }));
    this.editor.show(tokens, shade, index);
  }
}

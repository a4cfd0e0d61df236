// The text of the writing studio: an editor in which each piece is shaded by the row of the token that is pointed at.

import { joinPresent } from "../small-elements.js";
import { TextEditor } from "../text/text-editor.js";
import { signOf, TextPieces } from "../text/text-pieces.js";
import { shadeOf } from "../text/token-text.js";

/** @import { PlacedPiece } from "../text/text-pieces.js" */
/** @import { WriteStudio } from "./write-studio.js" */

const SHORT = 110; // letters of a text that is written larger where there is room

/** An editor of the prompt and the text written after it. */
export class WriteText {
  /** @type {number | null} the piece that is pointed at */
  pointed = null;

  /** @param {WriteStudio} studio */
  constructor(studio) {
    this.studio = studio;
    this.pieceCutter = new TextPieces(studio.tokenizer);
    this.editor = new TextEditor("The text: type anywhere in it", {
      typed: (text) => studio.beginWith(text),
      point: (index) => this.point(index),
    });
  }

  /** Point at a piece: its row shades the text and is marked in each map. @param {number | null} index */
  point(index) {
    if (index === this.pointed) return;
    this.pointed = index;
    if (!this.studio.answer) return;
    this.show();
    this.studio.showModel();
    this.studio.textLoss.bars.describe(this.row);
  }

  get pieces() {
    const { readPrompt, path, answer } = this.studio;
    return this.pieceCutter.piecesFor(readPrompt, path.tokens, answer?.ids.length);
  }

  /** The token that the reader points at or, as long as there is none, the last. @returns {number | null} */
  get row() {
    const { answer } = this.studio;
    if (!answer) return null;
    const last = this.pieces[this.pointed ?? -1]?.last ?? answer.ids.length - 1;
    return last >= 0 && last < answer.ids.length ? last : null;
  }

  /**
   * @param {PlacedPiece[]} pieces
   * @param {boolean} isCurrent whether the model has read them; until then bars stay
   */
  tokensFrom(pieces, isCurrent) {
    const { answer, readPrompt, textLoss: textLoss } = this.studio;
    const isRead = readPrompt.ids !== null; // else the prompt is one piece
    return pieces.map(({ text, written, first, last, word }) => ({
      text,
      sign: isRead || written ? signOf(text, word) : "",
      kind: joinPresent([written && "written", answer && last < 0 && "past"]),
      ...(isCurrent && textLoss.bars.heightsOf({ first, last })),
    }));
  }

  /** @param {{ text: string }[]} tokens */
  setClasses(tokens) {
    const { classList } = this.editor.element;
    const { losses } = this.studio.textLoss.bars;
    classList.toggle("losses", losses !== null);
    classList.toggle("with-baseline", Boolean(losses?.baseline));
    classList.toggle("short", tokens.reduce((sum, { text }) => sum + text.length, 0) <= SHORT);
  }

  show() {
    const { pieces, editor } = this;
    const { answer, answerInput, currentInput, frame, heads, loop } = this.studio;
    const isCurrent = answer !== null && answerInput?.key === currentInput?.key;
    const from = isCurrent ? this.row : null;
    const grid = heads.groups.length && !heads.isAblated(heads.selected) ? heads.grid(heads.selected) : null;
    const shade = (/** @type {number} */ index) => {
      const { first, last } = pieces[index];
      if (!grid || from === null || last < 0 || first > from || last >= grid.columns.length) return null;
      return shadeOf(frame.theme, grid, from, Math.max(0, first), Math.min(from, last));
    };
    const tokens = this.tokensFrom(pieces, isCurrent);
    const longer = tokens.length > editor.tokens.length;
    this.setClasses(tokens);
    const index = from === null ? null : pieces.findIndex(({ first, last }) => first <= from && from <= last);
    editor.show(tokens, isCurrent ? shade : null, index);
    this.studio.arcs?.show(editor.spanOf(index), editor.shadedPieces, frame.theme);
    if (longer && loop.running) editor.scrollToEnd();
  }
}

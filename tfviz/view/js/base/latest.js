// Of several questions only the latest counts: what is answered to an earlier one comes too late.

/** The questions of one kind, one after the other. */
export class Latest {
  turn = 0;

  /** Begin a question, which makes earlier ones obsolete; return a function that tells whether it is still the latest. */
  begin() {
    const turn = ++this.turn;
    return () => turn === this.turn;
  }

  /** Make all questions obsolete, also those that come later: their view is closed. */
  end() {
    this.turn = NaN; // which is no turn, not even itself
  }
}

// A prompt as a model reads it: its ids, cut where it is longer than that, or why there are none.

const PROMPT_LETTERS = 50_000; // that are looked at, from its end

export class Prompt {
  kept = null;

  constructor(vocab, context) {
    this.vocab = vocab;
    this.context = context;
  }

  // { ids, cut }, or { ids: null, error }
  read(text) {
    if (this.kept?.text !== text) this.kept = { text, ...this.encoded(text) };
    return this.kept;
  }

  encoded(text) {
    try {
      const ids = this.vocab.encode(lastLetters(text));
      if (!ids.length) return { ids: null, error: "type a text: the model goes on from it" };
      return { ids: ids.slice(-this.context), cut: text.length > PROMPT_LETTERS || ids.length > this.context };
    } catch (error) {
      return { ids: null, error: `${error.message}: what the model says is of the last text that could be read` };
    }
  }

  // Where Python encodes, it has to be asked first. learn: as `Studio.learn`; false if it could not.
  async learned(text, learn) {
    const learned = await learn(this.vocab, [lastLetters(text)]);
    if (learned) this.kept = null;
    return learned !== null;
  }
}

// As many as are looked at, and no half of one.
function lastLetters(text) {
  return text.length > PROMPT_LETTERS ? text.slice(-PROMPT_LETTERS).replace(/^[\udc00-\udfff]/, "") : text;
}

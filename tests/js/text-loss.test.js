// The words for the loss of a text in the studio of a language model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { perplexityComparison, perplexityText } from "../../tfviz/view/js/studios/write/text-loss.js";

test("a loss is compared with a guess among so many tokens", () => {
  assert.equal(perplexityText(Math.log(4.2), 65, "letter"), "like guessing among 4.2 of 65 letters");
  assert.equal(perplexityText(0, 65, "token"), "like guessing among 1 of 65 tokens");
  assert.equal(perplexityText(Math.log(65), 65, "letter"), "like guessing among 65 of 65 letters");
});

test("what costs more than a guess among all is worse than it", () => {
  assert.equal(perplexityText(Math.log(66), 65, "letter"), "worse than guessing among all 65 letters");
  for (const [loss, other] of [
    [5, 1],
    [1, 5],
    [5, 6],
  ])
    assert.equal(perplexityComparison(loss, other, 65, "letter"), "");
});

test("two losses are compared as guesses", () => {
  const words = perplexityComparison(Math.log(19), Math.log(4.2), 65, "letter");
  assert.equal(words, ": like guessing among 19 letters instead of 4.2");
});

"""Writing studios for tests: small models with uneven predictions, and helpers that read their pages."""

import re
from functools import cache

import torch
from small_models import randomize_weights

from tfviz import view
from tfviz.layers import masks, positions
from tfviz.models import GPT
from tfviz.text import CharacterTokenizer
from tfviz.view.figures.formatting import percent

SIGNS = "\u202e\0<b>&\"'שלום漢😀"
TOKENIZER = CharacterTokenizer.from_text("abcdefgh .\n" + SIGNS)
CONTEXT = 16
KINDS = {
    "learned": {},
    "rotary": {"positions": positions.Rotary},
    "alibi": {"positions": positions.ALiBi},
    "strided": {"mask": masks.strided(3)},
}


def gpt(**parts):
    """Far from even: each matrix is drawn anew, wide."""
    torch.manual_seed(3)
    model = GPT(len(TOKENIZER), **{"context": CONTEXT, "layers": 2, "heads": 3, "dim": 24, **parts})
    return randomize_weights(model, seed=None, std=0.35)


@cache
def write_studio():
    """The model and its view, made once: the weights are kept exactly."""
    model = gpt()
    return model, view.write(model, TOKENIZER, "abc", dtype="float32")


def shown(page):
    """The running text, as its signs stand there."""
    return page.locator(".token").evaluate_all("all => all.map(one => one.dataset.sign ?? one.textContent).join('')")


def bars(page):
    """The next tokens: {name: the number beside the bar}."""
    rows = page.locator(".bar-list .bar-row").evaluate_all(
        "rows => rows.map(row => [row.querySelector('.name').textContent, row.querySelector('.number').textContent])"
    )
    return {re.sub("[\u2066-\u2069“”]", "", name): number for name, number in rows}


def format_percent(share):
    """A share as the bars show it."""
    return percent(float(share))


def path_of(chosen):
    """The ids that were written, from the tree."""
    ids, at = [], chosen["node"]
    while at >= 0:
        at, one = chosen["tree"][at]
        ids.insert(0, one)
    return ids


SPOKEN = {  # special tokens -> their names on a page
    "[EOS]": "the end", "[UNK]": "an unknown word", "[PAD]": "the padding",
    "[MASK]": "the hidden word", "[CLS]": "the class token", "[SEP]": "the separator",
}  # fmt: skip


def spoken(word):
    """A token as a page names it: special ones in words."""
    return SPOKEN.get(word, word)

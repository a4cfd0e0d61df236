"""Small translation models, a reference beam search in plain Python, and helpers for a translation studio's page."""

from functools import cache

import torch
from browser import plain
from small_models import randomize_weights
from writing_studios import SPOKEN

from tfviz import view
from tfviz.models import Transformer
from tfviz.text import train_whole_words

READ, WRITE = "one two three four five six seven eight nine", "eins zwei drei vier fünf sechs sieben"
LENGTH = 9
TEXTS = """() => [...document.querySelector('.tfviz').shadowRoot.querySelectorAll('.found button')]
    .map(one => one.querySelector('.name').textContent)"""
NODES = """() => [...document.querySelector('.tfviz').shadowRoot.querySelectorAll('.node')]
    .map(one => [one.dataset.node, one.querySelector('span').textContent, one.querySelector('small').textContent])"""


@cache
def tokenizers():
    return train_whole_words([READ]), train_whole_words([WRITE])


def model(seed=2, **parts):
    """Far from even: each matrix is drawn anew, wide; the end is likely enough to come."""
    torch.manual_seed(seed)
    source, target = tokenizers()
    sizes = {"context": 24, "layers": 2, "heads": 3, "dim": 24, **parts}
    made = Transformer(len(source), len(target), **sizes)
    return randomize_weights(made, seed=None)


@cache
def translated(sentence="one two three", dtype="float32", **given):
    """The model and its view, made once."""
    made = model()
    return made, view.translate(
        made, tokenizers(), sentence, dtype=dtype, max_new_tokens=LENGTH, **{"num_beams": 4, **given}
    )


def source_ids(sentence):
    source, _ = tokenizers()
    return torch.tensor([[*source.encode(sentence).tolist(), source["[EOS]"]]])


def search(model, sentence, prefix=(), num_beams=1, length_penalty=0.0, max_new_tokens=LENGTH):
    """Texts as [tokens, sum, ended], best first, after each step: a search in plain lists."""
    _, target = tokenizers()
    begin, end = target["[BOS]"], target["[EOS]"]
    memory = model.encode(source_ids(sentence))
    texts, columns = [([], 0.0, False)], []

    def score(text):
        return text[1] / ((5 + len(text[0])) / 6) ** length_penalty

    while len(columns) < max_new_tokens and not all(ended for _, _, ended in texts):
        found = []
        for tokens, total, ended in texts:
            if ended:
                found.append((tokens, total, True))
                continue
            logs = model.decode(torch.tensor([[begin, *tokens]]), memory)[0, -1].double().log_softmax(-1).tolist()
            asked = [prefix[len(columns)]] if len(columns) < len(prefix) else range(len(logs))
            found += [([*tokens, i], total + logs[i], i == end) for i in asked if i not in (0, begin)]
        texts = sorted(found, key=score, reverse=True)[:num_beams]
        columns.append([(tokens, total, score((tokens, total))) for tokens, total, _ in texts])
    return columns


def texts(page):
    """The texts of the search as the page has them."""
    return [plain(text).removesuffix(" …").strip("“”") for text in page.evaluate(TEXTS)]


def token(name):
    """The token that a page gives this name: special ones have theirs in words."""
    return {spoken: token for token, spoken in SPOKEN.items()}.get(name, name)


def nodes(page):
    """Columns of (word, score)."""
    made = {}
    for node, word, score in page.evaluate(NODES):
        step, rank = map(int, node.split())
        made.setdefault(step, {})[rank] = (token(word), float(score.replace("−", "-")))
    return [list(made.get(step, {}).values()) for step in range(max(made, default=-1) + 1)]


def word(page):
    """The running translation, word by word."""
    return [token(word) for word in page.locator(".written .word").all_text_contents()]


def bars(page):
    """What could stand at the chosen place: [(word, percent)]."""
    rows = page.locator(".bar-list .bar-row:not(.others)").evaluate_all(
        "all => all.map(one => [one.querySelector('.name').textContent, one.querySelector('.number').textContent])"
    )
    return [
        (token(plain(name).strip("“”")), 0.0 if "<" in share else float(share.removesuffix("%")))
        for name, share in rows
    ]

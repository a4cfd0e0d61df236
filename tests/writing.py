"""Studios that write, for tests: small models with much to say, and what passes between page and engine."""

import json
import re
from functools import cache

import torch

from tfviz import view
from tfviz.layers import masks, positions
from tfviz.models import GPT
from tfviz.text import Characters
from tfviz.view.page.html import View

SIGNS = "\u202e\0<b>&\"'שלום漢😀"
VOCAB = Characters.of("abcdefgh .\n" + SIGNS)
CONTEXT = 16
KINDS = {
    "learned": {},
    "rotary": {"positions": positions.Rotary},
    "alibi": {"positions": positions.ALiBi},
    "strided": {"mask": masks.strided(3)},
}
# What the page asks its engine and what it is told; the worker is a real one.
SPY = """window.told = []; window.Worker = class extends window.Worker {
    constructor(...given) { super(...given); this.asked = new Map();
        this.addEventListener('message', ({ data }) => { const asked = this.asked.get(data.id);
            if (!asked?.run || !data.result) return;
            const { outputs, patterns } = data.result, { run, inputs, options } = asked;
            const numbers = ({ shape, data }) => ({ shape, data: [...data] });
            const maps = Object.entries(patterns).map(([site, all]) => [site, all.map(numbers)]);
            window.told.push({ run, ids: [...inputs.ids.data], edits: options.edits ?? [],
                logits: numbers(outputs.logits), patterns: Object.fromEntries(maps) }); }); }
    postMessage(message, ...more) { this.asked.set(message.id, message); super.postMessage(message, ...more); } }"""
CALM = """async () => { for (let calm = 0; calm < 4; ) { await new Promise(requestAnimationFrame);
    const body = document.querySelector('.tfviz').shadowRoot?.querySelector('.studio');
    calm = !body || body.hasAttribute('aria-busy') || window.unpacking ? 0 : calm + 1; } }"""


def gpt(**parts):
    """Far from even: each matrix is drawn anew, wide."""
    torch.manual_seed(3)
    model = GPT(len(VOCAB), **{"context": CONTEXT, "layers": 2, "heads": 3, "dim": 24, **parts})
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.35)
    return model.eval()


@cache
def written(kind="learned"):
    """The model and its view, made once: the weights are kept exactly."""
    model = gpt(**KINDS[kind])
    return model, view.write(model, VOCAB, "abc", weights="float32")


def set_to(made, most=None, **state):
    """The same view with its knobs elsewhere: prompt, seed, temperature, topK, topP, off, tree, at."""
    described = {**made.described, "state": {**made.described["state"], **state}}
    return View(made, described | ({} if most is None else {"most": most}), made.data)


def calm(page):
    """Until all that was asked for is computed and drawn."""
    page.evaluate(CALM)


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def click(page, *names):
    for name in names:
        button(page, name).click()
        calm(page)


def shown(page):
    """The running text, as its signs stand there."""
    return page.locator(".written .word").evaluate_all("all => all.map(one => one.textContent).join('')")


def bars(page):
    """The next tokens: {name: what is said beside the bar}."""
    rows = page.locator(".shares .share").evaluate_all(
        "rows => rows.map(row => [row.querySelector('.name').textContent, row.querySelector('output').textContent])"
    )
    return {re.sub("[\u2066-\u2069“”]", "", name): said for name, said in rows}


def said(share):
    """A share as the bars say it."""
    return "< 0.1 %" if 0 < share < 0.001 else f"{float(f'{100 * share:.2g}'):g} %"


def state(path):
    """The choices in a page that was taken away."""
    found = re.search('(?s)class="tfviz-document">(.*?)</script>', path.read_text("utf-8"))
    return json.loads(found[1])["state"]


def path_of(chosen):
    """The ids that were written, from the tree."""
    ids, at = [], chosen["at"]
    while at >= 0:
        at, one = chosen["tree"][at]
        ids.insert(0, one)
    return ids


def tensor(told):
    return torch.tensor(told["data"]).reshape(told["shape"])

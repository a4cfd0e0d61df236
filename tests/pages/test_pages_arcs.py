"""The arcs over the text of a studio in Chromium, offline: from the token that looks to those it looks at most."""

import re

import torch
from studio_pages import switch, wait_until_idle, with_state
from writing_studios import TOKENIZER, write_studio

from tfviz import look

pytest_plugins = ["browser", "studio_pages"]
PROMPT = "face.bad"
# The pieces whose middle is at each end of an arc: [piece, piece], from left to right.
ENDS = """() => {
    const root = document.querySelector('.tfviz').shadowRoot;
    const left = root.querySelector('.panes').getBoundingClientRect().left;
    const middles = [...root.querySelectorAll('.editor .token')].map((token) => {
        const box = token.getBoundingClientRect();
        return box.left + box.width / 2 - left;
    });
    const far = (x, i) => Math.abs(middles[i] - x);
    const nearest = (x) => middles.reduce((best, _, i) => (far(x, i) < far(x, best) ? i : best), 0);
    return [...root.querySelectorAll('.arcs path')].map((path) => {
        const numbers = path.getAttribute('d').match(/-?[\\d.]+/g).map(Number);
        return [nearest(numbers[0]), nearest(numbers.at(-2))];
    });
}"""


def strongest(layer, head, query):
    """The three keys with most of a query's attention, a tenth at least, without the query."""
    model, _ = write_studio()
    with torch.no_grad(), look.capture(model, "*.pattern") as seen:
        model(TOKENIZER.encode(PROMPT)[None])
    weights = seen[f"blocks.{layer}.attention.pattern"][0, head, query]
    codes = (255 * weights.sqrt()).round()
    keys = [key for key in codes.argsort(descending=True, stable=True).tolist() if codes[key] >= 80 and key != query]
    return keys[:3]


def test_arcs_join_token_with_its_strongest_keys(studio):
    layer, head = 1, 2
    page = studio(with_state(write_studio()[1], prompt=PROMPT, layer=layer, head=head))
    for query in (7, 4, 1):
        page.locator(".token").nth(query).hover()
        wait_until_idle(page)
        keys = strongest(layer, head, query)
        assert sorted(map(sorted, page.evaluate(ENDS))) == sorted(sorted((key, query)) for key in keys)


def test_ablated_head_and_scrolled_text_have_no_arcs(studio):
    page = studio(with_state(write_studio()[1], prompt=PROMPT, layer=1, head=1))
    page.locator(".token").nth(7).hover()
    wait_until_idle(page)
    assert len(page.evaluate(ENDS)) == len(strongest(1, 1, 7)) > 0
    page.locator(".editor").evaluate("editor => editor.dispatchEvent(new Event('scroll'))")
    assert page.evaluate(ENDS) == []
    switch(page, 1, 1)
    page.locator(".token").nth(7).hover()
    wait_until_idle(page)
    assert page.evaluate(ENDS) == []


def test_arcs_do_not_cross_letters(studio):
    page = studio(with_state(write_studio()[1], prompt="ab\ncd\nef", layer=1, head=1))
    heights = []
    for query in range(8):
        page.locator(".token").nth(query).hover()
        wait_until_idle(page)
        curves = page.locator(".arcs path").evaluate_all("all => all.map(one => one.getAttribute('d'))")
        for numbers in ([float(number) for number in re.findall(r"-?[\d.]+", curve)] for curve in curves):
            heights.append(abs(numbers[1] - numbers[-1]))
    assert max(heights) < 12  # pixels: no arc crosses letters
    assert page.locator(".arcs").get_attribute("aria-hidden") == "true"
    assert page.locator(".arcs").evaluate("one => getComputedStyle(one).pointerEvents") == "none"

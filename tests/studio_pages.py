"""Helpers to drive a studio's page: messages to and from its engine, waiting until it is idle, and its buttons.

PYTEST_DONT_REWRITE: test modules name this as their plugin, and import from it.
"""

import base64
import json
import re

import pytest
import torch
from browser import VIEW_READY_JS, goto_view, plain
from widgets import ask_widget

from tfviz.view.page.bundle import BUNDLES
from tfviz.view.page.html import View

# What the page asks its engine and what it is told; the worker is a real one.
RECORD_ENGINE_JS = """window.told = []; window.Worker = class extends window.Worker {
    constructor(...given) { super(...given); this.asked = new Map();
        this.addEventListener('message', ({ data }) => { const asked = this.asked.get(data.id);
            if (!asked?.run || !data.result) return;
            const { outputs, patterns } = data.result, { run, inputs, options } = asked;
            const numbers = ({ shape, data }) => ({ shape, data: [...data] });
            const named = (all, change) =>
                Object.fromEntries(Object.entries(all).map(([name, one]) => [name, change(one)]));
            window.told.push({ run, ids: inputs.ids && [...inputs.ids.data], edits: options.edits ?? [],
                inputs: named(inputs, numbers), outputs: named(outputs, numbers),
                patterns: named(patterns, (all) => all.map(numbers)) }); }); }
    postMessage(message, ...more) { this.asked.set(message.id, message); super.postMessage(message, ...more); } }"""
WAIT_UNTIL_IDLE_JS = """async () => { for (let calm = 0; calm < 4; ) { await new Promise(requestAnimationFrame);
    const body = document.querySelector('.tfviz').shadowRoot?.querySelector('.studio');
    calm = !body || body.hasAttribute('aria-busy') || window.unpacking ? 0 : calm + 1; } }"""
# The model of a widget, its other end in Python: `kernelState`, `kernelSet` and `kernelAsk` of the page.
WIDGET = """async ([code, shared]) => { const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const hear = {}, state = await window.kernelState();
    const tell = (name, ...given) => (hear[name] ?? []).forEach((one) => one(...given));
    window.model = { get: (name) => state[name], set: (name, value) => { state[name] = value; tell(`change:${name}`); },
        save_changes: () => window.kernelSet(state[shared]),
        on: (name, listener) => (hear[name] ??= []).push(listener),
        off: (name, listener) => { hear[name] = hear[name].filter((one) => one !== listener); },
        send: async (question) => { const [answer, pieces] = await window.kernelAsk(question);
            tell('msg:custom', answer, pieces.map((piece) => new DataView(bytes(piece).buffer))); } };
    const module = await import(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })));
    window.close_view = module.default.render({ model, el: document.body }); }"""


@pytest.fixture
def studio(new_page, tmp_path):
    """`studio(view, ...)`: its page, alive; what its engine says is kept in `window.told`."""

    def opened(made, **given):
        page = new_page(**given)
        page.add_init_script(RECORD_ENGINE_JS)
        goto_view(page, made.save(tmp_path / "x.html"))
        wait_until_idle(page)
        return page

    return opened


def with_state(made, most=None, **state):
    """The same view with its controls set otherwise."""
    described = {**made.document, "state": {**made.document["state"], **state}}
    return View(made, described | ({} if most is None else {"max_new_tokens": most}), made.data)


def state(path):
    """The choices in a page that was taken away."""
    found = re.search('(?s)class="tfviz-document">(.*?)</script>', path.read_text("utf-8"))
    return json.loads(found[1])["state"]


def wait_until_idle(page):
    """Until all that was asked for is computed and drawn."""
    page.evaluate(WAIT_UNTIL_IDLE_JS)


def status_text(page):
    """What the studio says; the view of heads inside has a line of its own."""
    return plain(page.locator(".status").first.text_content())


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def click(page, *names):
    for name in names:
        button(page, name).click()
        wait_until_idle(page)


def switch(page, layer, head, part=""):
    """Switch a head off, or on, by its key."""
    name = re.compile(f"^{part and f'{part}, '}head {head} of layer {layer}, o")
    page.get_by_role("button", name=name).press("x")
    wait_until_idle(page)


def types(page, text):
    """Type a text in place of the words."""
    click(page, "Edit the text")
    page.locator("textarea").fill(text)
    wait_until_idle(page)
    click(page, "Done")


def type_in_editor(page, text):
    """Put a text in place of the prompt."""
    page.locator(".editor").fill(text)
    wait_until_idle(page)


def leave(page):
    """The pointer goes: what it pointed at is no longer told."""
    page.mouse.move(2, 2)
    wait_until_idle(page)


def do_try(page, name):
    """Press what the studio proposes to try, until it is done."""
    button(page, name).click()
    page.wait_for_function("() => !document.querySelector('.tfviz').shadowRoot.querySelector('.examples [aria-busy]')")
    wait_until_idle(page)


def tab_to(page, selector):
    for _ in range(80):
        if focused(page, selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the tab key does not come to {selector}")


def focused(page, selector):
    here = "document.activeElement?.shadowRoot?.activeElement"
    return page.evaluate(f"selector => {here}?.matches(selector) ?? false", selector)


def remove_and_restore(page):
    """Take the view out of the page, where its worker ends, and put it back."""
    assert len(page.workers) == 1
    page.evaluate("window.view = document.querySelector('.tfviz'); view.remove()")
    page.wait_for_timeout(200)
    assert page.workers == []
    page.evaluate("document.body.append(view)")


def opened_link(page, new_page):
    """The page at the address that `page` shares."""
    page.locator("summary", has_text="Share").click()
    click(page, "Copy link")
    assert status_text(page).startswith("The link is ")
    other = new_page()
    other.goto(page.evaluate("location.href"))
    other.wait_for_function(VIEW_READY_JS)
    wait_until_idle(other)
    return other


def shaded(page, words=".word-list .word"):
    """Whether each word has a colour behind it."""
    return page.locator(words).evaluate_all("all => all.map(one => Boolean(one.style.backgroundColor))")


def tensor(told):
    """What the engine was given, or gave."""
    return torch.tensor(told["data"]).reshape(told["shape"])


def with_kernel(page, live, name, shared):
    """Show a widget, whose script is `name`, with its other end here; `shared` is the trait that both sides set."""

    def asks(question):
        content, pieces = ask_widget(live, **question)
        return content, [base64.b64encode(piece).decode() for piece in pieces or []]

    page.expose_function("kernelAsk", asks)
    page.expose_function("kernelState", lambda: {"document": live.document, shared: getattr(live, shared)})
    page.expose_function("kernelSet", lambda value: setattr(live, shared, value))
    page.goto("about:blank")
    page.evaluate(WIDGET, [(BUNDLES / f"{name}.js").read_text(encoding="utf-8"), shared])


def open_with_kernel(page, live, script="studios-widget", ready=".studio :is(.word, .token)"):
    """The page of a studio's widget, once what matches `ready` is there."""
    with_kernel(page, live, script, "state")
    page.locator(ready).first.wait_for()
    wait_until_idle(page)
    return page

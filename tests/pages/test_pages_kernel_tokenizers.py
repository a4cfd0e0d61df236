"""Studios in Chromium, offline, whose text is encoded in Python by tokenizers that a page cannot run."""

import pytest
import torch
from browser import plain
from small_models import randomize_weights
from studio_pages import (
    button,
    click,
    open_with_kernel,
    status_text,
    type_in_editor,
    types,
    wait_until_idle,
)
from unportable_tokenizers import regex, unigram
from writing_studios import bars, format_percent, path_of

from tfviz import view
from tfviz.models import BERT, GPT, Classifier
from tfviz.text import SubwordTokenizer

pytest_plugins = ["browser", "studio_pages"]
HOSTILE = "the \u202e<b>&'漢😀\0 cat\n  <mask>"


def test_write_encodes_typed_text_like_python(new_page):
    vocab = SubwordTokenizer(regex())  # others: tests/text/test_tokenizer_export.py
    model = randomize_weights(
        GPT(len(vocab) * 17 // 16 + 1, context=96, layers=1, heads=3, dim=24)
    )  # room for more, as many have it
    live = view.write(model, vocab, "the cat", temperature=0, kernel=True)
    page = open_with_kernel(new_page(), live)
    type_in_editor(page, HOSTILE)
    assert live._last[1][0][0].tolist() == vocab.encode(HOSTILE).tolist()
    with torch.no_grad():
        logits = model(vocab.encode(HOSTILE)[None])[0, -1, : len(vocab)]
    assert vocab.tokens(logits.argmax()[None])[0] in bars(page)
    click(page, *["One token"] * 3)  # this tokenizer lacks nothing of the text
    assert path_of(live.state) == greedy(model, vocab.encode(HOSTILE).tolist(), 3, len(vocab))
    type_in_editor(page, "")
    assert status_text(page) == "type a text: the model goes on from it"
    type_in_editor(page, "the")
    page.wait_for_function("() => !document.querySelector('.tfviz').shadowRoot.querySelector('.status').textContent")


def greedy(model, ids, count, size):
    """The likeliest token that the tokenizer has, again and again."""
    with torch.no_grad():
        for _ in range(count):
            ids = [*ids, model(torch.tensor([ids]))[0, -1, :size].argmax().item()]
    return ids[-count:]


SLOW_ENCODING = """() => { const ask = window.kernelAsk;
    window.kernelAsk = async (question) => {
        if (JSON.stringify(question).includes('"encode"')) await new Promise((done) => setTimeout(done, 400));
        return ask(question); }; }"""


def test_page_is_busy_while_python_encodes(new_page):
    vocab = SubwordTokenizer(unigram())
    model = randomize_weights(Classifier(len(vocab), 2, context=40, layers=1, heads=2, dim=12))
    live = view.classify(model, vocab, ["bad", "good"], "the cat", kernel=True)
    page = open_with_kernel(new_page(), live)
    page.evaluate(SLOW_ENCODING)
    types(page, "the dog sat")
    assert live._last[1][0][0].tolist() == vocab.encode("the dog sat").tolist()


def open_write_studio(page):
    vocab = SubwordTokenizer(regex())
    model = randomize_weights(GPT(len(vocab), context=40, layers=1, heads=2, dim=12))
    live = view.write(model, vocab, "the", kernel=True)
    return vocab, live, open_with_kernel(page, live)


def test_write_shows_latest_prompt_after_fast_typing(new_page):
    vocab, live, page = open_write_studio(new_page())
    page.locator(".editor").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" mat and the dog", delay=1)
    wait_until_idle(page)
    assert page.locator(".editor").text_content() == "the mat and the dog"
    assert live._ids() == vocab.encode("the mat and the dog").tolist()
    assert status_text(page) == ""


def test_classify_replaces_words_and_matches_torch(new_page):
    vocab = SubwordTokenizer(unigram())
    model = randomize_weights(Classifier(len(vocab), 2, context=40, layers=1, heads=2, dim=12))
    live = view.classify(model, vocab, ["bad", "good"], "the cat sat on the mat", kernel=True)
    page = open_with_kernel(new_page(), live)
    words = page.locator(".word-list .word")
    assert words.all_text_contents() == ["the", "cat", "sat", "on", "the", "mat"]
    words.nth(1).dblclick()
    page.locator("input.swap").fill("dog")
    page.locator("input.swap").press("Enter")
    wait_until_idle(page)
    with torch.no_grad():
        shares = model(vocab.encode("the dog sat on the mat")[None])[0].softmax(-1).tolist()
    verdict = page.locator(".bar-list:not(.ranking) .number").all_text_contents()
    assert verdict == [format_percent(share) for share in shares]
    assert plain(words.nth(1).text_content()) == "dog"
    types(page, HOSTILE)
    assert live._last[1][0][0].tolist() == vocab.encode(HOSTILE).tolist()


def test_fill_uses_special_tokens_of_tokenizer(new_page):
    transformers = pytest.importorskip("transformers")
    made = unigram()
    made.add_special_tokens(["<mask>", "<s>"])
    named = {
        "mask_token": "<mask>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
    }
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **named)
    vocab, other = SubwordTokenizer(made), SubwordTokenizer(regex())
    bert = randomize_weights(BERT(len(vocab), context=40, layers=1, heads=2, dim=12))
    left = randomize_weights(GPT(len(other), context=40, layers=1, heads=2, dim=12), seed=5)
    live = view.fill(bert, tokenizer, "the cat sat on the mat", masked=1, compare_with=(left, other), kernel=True)
    page = open_with_kernel(new_page(), live)
    ids = live._last[1][0][0].tolist()
    mask, cls, sep = (tokenizer.convert_tokens_to_ids(name) for name in ("<mask>", "<s>", "</s>"))
    assert (ids[0], ids[-1], ids.count(mask) > 0) == (cls, sep, True)
    assert live._inputs["comparison"][0][0].tolist() == other.encode("the").tolist()
    button(page, "the").first.click()
    wait_until_idle(page)
    assert live._last[1][0][0].tolist().count(mask) > ids.count(mask)
    assert "Python has not read" not in page.locator(".studio").text_content()


def test_python_encoding_error_is_shown(new_page):
    _, live, page = open_write_studio(new_page())
    live._tokenizers = []
    type_in_editor(page, "the dog")
    assert "there is no tokenizer 0" in status_text(page)

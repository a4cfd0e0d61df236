"""`view.classify` and `view.fill` in Chromium, offline: results match torch."""

import copy
import csv
import math
import re
from functools import cache
from itertools import product

import pytest
import torch
from browser import goto_view, plain, press, takes
from small_models import randomize_weights
from studio_pages import (
    button,
    click,
    do_try,
    focused,
    leave,
    shaded,
    state,
    status_text,
    switch,
    tab_to,
    types,
    wait_until_idle,
    with_state,
)
from studio_pages import tensor as numbers
from writing_studios import format_percent, spoken

from tfviz import look, view
from tfviz.models import BERT, GPT, Classifier
from tfviz.text import CharacterTokenizer, train_bpe, train_whole_words, train_wordpiece

pytest_plugins = ["browser", "studio_pages"]
TEXT = "the plot was not very good, but the music was never dull"
LABELS = ["bad", "so <b>so</b>", "very good"]
WORDS = train_whole_words([TEXT, "a film with an ending and a cast that is fine ."])
CLS, SEP, MASK = (WORDS[token] for token in ("[CLS]", "[SEP]", "[MASK]"))
PIECES = train_wordpiece(["sing sings singing the ring rings", TEXT], 70)
PAIRS = train_bpe(["the cat sings and the ring rings", TEXT], 300)
SITES = "*.pattern"


@cache
def classifier():
    torch.manual_seed(1)  # of biases, whichever test is the first
    model = randomize_weights(Classifier(len(WORDS), 3, context=24, layers=2, heads=3, dim=24))
    return model, with_state(view.classify(model, WORDS, LABELS, TEXT, bos=CLS, dtype="float32"), label=0)


@cache
def filler():
    torch.manual_seed(1)
    bert = randomize_weights(BERT(len(WORDS), context=24, layers=2, heads=3, dim=24))
    gpt = randomize_weights(GPT(len(WORDS), context=24, layers=1, heads=2, dim=12), seed=5)
    made = view.fill(bert, WORDS, TEXT, masked=[3, 9], compare_with=(gpt, WORDS, CLS), dtype="float32")
    return bert, gpt, made


@cache
def pieces():
    bert = randomize_weights(BERT(len(PIECES), context=30, layers=1, heads=2, dim=12))
    gpt = randomize_weights(GPT(len(PAIRS), context=30, layers=1, heads=2, dim=12), seed=5)
    return (
        bert,
        gpt,
        view.fill(bert, PIECES, "the singing rings", masked=1, compare_with=(gpt, PAIRS), dtype="float32"),
    )


def words(page):
    return page.locator(".word-list .word").all_text_contents()


def word(page, text, which=0):
    return page.locator(".word-list .word").get_by_text(text, exact=True).nth(which)


def click_word(page, text, which=0):
    word(page, text, which).click()
    wait_until_idle(page)


def last_run(page, **wanted):
    """The last that the engine was asked, of those that are so: run, ids, edits."""
    return [one for one in page.evaluate("told") if all(one[key] == value for key, value in wanted.items())][-1]


def encode_with_specials(text, front=(CLS,), back=(), tokenizer=WORDS):
    return [*front, *tokenizer.encode(text).tolist(), *back]


def logits(model, ids, off=()):
    """What torch gives, and its maps, with some heads off."""
    edit = {f"blocks.{layer}.attention.pattern": look.edits.zero(head) for layer, head in off}
    with torch.no_grad(), look.capture(model, SITES, edit=edit) as seen:
        made = model(torch.tensor([ids]))
    return getattr(made, "logits", made)[0], seen


def check_against_torch(page, model, ids, off=(), run="read"):
    """The logits and maps for these ids are torch's; returns torch's logits."""
    edits = [{"site": f"blocks.{layer}.attention.pattern", "head": head, "kind": "zero"} for layer, head in off]
    one = last_run(page, run=run, ids=ids, edits=edits)
    expected, seen = logits(model, ids, off)
    torch.testing.assert_close(numbers(one["outputs"]["logits"])[0], expected, rtol=0, atol=1e-4)
    for site, maps in one["patterns"].items():
        torch.testing.assert_close(numbers(maps[0]).float(), seen[site], rtol=0, atol=1e-4)
    return expected


def log_odds(scores, label=0):
    others = torch.cat([scores[:label], scores[label + 1 :]])
    return (scores[label] - others.logsumexp(0)).item()


def signed(value):
    return f"{'−' if value < 0 else '+'}{abs(value):.2f}" if abs(value) >= 0.005 else "0.00"


def one_decimal(value):
    return f"{'−' if value < 0 else '+'}{abs(value):.1f}" if abs(value) >= 0.05 else "0.0"


def shares(page, where=".prediction .bar-list"):
    """The bars of one list: {name: what stands beside}."""
    texts = "rows => rows.map(row => ['.name', '.number'].map(kind => row.querySelector(kind).textContent))"
    rows = page.locator(where).first.locator(".bar-row:not(.others)").evaluate_all(texts)
    return {re.sub("[\u2066-\u2069“”]", "", name): text for name, text in rows}


# The classifier


def test_classify_matches_torch_with_words_and_heads_removed(studio):
    model, made = classifier()
    page = studio(made)
    whole = check_against_torch(page, model, encode_with_specials(TEXT))
    assert words(page) == TEXT.replace(",", " ,").split()
    assert shares(page) == dict(zip(LABELS, map(format_percent, whole.softmax(0).tolist())))
    assert plain(page.locator(".metric").text_content()) == f"log-odds of “bad”: {signed(log_odds(whole))}"
    click_word(page, "not")
    without = TEXT.replace("not ", "")
    now = check_against_torch(page, model, encode_with_specials(without))
    assert shares(page) == dict(zip(LABELS, map(format_percent, now.softmax(0).tolist())))
    before, after = log_odds(whole), log_odds(now)
    assert plain(page.locator(".metric").text_content()) == (
        f"“bad”: {format_percent(whole.softmax(0)[0].item())} → {format_percent(now.softmax(0)[0].item())}; "
        f"log-odds {signed(before)} → {signed(after)} ({signed(after - before)})"
    )
    assert word(page, "not").get_attribute("aria-pressed") == "true"
    assert page.locator(".before").count() == 3
    switch(page, 0, 1)
    switch(page, 1, 2)
    check_against_torch(page, model, encode_with_specials(without), off=((0, 1), (1, 2)))
    click_word(page, "not")
    check_against_torch(page, model, encode_with_specials(TEXT), off=((0, 1), (1, 2)))
    click(page, "All on")
    assert page.locator(".before").count() == 0


def test_classify_replaces_removes_and_restores_words(studio, tmp_path):
    model, made = classifier()
    page = studio(made)
    word(page, "plot").dblclick()
    page.keyboard.type("film with an Ende")
    page.keyboard.press("Enter")
    wait_until_idle(page)
    check_against_torch(page, model, encode_with_specials(TEXT.replace("plot", "film with an Ende")))
    assert words(page)[:3] == ["the", "film with an Ende", "was"]
    assert state(takes(page, "HTML", tmp_path))["deleted"] == []  # the first of the two clicks was undone
    word(page, "film with an Ende").dblclick()
    assert page.locator(".swap").input_value() == "film with an Ende"
    page.locator(".swap").fill("")
    page.keyboard.press("Enter")
    wait_until_idle(page)
    check_against_torch(page, model, encode_with_specials(TEXT.replace("plot ", "")))
    word(page, "dull").dblclick()
    page.keyboard.type("fine")
    page.keyboard.press("Escape")
    wait_until_idle(page)
    assert page.locator(".swap").count() == 0
    assert words(page)[-1] == "dull"
    click(page, "Take changes back")
    assert words(page)[1] == "plot"
    assert page.locator(".before").count() == 0
    assert button(page, "Take changes back").count() == 0


def test_classify_opens_most_important_head_and_shades_by_selected_head(studio):
    model, made = classifier()
    ids = encode_with_specials(TEXT)
    whole = logits(model, ids)[0].softmax(0)
    change = {
        at: (logits(model, ids, [at])[0].softmax(0) - whole).abs().sum().item() for at in product((0, 1), (0, 1, 2))
    }
    layer, head = max(change, key=change.get)
    assert (made.document["state"]["layer"], made.document["state"]["head"]) == (layer, head)
    page = studio(made)
    page.get_by_role("button", name=re.compile("^head 2 of layer 1")).click()
    wait_until_idle(page)
    weights = logits(model, ids)[1]["blocks.1.attention.pattern"][0, 2, 0, 1:]
    assert shaded(page) == [(255 * weight.sqrt()).round().item() >= 8 for weight in weights]
    assert (
        plain(page.locator(".pane.text small").first.text_content()) == "Where the class token looks: layer 1, head 2"
    )


def test_classify_word_effects_match_leave_one_out(studio, tmp_path):
    model, made = classifier()
    page = studio(made)
    ids = encode_with_specials(TEXT)
    whole, _ = logits(model, ids)

    def effects(label):
        return [
            log_odds(logits(model, ids[:i] + ids[i + 1 :])[0], label) - log_odds(whole, label)
            for i in range(1, len(ids))
        ]

    for label in (0, 2):
        page.locator("label:has(> span:text-is('Shade words by')) select").select_option(LABELS[label])
        wait_until_idle(page)
        expected = effects(label)
        titles = page.locator(".word-list .word").evaluate_all("all => all.map(one => one.title)")
        assert [title.rpartition(" ")[2] for title in titles] == [signed(value) for value in expected]
        assert plain(titles[1]).startswith(
            f"“plot”: without it “{LABELS[label]}” goes {format_percent(whole.softmax(0)[label])} → "
        )
        coloured = [tuple(map(int, re.findall(r"\d+", shade))) for shade in backgrounds(page)]
        tiny = [abs(value) < 0.04 * max(map(abs, expected)) for value in expected]
        assert [not colour for colour in coloured] == tiny  # a word that hardly counts has no colour
        red, _, blue = zip(*(colour or (0, 0, 0) for colour in coloured))
        strong = [i for i, value in enumerate(expected) if abs(value) > 0.1 * max(map(abs, expected))]
        assert len(strong) > 3
        assert [red[i] > blue[i] for i in strong] == [
            expected[i] < 0 for i in strong
        ]  # orange: it adds; blue: it takes
        key = f"away from “{LABELS[label]}”", f"toward “{LABELS[label]}”"
        most = max(0.5, *map(abs, expected))
        scale = f"A word pushes, by up to {most:.1f} log-odds{''.join(key)}"
        assert plain(page.locator(".pane .scale").text_content()) == scale
        assert plain(page.locator(".ranking .axis").text_content()) == f"← {key[0]}{key[1]} →"
        ranked = sorted(range(len(expected)), key=lambda i: -abs(expected[i]))[:5]
        rows = page.locator(".ranking .bar-row").evaluate_all("all => all.map(one => one.textContent)")
        assert rows == [f"{words(page)[i]}{one_decimal(-expected[i])}" for i in ranked]
        sides = page.locator(".ranking .bar").evaluate_all(BARS_RIGHT_OF_THE_MIDDLE)
        assert sides == [expected[i] < 0 for i in ranked]  # to the right: the word makes the label more likely
        for sign in (-1, 1):  # of the words that add, and of those that take
            one_way = [i for i in strong if sign * expected[i] > 0]
            strength = [abs(red[i] - blue[i]) for i in sorted(one_way, key=lambda i: abs(expected[i]))]
            assert strength == sorted(strength)
    rows = list(csv.reader(takes(page, "CSV", tmp_path).read_text("utf-8").partition("words")[2].splitlines()[1:]))
    assert [row[0] for row in rows[1:]] == words(page)
    assert [float(row[1]) for row in rows[1:]] == pytest.approx(expected, abs=1e-3)
    page.locator("label:has(> span:text-is('Shade words by')) select").select_option("nothing")
    wait_until_idle(page)
    assert set(backgrounds(page)) == {""}
    runs = "told.filter(one => !one.edits.length).length"  # but for what leaving the head out costs
    asked = page.evaluate(runs)
    click_word(page, "good")
    assert page.evaluate(runs) == asked + 1  # nothing is weighed; the text as typed is known, and so is this
    check_against_torch(page, model, encode_with_specials(TEXT.replace("good", "")))


BARS_RIGHT_OF_THE_MIDDLE = """all => all.map((bar) => {
    const [own, track] = [bar, bar.parentElement].map((one) => one.getBoundingClientRect());
    return own.left + own.width / 2 > track.left + track.width / 2; })"""


def backgrounds(page):
    return page.locator(".word-list .word").evaluate_all("all => all.map(one => one.style.background)")


def test_classify_shows_result_of_last_typed_text(studio):
    model, made = classifier()
    page = studio(made)
    click(page, "Edit the text")
    page.locator("textarea").fill("")
    page.locator("textarea").press_sequentially("a film that is fine")
    wait_until_idle(page)
    click(page, "Done")
    now = check_against_torch(page, model, encode_with_specials("a film that is fine"))
    assert shares(page) == dict(zip(LABELS, map(format_percent, now.softmax(0).tolist())))
    assert words(page) == ["a", "film", "that", "is", "fine"]
    assert page.locator("progress").is_hidden()
    assert [text for text in backgrounds(page) if not text] == []


def test_classify_shows_unknown_words_and_hostile_text_literally(studio):
    model, made = classifier()
    page = studio(made)
    types(page, "the Handlung was not")
    assert page.locator(".word.unknown").all_text_contents() == ["Handlung"]
    assert "not in the vocabulary: read as unknown" in word(page, "Handlung").get_attribute("title")
    check_against_torch(page, model, [CLS, *(WORDS[one] for one in ("the", "[UNK]", "was", "not"))])
    assert plain(status_text(page)) == "The vocabulary lacks “Handlung”: read as unknown"
    assert "Handlung (unknown)" in page.locator(".ranking .name").all_text_contents()
    types(page, "the Handlung und Musik war Käse")
    assert plain(status_text(page)) == "The vocabulary lacks “Handlung”, “und”, “Musik”, 2 more: read as unknown"
    hostile = "<b>the</b> \u202eplot \0 שלום 漢字 😀 </script><img src=x onerror=alert(1)> [MASK]"
    types(page, hostile)
    check_against_torch(page, model, encode_with_specials(hostile)[:24])
    assert page.locator(".word-list :is(b, img, script)").count() == 0
    assert "".join(words(page)).startswith("<b>the</b>⟨202E⟩plot")
    types(page, "not very good " * 800)
    assert status_text(page) == "the text is longer than the model reads: its first 23 words are shown"
    assert len(words(page)) == 23
    types(page, "\n ")
    assert status_text(page) == "type a text"
    assert page.locator(".unread").count() == 1  # what is shown is of another text
    assert len(words(page)) == 23
    types(page, "plot")
    check_against_torch(page, model, [CLS, WORDS["plot"]])
    click_word(page, "plot")
    check_against_torch(page, model, [CLS])
    assert status_text(page) != ""


def test_replacement_words_may_be_unknown(studio):
    page = studio(classifier()[1])
    types(page, "the plot was not")
    type_in_place(page, "plot", "Handlung")
    assert page.locator(".word.unknown").all_text_contents() == ["Handlung"]
    assert "not in the vocabulary: read as unknown" in word(page, "Handlung").get_attribute("title")
    types(page, "the Handlung was not")
    type_in_place(page, "Handlung", "plot")
    assert page.locator(".word.unknown").count() == 0


def type_in_place(page, old, new):
    word(page, old).dblclick()
    field = page.locator(".swap")
    field.fill(new)
    field.press("Enter")
    wait_until_idle(page)


@pytest.mark.parametrize("answer", [0, 1])
def test_two_labels_keep_their_sides_and_colours(studio, answer):
    """The second label is to the right, whichever the model says."""
    model = randomize_weights(Classifier(len(WORDS), 2, context=24, layers=1, heads=2, dim=8))
    with torch.no_grad():
        model.to_logits.bias.copy_(torch.tensor([9.0, -9.0] if answer == 0 else [-9.0, 9.0]))
    made = view.classify(model, WORDS, ["no", "yes"], TEXT, dtype="float32")
    page = studio(made)
    scores = model(WORDS.encode(TEXT)[None])[0].detach()
    assert int(scores.argmax()) == answer
    assert plain(page.locator(".metric").text_content()) == f"log-odds of “yes”: {signed(float(scores.diff()))}"
    scale = plain(page.locator(".pane .scale").text_content())
    assert re.fullmatch(r"A word pushes toward, by up to \d\.\d log-odds“no”“yes”", scale)
    assert plain(page.locator(".ranking .axis").text_content()) == "← “no”“yes” →"
    against = page.locator(".pane.prediction .bar-row.against").all_text_contents()
    assert any(text.startswith("no") for text in against)
    assert not any(text.startswith("yes") for text in against)
    written = " ".join(text.get_text() for text in made.figure().axes[0].texts)
    assert "the effect of each token on “yes”" in written


def test_classify_reports_that_no_words_are_left(studio):
    model = randomize_weights(Classifier(len(WORDS), 2, context=24, layers=1, heads=2, dim=8))
    page = studio(view.classify(model, WORDS, ["no", "yes"], "fine", dtype="float32"))
    before = shares(page)
    click_word(page, "fine")
    assert status_text(page) == "nothing is left to read: bring a word back"
    assert word(page, "fine").get_attribute("aria-pressed") == "true"
    assert page.locator(".unread").count() == 1
    click_word(page, "fine")
    assert page.locator(".unread").count() == 0
    assert shares(page) == before
    assert status_text(page) != "nothing is left to read: bring a word back"


def test_classify_works_by_keyboard_alone(studio):
    model, made = classifier()
    page = studio(made)
    type_by_keys(page, "a film that is fine")
    tab_to(page, ".word-list .word")
    press(page, "End", "ArrowLeft", "Delete")
    wait_until_idle(page)
    check_against_torch(page, model, encode_with_specials("a film that fine"))
    assert focused(page, "[aria-pressed='true']")
    press(page, "Space", "ArrowLeft", "ArrowLeft", "Enter")
    page.keyboard.type("plot")
    press(page, "Enter")
    wait_until_idle(page)
    check_against_torch(page, model, encode_with_specials("a plot that is fine"))
    assert focused(page, ".word.swapped")
    assert status_text(page).startswith("“plot”: in place of “film”; without it “bad” goes ")
    tab_to(page, ".as-typed")
    press(page, "Enter")
    wait_until_idle(page)
    assert focused(page, ".word")
    tab_to(page, ".head")
    press(page, "x")
    wait_until_idle(page)
    opened = made.document["state"]["layer"], made.document["state"]["head"]
    check_against_torch(page, model, encode_with_specials("a film that is fine"), off=(opened,))
    assert focused(page, ".head")


def type_by_keys(page, text):
    tab_to(page, ".row button")
    press(page, "Enter", "Control+a")
    page.keyboard.type(text)
    wait_until_idle(page)
    tab_to(page, ".row button")
    press(page, "Enter")
    assert focused(page, ".row button")


# The gaps


def test_fill_guesses_of_bert_and_gpt_match_torch(studio):
    bert, gpt, made = filler()
    page = studio(made)
    ids = encode_with_specials(TEXT, back=(SEP,))
    gaps = [1 + 3, 1 + 10]  # "not" and, behind the comma, "was"
    for position in gaps:
        ids[position] = MASK
    whole = check_against_torch(page, bert, ids)
    left = check_against_torch(page, gpt, ids[: gaps[0]], run="comparison")[-1]
    ids[gaps[0]] = int(left.argmax())  # the one that sees the left goes on with its own guess
    further = check_against_torch(page, gpt, ids[: gaps[1]], run="comparison")[-1]
    ids[gaps[0]] = MASK
    for tab, (typed, *lists) in enumerate([("not", whole[gaps[0]], left), ("was", whole[gaps[1]], further)]):
        page.get_by_role("tab").nth(tab).click()
        assert page.locator(".sides .bar-list").count() == 2
        lists = [scores.softmax(0) for scores in lists]  # of the same words: those that one of them finds likeliest
        top = dict.fromkeys([*torch.maximum(*lists).topk(7).indices.tolist(), WORDS[typed]])
        names = [spoken(name) for name in WORDS.tokens(torch.tensor(list(top)))]
        for which, found in enumerate(lists):
            expected = dict(zip(names, (format_percent(found[token].item()) for token in top)))
            assert shares(page, f".bar-list >> nth={which}") == expected
    switch(page, 1, 0)
    check_against_torch(page, bert, ids, off=((1, 0),))
    assert page.locator(".before").count() == page.locator(".sides .bar-list:first-child .bar-row:not(.others)").count()


def test_fill_lists_sum_to_100_percent_and_align_row_by_row(studio):
    page = studio(filler()[2])
    percents = page.locator(".sides .bar-list").first.locator(".number").all_text_contents()
    assert sum(float(one.removesuffix("%")) for one in percents) == pytest.approx(100, abs=1.5)  # each has two digits
    left, right = (page.locator(".sides .bar-list").nth(which).locator(".bar-row") for which in (0, 1))
    assert left.last.locator(".name").text_content() == f"{len(WORDS) - left.count() + 1} others"
    assert left.locator(".name").all_text_contents() == right.locator(".name").all_text_contents()
    for row in range(left.count()):
        assert left.nth(row).bounding_box()["y"] == right.nth(row).bounding_box()["y"]


def test_bars_of_compared_models_mirror_each_other_around_words(studio):
    page = studio(filler()[2])
    assert page.locator(".side-title b").all_text_contents() == ["Both sides", "Left side only"]
    both, left = (page.locator(".sides > .bar-list").nth(which) for which in (0, 1))
    word, ahead, behind = (
        one.first.bounding_box() for one in (both.locator(".name"), both.locator(".track"), left.locator(".track"))
    )
    assert behind["x"] + behind["width"] <= word["x"]
    assert word["x"] + word["width"] <= ahead["x"]
    bar, mirrored = (one.locator(".bar").first.bounding_box() for one in (both, left))
    assert bar["x"] == pytest.approx(ahead["x"], abs=1)
    assert mirrored["x"] + mirrored["width"] == pytest.approx(behind["x"] + behind["width"], abs=1)


@pytest.mark.parametrize("kind", ["classify", "fill"])
def test_phone_layout_stacks_answer_and_has_touch_targets(studio, kind):
    page = studio(MADE[kind](), width=400)
    tops = [page.locator(one).bounding_box()["y"] for one in (".word-list", ".prediction", ".foot", ".heads-of-model")]
    assert tops == sorted(tops)
    heights = page.locator(".examples button, .foot button, .studio-summary button").evaluate_all(
        "all => all.filter(one => one.offsetParent).map(one => one.offsetHeight)"
    )
    assert len(heights) > 4
    assert min(heights) >= 40


def guess_at(page, row):
    """The id of the guess in a row of the bars."""
    return [spoken(name) for name in WORDS.tokens(range(len(WORDS)))].index(
        [*shares(page, ".gap .bar-list >> nth=0")][row]
    )


def test_fill_hides_shows_and_fills_in_words(studio, tmp_path):
    bert, _, made = filler()
    page = studio(made)
    assert [text for text in words(page) if text == "?"] == ["?", "?"]
    gap = page.locator(".word-list .word.blank").nth(1)
    gap.click()  # of several gaps, one is chosen first
    assert page.get_by_role("tab", selected=True).text_content() == "“\u2068was\u2069”"
    assert gap.get_attribute("class").split()[-1] == "chosen"
    assert page.locator(".word-list .chosen").count() == 1
    gap.click()
    click_word(page, "music")
    ids = encode_with_specials(TEXT, back=(SEP,))
    ids[4] = ids[10 - 1 + 1] = MASK
    check_against_torch(page, bert, ids)
    assert page.get_by_role("tab").all_text_contents() == ["“\u2068not\u2069”", "“\u2068music\u2069”"]
    assert page.get_by_role("tab", selected=True).text_content() == "“\u2068music\u2069”"  # hidden last
    names = [*shares(page, ".gap .bar-list >> nth=0")]
    row = next(
        n for n, name in enumerate(names) if n and name in WORDS.tokens(range(7, len(WORDS)))
    )  # no special token
    ids[10] = guess_at(page, row)
    page.locator(".gap .bar-row").nth(row).click()
    wait_until_idle(page)
    check_against_torch(page, bert, ids)
    put = WORDS.tokens(torch.tensor([ids[10]]))[0]
    assert words(page)[9] == put
    assert page.get_by_role("tab").count() == 0  # one gap is left
    assert page.get_by_role("group", name="Guesses for “\u2068not\u2069”").count() == 1
    assert focused(page, ".word.swapped")
    assert state(takes(page, "HTML", tmp_path))["filled"] == [[9, int(ids[10])]]
    page.locator(".word-list .word.swapped").click()
    wait_until_idle(page)
    ids[10] = MASK
    check_against_torch(page, bert, ids)
    click(page, "Uncover all words")
    check_against_torch(page, bert, encode_with_specials(TEXT, back=(SEP,)))
    assert page.locator(".guesses").text_content() == "No word is hidden."
    assert words(page)[9] == "music"


def test_fill_handles_multi_token_words_and_a_second_vocabulary(studio):
    bert, gpt, made = pieces()
    page = studio(made)
    front, back, mask = PIECES["[CLS]"], PIECES["[SEP]"], PIECES["[MASK]"]
    each = [len(PIECES.encode(one)) for one in ("the", "singing", "rings")]
    assert each[1] > 1
    ids = [front, *PIECES.encode("the").tolist(), *[mask] * each[1], *PIECES.encode("rings").tolist(), back]
    guesses = check_against_torch(page, bert, ids)
    left = check_against_torch(page, gpt, PAIRS.encode("the").tolist(), run="comparison")[-1]
    lists = page.locator(".sides .bar-list")
    assert lists.count() == each[1] + 1
    assert len(shares(page, f".bar-list >> nth={each[1]}")) >= 7
    assert next(iter(shares(page, ".bar-list >> nth=0"))) == PIECES.tokens(guesses[1 + each[0]].argmax()[None])[0]
    assert next(iter(shares(page, f".bar-list >> nth={each[1]}"))) == PAIRS.tokens(left.argmax()[None])[0]
    assert lists.nth(each[1]).locator("button").count() == 0  # one piece is no word of several
    click_word(page, "the")
    assert page.locator(".gap").first.locator(".bar-list").last.text_content() == "Left side onlynothing stands there"
    page.get_by_role("tab").nth(1).click()
    page.locator(".gap .bar-list").first.locator(".bar-row").first.click()
    wait_until_idle(page)
    assert page.locator(".blank").count() == 2  # a part of it is hidden still


def test_fill_works_by_keyboard_alone(studio):
    bert, _, made = filler()
    page = studio(made)
    type_by_keys(page, "a film that is fine")
    tab_to(page, ".word-list .word")
    press(page, "ArrowRight", "Enter")
    wait_until_idle(page)
    ids = encode_with_specials("a film that is fine", back=(SEP,))
    ids[2] = MASK
    check_against_torch(page, bert, ids)
    assert status_text(page) == "“film”: hidden"
    ids[2] = guess_at(page, 0)
    tab_to(page, "button.bar-row")
    press(page, "Enter")
    wait_until_idle(page)
    check_against_torch(page, bert, ids)
    assert focused(page, ".word[data-unit='1']")


def test_fill_arrow_keys_move_between_gaps(studio):
    page = studio(filler()[2])
    tab_to(page, "[role='tab']")
    for name in ("was", "not"):
        press(page, "ArrowRight")
        assert page.get_by_role("group", name=f"Guesses for “\u2068{name}\u2069”").count() == 1
        assert focused(page, "[role='tab'][aria-selected='true']")
    assert page.locator(".gap .bar-row").first.is_visible()


def test_fill_hides_words_of_hostile_text(studio):
    page = studio(filler()[2])
    hostile = "<b>the</b> \u202eplot שלום </script><img src=x onerror=alert(1)> [MASK]"
    types(page, hostile)
    assert page.locator(".word-list :is(b, img, script)").count() == 0
    click_word(page, "שלום")
    ids = encode_with_specials(hostile)[:23]
    assert WORDS.tokens(torch.tensor(ids)).count("[UNK]") > 4
    assert page.locator(".gap").count() == 1
    types(page, "plot 😀 " * 2000)
    assert status_text(page) == "the text is longer than the model reads: its first 22 words are shown"
    types(page, "")
    assert status_text(page) == "type a text"


def test_fill_reports_text_that_compared_model_cannot_encode(studio):
    gpt = GPT(7, context=9, layers=1, heads=1, dim=4)
    bert = BERT(len(WORDS), context=24, layers=1, heads=1, dim=4)
    page = studio(view.fill(bert, WORDS, "the plot", masked=1, compare_with=(gpt, CharacterTokenizer("the plo"))))
    assert page.locator(".sides .bar-list").last.locator(".bar-row:not(.others)").count() == 7
    types(page, "never plot")
    click_word(page, "plot")
    assert page.locator(".sides .bar-list").last.text_content() == (
        "Left side onlyits vocabulary lacks a character that stands there"
    )


# Both

MADE = {"classify": lambda: classifier()[1], "fill": lambda: filler()[2]}


@pytest.mark.parametrize("kind", MADE)
def test_saved_page_restores_state(studio, new_page, tmp_path, kind):
    page = studio(MADE[kind]())
    types(page, f"{TEXT} Unbekannt")
    click_word(page, "good")
    click_word(page, "music")
    if kind == "fill":
        page.locator(".gap").first.locator(".bar-row").nth(2).click()
    else:
        word(page, "never").dblclick()
        page.keyboard.type("always")
        page.keyboard.press("Enter")
    wait_until_idle(page)
    switch(page, 0, 2)
    leave(page)
    kinds = "all => all.map(one => one.className.replace(' from', ''))"
    before, kinds_before = shares(page), page.locator(".word-list .word").evaluate_all(kinds)
    path, own = takes(page, "HTML", tmp_path), new_page()
    goto_view(own, path)
    wait_until_idle(own)
    assert shares(own) == before
    assert words(own) == words(page)
    assert own.locator(".word-list .word").evaluate_all(kinds) == kinds_before
    assert own.locator("textarea").input_value() == f"{TEXT} Unbekannt"
    assert own.locator(".cell.off").count() == 1
    for one in ("PNG", "SVG"):
        assert takes(own, one, tmp_path).stat().st_size > 500


@pytest.mark.parametrize("kind", MADE)
def test_svg_contains_text_answer_and_selected_head(studio, tmp_path, kind):
    page = studio(MADE[kind]())
    svg = takes(page, "SVG", tmp_path).read_text("utf-8")
    for each in words(page):
        assert f">{each}</text>" in svg
    for number in list(shares(page).values())[:3]:
        assert f">{number.replace('<', '&lt;')}</text>" in svg
    layer, head = (MADE[kind]().document["state"][name] for name in ("layer", "head"))
    assert f">Layer {layer}, head {head}</text>" in svg
    assert "data:image/png" in svg


@pytest.mark.parametrize("kind", MADE)
def test_hovered_word_shows_attention_of_selected_head(studio, kind):
    model, front = (classifier()[0], [CLS]) if kind == "classify" else (filler()[0], [CLS])
    page = studio(with_state(MADE[kind](), layer=1, head=2))
    ids = encode_with_specials(TEXT, front)
    if kind == "fill":
        ids = [*(MASK if position in (4, 11) else one for position, one in enumerate(ids)), SEP]
    weights = logits(model, ids)[1]["blocks.1.attention.pattern"][0, 2]
    unpointed = backgrounds(page)
    for i in (1, 7):
        page.locator(".word-list .word").nth(i).hover()
        wait_until_idle(page)
        codes = (255 * weights[i + 1, 1 : 1 + len(unpointed)].sqrt()).round().tolist()
        assert shaded(page) == [code >= 8 for code in codes]
        inks = [sum(map(int, re.findall(r"\d+", shade or "rgb(255, 255, 255)"))) for shade in backgrounds(page)]
        darker = [ink for _, ink in sorted(zip(codes, inks))]
        assert darker == sorted(inks, reverse=True)  # the more weight, the more ink
        assert len(set(inks)) > 5
        assert page.locator(".word-list .from").count() == 1
        if kind == "classify":
            assert page.locator(".pane.text .scale").text_content() == "attention0%100%"
        assert plain(page.locator(".pane.text small").first.text_content()) == (
            f"Where “{WORDS.tokens([ids[i + 1]])[0]}” looks: layer 1, head 2"
        )
    pointed = backgrounds(page)
    switch(page, 1, 2)  # a head that is off looks at nothing
    assert page.locator(".word-list .from").count() == 0
    switch(page, 1, 2)
    assert backgrounds(page) == pointed  # though words are weighed anew
    leave(page)
    assert backgrounds(page) == unpointed
    if kind == "classify":
        assert "A word pushes" in page.locator(".pane.text .scale").text_content()
    assert plain(page.locator(".pane.text small").first.text_content()) == (
        "Shaded by the effect of each word" if kind == "classify" else "Where the hidden word looks: layer 1, head 2"
    )


def user_state(page):
    """All that a reader changes."""
    kinds = page.locator(".word-list .word").evaluate_all("all => all.map(one => one.className.replace(' from', ''))")
    measured, off = (page.locator(f".{state}").count() for state in ("model.measured", "cell.off"))
    chosen = page.locator(".cell.chosen .head").get_attribute("aria-label")
    return words(page), kinds, chosen, measured, off, page.locator("textarea").input_value()


@pytest.mark.parametrize("kind", MADE)
def test_undo_reverts_each_try(studio, kind):
    page = studio(MADE[kind]())
    names = page.locator(".examples button").all_text_contents()
    assert len(names) == 4
    first = user_state(page)
    for name in names:
        do_try(page, name)
        assert user_state(page) != first
        click(page, "Undo")
        assert user_state(page) == first
        assert button(page, "Undo").get_attribute("aria-disabled") == "true"
    do_try(page, "Switch all heads off")
    assert page.locator(".cell.off").count() == 6
    click(page, "All on")
    assert user_state(page) == first
    click(page, "Undo", "Undo")
    assert user_state(page) == first
    click(page, "Redo")
    assert page.locator(".cell.off").count() == 6


def test_classify_shading_follows_predicted_label_of_new_text(studio):
    model, made = classifier()
    page = studio(with_state(made, label=-3))
    for text in (TEXT, "a film with an ending", "never dull"):
        types(page, text)
        best = LABELS[int(logits(model, encode_with_specials(text))[0].argmax())]
        assert f"toward “{best}”" in plain(page.locator(".pane .scale").text_content())
        assert plain(page.locator(".prediction .metric").text_content()).startswith(f"log-odds of “{best}”")


def test_classify_summary_states_effect_of_ablating_head(studio):
    model, made = classifier()
    page = studio(with_state(made, layer=1, head=2))
    ids = encode_with_specials(TEXT)
    page.locator(".sentence-of-head", has_text="With this head off").wait_for()
    shares = [logits(model, ids, off)[0].softmax(0)[0].item() for off in ((), [(1, 2)])]
    assert plain(page.locator(".sentence-of-head").text_content()).endswith(f" {change_in_words(shares)}.")


def change_in_words(shares):
    """In percent or, where both read alike and are nearly certain, in log-odds."""
    before, after = map(format_percent, shares)
    if before != after:
        return f"from {before} to {after}"
    if 0.005 <= shares[0] <= 0.995:
        return f"stays at {before}"
    before, after = (f"{math.log(p / (1 - p)):+.1f}".replace("-", "−") for p in shares)
    return f"from {before} to {after}" if before != after else f"stays at {format_percent(shares[0])}"


def test_summary_states_log_odds_where_rounded_probabilities_are_equal(studio):
    """Of a classifier that is as good as certain."""
    model = copy.deepcopy(classifier()[0])
    with torch.no_grad():
        model.to_logits.bias[0] += 14
    ids = encode_with_specials(TEXT)

    def probability(*off):
        return logits(model, ids, off)[0].double().softmax(0)[0].item()

    addresses = [(layer, head) for layer in range(2) for head in range(3)]
    layer, head = min(addresses, key=lambda address: probability(address))  # which moves the log-odds most, downwards
    shares = [probability(), probability((layer, head))]
    made = view.classify(model, WORDS, LABELS, TEXT, bos=CLS, dtype="float32")
    page = studio(with_state(made, layer=layer, head=head))
    page.locator(".sentence-of-head", has_text="With this head off").wait_for()
    assert format_percent(shares[0]) == format_percent(shares[1])
    told = plain(page.locator(".sentence-of-head").text_content())
    assert f"the log-odds of “{LABELS[0]}” " in told
    assert told.endswith(f" {change_in_words(shares)}.")


def test_custom_tries_come_first(studio):
    examples = {"Dull": {"text": "the plot was dull", "ablated_heads": [["blocks.0.attention.pattern", 1]]}}
    bert, *_ = filler()
    for page in (
        studio(view.classify(classifier()[0], WORDS, LABELS, TEXT, bos=CLS, dtype="float32", examples=examples)),
        studio(view.fill(bert, WORDS, TEXT, masked=1, dtype="float32", examples=examples)),
    ):
        first = user_state(page)
        assert page.locator(".examples button").first.text_content() == "Dull"
        do_try(page, "Dull")
        assert user_state(page)[-2:] == (1, "the plot was dull")
        click(page, "Undo")
        assert user_state(page) == first


def test_classify_try_removes_most_important_word_without_shading(studio):
    model, made = classifier()
    page = studio(with_state(made, label=-1))
    do_try(page, "Strike out the word that counts most")
    ids = encode_with_specials(TEXT)
    scores = logits(model, ids)[0]
    answer = int(scores.argmax())  # which the words speak for, or against
    whole = log_odds(scores, answer)
    effects = [abs(log_odds(logits(model, ids[:i] + ids[i + 1 :])[0], answer) - whole) for i in range(1, len(ids))]
    most = effects.index(max(effects))
    assert page.locator(".word-list .struck").evaluate_all("all => all.map(one => Number(one.dataset.unit))") == [most]

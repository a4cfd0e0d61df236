"""`view.translate` in Chromium, offline: results match Python."""

import itertools

import pytest
import torch
from browser import control, goto_view, number, press, table, takes
from small_translators import (
    LENGTH,
    bars,
    model,
    nodes,
    search,
    source_ids,
    texts,
    token,
    tokenizers,
    translated,
    word,
)
from studio_pages import click, do_try, status_text, switch, tensor, type_in_editor, wait_until_idle, with_state
from writing_studios import spoken

from tfviz import generate, look, view
from tfviz.models import Transformer
from tfviz.models.transformer import EncoderOutput
from tfviz.text import train_bpe, train_whole_words

pytest_plugins = ["browser", "studio_pages"]
SEARCHES = [(1, 0.0), (2, 0.0), (8, 2.0)]  # tests/js/beam-search.test.js has others


def set_control(page, name, value):
    control(page, name).fill(str(value))
    wait_until_idle(page)


def expected_nodes(columns):
    """What the tree of these columns shows: the words of texts that went on, and their scores."""
    _, target = tokenizers()
    made = []
    for step, column in enumerate(columns):
        fresh = [(tokens, score) for tokens, _, score in column if len(tokens) == step + 1]
        made.append([(target.tokens([tokens[-1]])[0], score) for tokens, score in fresh])
    return made


def check_tree(page, columns):
    shown, expected = nodes(page), expected_nodes(columns)
    expected = expected[: len(shown)] + [one for one in expected[len(shown) :] if one]
    assert [[name for name, _ in column] for column in shown] == [[name for name, _ in column] for column in expected]
    for column, other in zip(shown, expected):
        assert [score for _, score in column] == pytest.approx([score for _, score in other], abs=0.0051)


def decoded_texts(columns):
    _, target = tokenizers()
    return [target.decode(tokens) for tokens, _, _ in columns[-1]]


def test_greedy_and_beam_search_match_python(studio):
    source, target = tokenizers()
    made, shown = translated()
    page = studio(shown)
    sentence = "eight six five four one seven two"
    type_in_editor(page, sentence)
    for num_beams, length_penalty in SEARCHES:
        set_control(page, "Beam", num_beams)
        set_control(page, "Length penalty", length_penalty)
        how = {"num_beams": num_beams, "length_penalty": length_penalty, "max_new_tokens": LENGTH}
        assert texts(page)[0] == generate.translate(made, [sentence], source, target, **how)[0]
        columns = search(made, sentence, **how)
        assert texts(page) == decoded_texts(columns)
        check_tree(page, columns)
        sums = [number(cells[0]) for cells in table(page, 1)[2]]
        assert sums == pytest.approx([total for _, total, _ in columns[-1]], abs=1e-3)


def test_probabilities_match_torch(studio):
    made, shown = translated(num_beams=4)
    told = studio(shown).evaluate("window.told")
    runs = [one for one in told if one["run"] == "decode" and not one["edits"]]
    assert max(one["inputs"]["target"]["shape"][0] for one in runs) == 4  # a beam is one run
    states, mask = made.encode(source_ids("one two three"))
    for one in runs:
        target = tensor(one["inputs"]["target"]).long()
        memory = EncoderOutput(states.expand(len(target), -1, -1), mask.expand(len(target), -1))
        with torch.no_grad():
            expected = made.decode(target, memory)
        found = tensor(one["outputs"]["logits"])
        torch.testing.assert_close(found.softmax(-1), expected.softmax(-1), rtol=0, atol=1e-4)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_bars_and_attention_maps_match_python(studio):
    made, shown = translated(num_beams=1, length_penalty=0.0)
    _, target = tokenizers()
    page = studio(shown)
    tokens = search(made, "one two three")[-1][0][0]
    read = torch.tensor([[target["[BOS]"], *tokens[:-1]]])
    with torch.no_grad(), look.capture(made) as seen:
        logits = made(source_ids("one two three"), read)[0]
    told = [one for one in page.evaluate("window.told") if one["run"] == "decode" and not one["edits"]]
    last = [one for one in told if one["patterns"]][-1]
    assert last["inputs"]["target"]["data"] == read[0].tolist()
    for site, pattern in last["patterns"].items():
        torch.testing.assert_close(tensor(pattern[-1]), seen[site], rtol=0, atol=1e-4)
    assert len(last["patterns"]) == 4
    for position in (1, len(tokens) - 1):
        page.locator(".written .word").nth(position).click()
        wait_until_idle(page)
        shares = logits[position].softmax(-1)
        shares[[0, target["[BOS]"]]] = 0
        top = shares.topk(len(bars(page)))
        assert [name for name, _ in bars(page)] == target.tokens(top.indices)
        percents = [100 * float(p) for p in top.values[:5]]
        assert [share for _, share in bars(page)][:5] == pytest.approx(percents, rel=0.06)


def test_strongest_cross_attention_opens_first_with_predicted_words_as_rows(studio):
    made, shown = translated(num_beams=1, length_penalty=0.0)
    _, target = tokenizers()
    page = studio(shown)
    click(page, "Open this head ↓")
    heads, rows, cells = table_of(page, page.locator(".inner"))
    tokens = search(made, "one two three")[-1][0][0]
    assert heads == ["one", "two", "three", "[EOS]"]
    assert rows == target.tokens(tokens)
    inputs = source_ids("one two three"), torch.tensor([[target["[BOS]"], *tokens[:-1]]])
    with torch.no_grad(), look.capture(made) as seen:
        logits = made(*inputs)[0]
    logits[:, [0, target["[BOS]"]]] = -torch.inf  # neither is ever written
    unsure = int(logits.softmax(-1)[range(len(tokens)), tokens][: max(1, len(tokens) - 1)].argmin())

    def change(layer, head):
        with torch.no_grad(), look.capture(made, edit={f"decoder.{layer}.cross.pattern": look.edits.zero(head)}):
            changed = made(*inputs)[0, unsure].softmax(-1)
        return (changed - whole).abs().sum()

    with torch.no_grad():
        whole = made(*inputs)[0, unsure].softmax(-1)

    addresses = itertools.product(range(2), range(seen["decoder.0.cross.pattern"].shape[1]))
    layer, head = max(addresses, key=lambda address: change(*address))
    expected = seen[f"decoder.{layer}.cross.pattern"][0, head]
    found = torch.tensor([[float(cell) for cell in row] for row in cells])
    torch.testing.assert_close(found, expected, rtol=0.06, atol=1e-4)


def table_of(page, where):
    """The twin of the view of heads: columns, rows, cells."""
    twin = where.locator("details", has_text="Table").first
    twin.locator("summary").click()
    wait_until_idle(page)
    heads, *rows = twin.locator("table tr").evaluate_all("rows => rows.map(r => [...r.cells].map(c => c.innerText))")
    return heads[1:], [row[0] for row in rows], [row[1:] for row in rows]


@pytest.mark.parametrize(("num_beams", "length_penalty"), [(1, 0.0), (3, 0.6)])
def test_forced_word_continues_search_from_its_prefix(studio, num_beams, length_penalty):
    made, shown = translated()
    _, target = tokenizers()
    page = studio(with_state(shown, num_beams=num_beams, length_penalty=length_penalty))
    written = search(made, "one two three", num_beams=num_beams, length_penalty=length_penalty)[-1][0][0]
    page.locator(".written .word").nth(1).click()
    wait_until_idle(page)
    names = [name for name, _ in bars(page)]
    pick = next(i for i, name in enumerate(names) if name not in ("[EOS]", target.tokens([written[1]])[0]))
    page.locator(".bar-list .bar-row").nth(pick).click()
    wait_until_idle(page)
    prefix = [written[0], target[names[pick]]]
    columns = search(made, "one two three", prefix, num_beams, length_penalty)
    assert texts(page) == decoded_texts(columns)
    check_tree(page, columns)
    assert page.locator(".written .forced").all_text_contents() == target.tokens(prefix)
    click(page, "nothing")  # back to the free search
    assert texts(page) == decoded_texts(
        search(made, "one two three", num_beams=num_beams, length_penalty=length_penalty)
    )


def test_step_buttons_walk_search_tree(studio):
    made, shown = translated()
    page = studio(with_state(shown, num_beams=3, steps=0))
    columns = search(made, "one two three", num_beams=3, length_penalty=0.6)
    assert (nodes(page), word(page)) == ([], ["…"])
    for count in (1, 2, 3):
        click(page, "Step")
        check_tree(page, columns[:count])
    click(page, "Back")
    check_tree(page, columns[:2])
    click(page, "▶ Translate")
    check_tree(page, columns)
    click(page, "Start over")
    assert nodes(page) == []


def test_tree_node_shows_its_text_by_mouse_and_keyboard(studio):
    made, shown = translated()
    _, target = tokenizers()
    page = studio(with_state(shown, num_beams=3))
    columns = search(made, "one two three", num_beams=3, length_penalty=0.6)
    page.locator(".node[data-node='1 2']").click()
    wait_until_idle(page)
    assert word(page) == [*target.tokens(columns[1][2][0]), "…"]
    asked = page.evaluate("window.told.at(-1).inputs.target.data")
    assert asked == [target["[BOS]"], *columns[1][2][0]]
    press(page, "ArrowUp", "ArrowUp", "Enter")
    wait_until_idle(page)
    assert word(page) == [*target.tokens(columns[1][0][0]), "…"]
    press(page, "ArrowLeft", "Enter")
    wait_until_idle(page)
    assert len(word(page)) == 2


def test_translate_works_by_keyboard_alone(studio):
    made, shown = translated()
    _, target = tokenizers()
    page = studio(with_state(shown, num_beams=1, length_penalty=0.0, steps=0))
    page.locator(".editor").focus()
    press(page, "Control+A")
    page.keyboard.type("four nine")
    wait_until_idle(page)
    press(page, "Alt+s")
    wait_until_idle(page)
    option_s = {"key": "ß", "code": "KeyS", "altKey": True}  # as a Mac has it
    page.locator(".editor").dispatch_event("keydown", option_s)
    wait_until_idle(page)
    columns = search(made, "four nine")
    assert word(page)[:2] == target.tokens(columns[1][0][0])
    press(page, "Alt+b")
    wait_until_idle(page)
    assert len(word(page)) == 2
    for _ in range(40):
        press(page, "Tab")
        if page.evaluate("document.activeElement.shadowRoot.activeElement.matches('.bar-row')"):
            break
    press(page, "Tab", "Enter")
    wait_until_idle(page)
    with torch.no_grad():
        read = torch.tensor([[target["[BOS]"], *columns[0][0][0]]])
        logits = made(source_ids("four nine"), read)[0, -1].index_fill(-1, read[0, 0], -torch.inf)
    forced = [*columns[0][0][0], int(logits[1:].topk(2).indices[1]) + 1]
    assert [token(one) for one in page.locator(".written .forced").all_text_contents()] == target.tokens(forced)
    press(page, "Alt+r")
    wait_until_idle(page)
    assert texts(page) == decoded_texts(search(made, "four nine", forced))


def test_ablated_heads_match_capture_edits(studio):
    made, shown = translated()
    source, target = tokenizers()
    off = [["encoder.1.attention.pattern", 2], ["decoder.0.cross.pattern", 1], ["decoder.1.attention.pattern", 0]]
    page = studio(with_state(shown, ablated_heads=off, num_beams=1, length_penalty=0.0))
    told = [one for one in page.evaluate("window.told") if one["run"] == "decode"]
    of_decoder = [site for site, _ in off if site.startswith("decoder")]
    edited = [one for one in told if len(one["edits"]) == len(of_decoder)][-1]  # others measure what a head is worth
    read = tensor(edited["inputs"]["target"]).long()

    def without(head):
        return lambda weights: weights.index_fill(1, torch.tensor([head]), 0)

    with torch.no_grad(), look.capture(made, edit={site: without(head) for site, head in off}):
        expected = made(source_ids("one two three"), read)
    torch.testing.assert_close(tensor(edited["outputs"]["logits"]), expected, rtol=1e-4, atol=1e-4)
    metric = page.locator(".metric").text_content()
    assert "with all heads on" in metric
    assert page.locator(".bar-list .before").count() == page.locator(".bar-list .bar-row:not(.others)").count()
    click(page, "All on")
    assert (
        texts(page)[0]
        == generate.translate(made, ["one two three"], source, target, num_beams=1, max_new_tokens=LENGTH)[0]
    )
    assert "with all heads on" not in page.locator(".metric").text_content()


def test_heads_are_ablated_by_key_button_and_layer(studio):
    _, shown = translated()
    page = studio(shown)
    switch(page, 0, 0, "cross-attention")
    edits = [one["edits"] for one in page.evaluate("window.told")]
    assert [{"site": "decoder.0.cross.pattern", "head": 0, "kind": "zero"}] in edits
    assert page.locator(".cell.off").count() == 1
    cell = page.locator(".cell").filter(has=page.get_by_role("button", name="encoder, head 2 of layer 1, on"))
    cell.locator(".head").click()  # in the middle of a small map, which no cross covers
    wait_until_idle(page)
    assert page.locator(".cell.chosen button").first.get_attribute("aria-label") == "encoder, head 2 of layer 1, on"
    assert page.locator(".cell.off").count() == 1
    click(page, "Switch it off")
    wait_until_idle(page)
    assert page.locator(".cell.off").count() == 2
    layer = page.get_by_role("button", name="decoder, layer 1: switch all its heads off or on")
    for count in (5, 2):
        layer.click()
        wait_until_idle(page)
        assert page.locator(".cell.off").count() == count
        assert layer.get_attribute("aria-pressed") == str(count == 5).lower()


def test_arrow_keys_move_between_heads_of_all_parts(studio):
    _, shown = translated()
    page = studio(shown)
    names = page.locator(".cell > .head").evaluate_all("heads => heads.map(head => head.getAttribute('aria-label'))")
    way = [name for name in names if " 1 of layer" in name]  # part by part, layer by layer
    column = [name for name in names if name.startswith("encoder") and "of layer 1" in name]
    assert (len(way), len(column)) == (6, 3)

    def focused_after(key):
        press(page, key)
        return page.evaluate("document.activeElement.shadowRoot.activeElement.getAttribute('aria-label')")

    for key, (first, *others) in {
        "ArrowRight": way, "ArrowLeft": way[::-1], "ArrowDown": column, "ArrowUp": column[::-1],
    }.items():  # fmt: skip
        page.get_by_role("button", name=first).focus()
        assert [focused_after(key) for _ in others] == others
        assert focused_after(key) == others[-1]


def test_last_typed_sentence_is_translated(studio):
    made, shown = translated()
    page = studio(with_state(shown, num_beams=5))
    page.locator(".editor").fill("")
    page.locator(".editor").press_sequentially("nine six eight two", delay=1)
    wait_until_idle(page)
    assert texts(page) == decoded_texts(search(made, "nine six eight two", num_beams=5, length_penalty=0.6))


def test_hostile_and_unknown_text_is_accepted(studio):
    _, shown = translated()
    page = studio(shown)
    markup = ("<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>")
    for text in (*markup, "\0\u202e one \u2066", "one " * 2500):
        type_in_editor(page, text)
        assert texts(page)
        assert "cannot show" not in status_text(page)
        assert page.locator(".editor").text_content() == text
    assert "longer than the model reads" in status_text(page)
    type_in_editor(page, "one zebra")
    assert "lacks 1 of these words" in status_text(page)
    assert page.evaluate("window.told.at(-1).run") in ("encode", "decode")


def test_hostile_output_words_are_shown_as_text(studio):
    bite = ["<b>&amp;</b>", "</script>", "עולם", "漢字"]
    both = train_whole_words([" ".join(bite)])
    torch.manual_seed(0)
    made = Transformer(len(both), context=12, layers=1, heads=2, dim=16).eval()
    page = studio(view.translate(made, both, "漢字", dtype="float32", num_beams=4, max_new_tokens=6))
    assert page.locator(".written b").count() == 0
    assert (
        texts(page)[0] == generate.translate(made, ["漢字"], both, num_beams=4, length_penalty=0.6, max_new_tokens=6)[0]
    )


def test_byte_pair_vocabulary_matches_beam_search(studio):
    both = train_bpe(["für die Straße und über das Haus 漢字"], 300)
    torch.manual_seed(1)
    made = Transformer(len(both), context=32, layers=1, heads=2, dim=16).eval()
    page = studio(view.translate(made, both, "die Straße", dtype="float32", num_beams=1, max_new_tokens=8))
    source = torch.tensor([[*both.encode("die Straße").tolist(), both["[EOS]"]]])
    found = generate.beam.search(made, source, bos=both["[BOS]"], eos=both["[EOS]"], num_beams=1, max_new_tokens=8)
    last = [one for one in page.evaluate("window.told") if one["run"] == "decode"][-1]
    assert last["inputs"]["target"]["data"] == found.sequences[0, 0, :8].tolist()
    assert page.locator(".written.loose").count() == 0


def test_empty_sentence_is_reported(studio):
    made = model()
    source, target = tokenizers()
    page = studio(
        view.translate(made, tokenizers(), "one", dtype="float32", eos=None, num_beams=4, max_new_tokens=LENGTH)
    )
    how = {"num_beams": 4, "length_penalty": 0.6, "max_new_tokens": LENGTH, "eos": None}
    assert texts(page)[0] == generate.translate(made, ["one"], source, target, **how)[0]
    type_in_editor(page, "")
    assert status_text(page) == "type a sentence to translate"


def user_state(page):
    """All that a reader changes."""
    return word(page), nodes(page), page.locator(".cell.off").count(), control(page, "Beam").input_value()


def test_undo_reverts_each_try(studio):
    made, shown = translated()
    page = studio(with_state(shown, num_beams=2, steps=2))
    first, seen = user_state(page), []
    for name in page.locator(".examples button").all_text_contents():
        do_try(page, name)
        seen.append(user_state(page))
        click(page, "Undo")
        assert user_state(page) == first
        assert page.locator("button[aria-disabled]").first.get_attribute("aria-disabled") == "true"
    whole, one, four, forced, off = seen
    assert whole[0] == tokenizers()[1].tokens(search(made, "one two three", num_beams=2, length_penalty=0.6)[-1][0][0])
    assert len(one[1]) == 1
    assert four[3] == "4"
    logs = search(made, "one two three", num_beams=9)[0]
    assert forced[0][0] == tokenizers()[1].tokens(logs[1][0])[0]
    assert off[2] == 18


def shaded(page, where):
    """The words that have a background, and the one that looks."""
    return page.locator(where).evaluate_all(
        "all => all.map(one => [one.textContent, Boolean(one.style.backgroundColor), one.classList.contains('from')])"
        ".filter(([word]) => word.trim())"
    )


def visible(row):
    """Which weights a page shows as a shade: those of 8 codes of 255 or more, on the scale of square roots."""
    return [code >= 8 for code in (255 * row.sqrt()).round().tolist()]


def test_hovered_target_word_shades_source(studio):
    made, shown = translated(num_beams=1, length_penalty=0.0)
    _, target = tokenizers()
    page = studio(shown)
    tokens = search(made, "one two three")[-1][0][0]
    with torch.no_grad(), look.capture(made) as seen:
        made(source_ids("one two three"), torch.tensor([[target["[BOS]"], *tokens[:-1]]]))
    weights = seen["decoder.0.cross.pattern"][0, 0]
    page.get_by_role("button", name="cross-attention, head 0 of layer 0, on").click()
    for position in (0, 2):
        page.locator(".written .word").nth(position).hover()
        wait_until_idle(page)
        words = shaded(page, ".editor .token")
        assert [shade for _, shade, _ in words] == visible(weights[position, :3])  # without the end of the sentence
        assert [at for at, (_, _, looks) in enumerate(shaded(page, ".written .word")) if looks] == [position]
    page.get_by_role("button", name="encoder, head 1 of layer 1, on").click()
    page.locator(".editor .token", has_text="two").hover()
    wait_until_idle(page)
    words = shaded(page, ".editor .token")
    assert [shade for _, shade, _ in words] == visible(seen["encoder.1.attention.pattern"][0, 1, 1, :3])
    assert [word for word, _, looks in words if looks] == ["two"]
    page.get_by_role("button", name="decoder, head 2 of layer 1, on").click()
    page.locator(".written .word").nth(1).hover()
    wait_until_idle(page)
    words = shaded(page, ".written .word")
    own = seen["decoder.1.attention.pattern"][0, 2, 2, 1:]  # the second word looks; the first key is the beginning
    assert [shade for _, shade, _ in words][:2] == visible(own[:2])
    assert [at for at, (_, _, looks) in enumerate(words) if looks] == [1]
    assert not any(shade for _, shade, _ in shaded(page, ".editor .token"))


def test_search_tree_is_open_with_several_beams(studio):
    page = studio(translated(num_beams=1)[1])
    searched = page.locator(".search-of")
    assert searched.get_attribute("open") is None
    set_control(page, "Beam", 3)
    assert searched.get_attribute("open") is not None
    set_control(page, "Beam", 1)
    assert searched.get_attribute("open") is None


def test_step_after_finished_translation_restarts(studio):
    made, shown = translated(num_beams=1, length_penalty=0.0)
    _, target = tokenizers()
    page = studio(shown)
    written = search(made, "one two three")[-1][0][0]
    for count in (1, 2):
        click(page, "Step")
        assert word(page) == [*target.tokens(written[:count]), "…"]


def test_saved_page_restores_state(studio, new_page, tmp_path):
    _, shown = translated()
    page = studio(with_state(shown, num_beams=2))
    type_in_editor(page, "five one")
    page.locator(".written .word").first.click()
    wait_until_idle(page)
    page.locator(".bar-list .bar-row").nth(1).click()
    wait_until_idle(page)
    switch(page, 1, 0, "decoder")
    own = new_page()
    goto_view(own, takes(page, "HTML", tmp_path))
    wait_until_idle(own)
    assert user_state(own) == user_state(page)
    assert (texts(own), bars(own)) == (texts(page), bars(page))
    assert own.locator(".editor").text_content() == "five one"


def test_exports_contain_search_tree_and_probabilities(studio, tmp_path):
    made, shown = translated()
    page = studio(shown)
    taken = {}
    for kind in ("SVG", "CSV", "PNG"):
        taken[kind] = takes(page, kind, tmp_path).read_bytes()
    columns = search(made, "one two three", num_beams=4, length_penalty=0.6)
    for column in expected_nodes(columns):
        for name, score in column:
            assert f">{spoken(name)}</text>" in taken["SVG"].decode()
            assert f">{score:.2f}<".replace("-", "−") in taken["SVG"].decode()
    assert taken["CSV"].decode().startswith('"word","probability"')
    assert taken["PNG"][1:4] == b"PNG"

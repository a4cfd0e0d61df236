"""`view.write` in Chromium, offline: results match Python."""

import math
import re
import struct

import pytest
import torch
from browser import control, goto_view, plain, press, takes
from small_models import randomize_weights
from studio_pages import (
    button,
    click,
    do_try,
    focused,
    open_with_kernel,
    remove_and_restore,
    state,
    status_text,
    switch,
    tab_to,
    type_in_editor,
    wait_until_idle,
    with_state,
)
from studio_pages import tensor as numbers
from torch.nn import functional
from writing_studios import CONTEXT, SIGNS, TOKENIZER, bars, format_percent, path_of, shown, write_studio

from tfviz import generate, look, view
from tfviz.layers.masks import causal, dilated, per_head, window
from tfviz.models import GPT
from tfviz.text import ByteTokenizer, CharacterTokenizer, train_whole_words
from tfviz.view.page.html import View

pytest_plugins = ["browser", "studio_pages"]
STEP, RUN, LIKELIEST = "One letter", "▶ Write on", 10
SAMPLERS = {  # tests/view/test_sampler_in_js.py has the others
    "greedy": {"temperature": 0},
    "both filters": {"temperature": 2.0, "top_k": 7, "top_p": 0.8},
}


def sampler_controls(given):
    return {"temperature": given.get("temperature", 1), "top_k": given.get("top_k", 0), "top_p": given.get("top_p", 1)}


def saved_state(page, tmp_path):
    return state(takes(page, "HTML", tmp_path))


def logits(model, text):
    with torch.no_grad():
        return model(TOKENIZER.encode(text)[None])[0]


# What is computed


@pytest.mark.parametrize("kind", ["own", "gpt2"])  # with other positions and masks: tests/portable/test_engine.py
def test_logits_and_attention_maps_match_torch_at_each_step(studio, kind):
    model, made = hugging_face() if kind == "gpt2" else write_studio()
    page = studio(made)
    click(page, *[STEP] * 6)
    told = [one for one in page.evaluate("told") if not one["edits"]]  # others are of the sentence below
    assert [one["run"] for one in told] == (["read"] * 7 if kind == "gpt2" else ["read"] + ["step"] * 6)
    whole = TOKENIZER.encode("abc").tolist()
    for one in told:
        whole = one["ids"] if one["run"] == "read" else whole + one["ids"]
        with torch.no_grad(), look.capture(model, "*.pattern") as seen:
            answer = model(torch.tensor([whole]))
        expected = getattr(answer, "logits", answer)[:, -len(one["ids"]) :]
        torch.testing.assert_close(numbers(one["outputs"]["logits"]), expected, rtol=0, atol=1e-4)
        assert list(one["patterns"]) == list(seen)
        for site, pattern in seen.items():
            torch.testing.assert_close(
                numbers(one["patterns"][site][0]), pattern[:, :, -len(one["ids"]) :], rtol=0, atol=1e-5
            )
    assert len(whole) == 9


def hugging_face():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(5)
    config = transformers.GPT2Config(vocab_size=len(TOKENIZER), n_positions=20, n_embd=12, n_layer=2, n_head=3)
    model = transformers.GPT2LMHeadModel(config).eval()
    return model, view.write(model, TOKENIZER, "abc", dtype="float32")


@pytest.mark.parametrize("name", SAMPLERS)
def test_seeded_sampling_matches_generate_text_beyond_context(studio, tmp_path, name):
    model, made = write_studio()
    page = studio(with_state(made, most=40, prompt="bad. face", seed=11, **sampler_controls(SAMPLERS[name])))
    button(page, RUN).click()
    page.locator(".status", has_text="stopped").wait_for()
    assert status_text(page) == "stopped after 40 letters: press “Write on” for more"
    wait_until_idle(page)
    expected = generate.text(model, TOKENIZER, "bad. face", 40, generate.Sampler(**SAMPLERS[name]), seed=11)
    chosen = saved_state(page, tmp_path)
    assert chosen["prompt"] + TOKENIZER.decode(torch.tensor(path_of(chosen))) == expected
    assert page.locator(".token:not(.past)").count() <= CONTEXT + 1
    button(page, STEP).click()
    wait_until_idle(page)
    assert len(path_of(saved_state(page, tmp_path))) == 41


def test_bars_match_sampler_probabilities(studio, tmp_path):
    model, made = write_studio()
    page = studio(made)

    def same(**given):
        shares = generate.Sampler(**given).probabilities(logits(model, "abc")[-1])
        order = logits(model, "abc")[-1].argsort(descending=True)[:LIKELIEST]
        assert list(bars(page).values()) == [format_percent(share) for share in shares[order].tolist()]
        assert next(iter(bars(page))) == TOKENIZER.tokens(order)[0].replace("\u202e", "⟨202E⟩")

    same()
    control(page, "Temperature").fill("0.4")
    wait_until_idle(page)
    same(temperature=0.4)
    line = page.get_by_role("slider", name="How many tokens may be drawn")
    line.focus()
    press(page, "Home", "ArrowDown", "ArrowDown", "ArrowDown")
    wait_until_idle(page)
    same(temperature=0.4, top_k=4)
    assert line.get_attribute("aria-valuetext") == "top-k 4 · drag"
    assert page.locator(".bar-row.lost").count() == LIKELIEST - 4
    page.get_by_role("tab", name="top-p").click()
    wait_until_idle(page)
    share = saved_state(page, tmp_path)["top_p"]
    assert saved_state(page, tmp_path / "again")["top_k"] == 0
    same(temperature=0.4, top_p=share)
    assert page.locator(".bar-row.lost").count() == LIKELIEST - 4  # the line stays where it is
    line.focus()
    press(page, "End")
    wait_until_idle(page)
    same(temperature=0.4)
    assert sum(one["run"] == "read" and not one["edits"] for one in page.evaluate("told")) == 1  # nothing again


def test_dragged_top_k_line_rounds_to_nearest_bar(studio, tmp_path):
    page = studio(write_studio()[1])
    line, rows = page.locator(".threshold"), page.locator(".bar-list .bar-row")

    def drag_to(*points):
        """Onto a share of the height of a bar each, and let go at the last."""
        start = line.bounding_box()
        page.mouse.move(start["x"] + 9, start["y"] + 4)
        page.mouse.down()
        for row_index, part in points:
            row = rows.nth(row_index).bounding_box()
            page.mouse.move(start["x"] + 9, row["y"] + part * row["height"])
            wait_until_idle(page)
        page.mouse.up()

    for row_index, part, kept in ((6, 0.6, 7), (6, 0.4, 6), (2, 0.4, 2), (2, 0.6, 3), (0, 0.1, 1)):
        drag_to((row_index, part))
        assert line.get_attribute("aria-valuenow") == str(kept)
    drag_to((7, 0.9), (4, 0.9), (1, 0.9))
    assert saved_state(page, tmp_path)["top_k"] == 2


def test_ablated_heads_and_their_loss_match_python(studio):
    model, made = write_studio()
    page = studio(with_state(made, prompt="face.bad"))
    ids = TOKENIZER.encode("face.bad")
    whole = functional.cross_entropy(logits(model, "face.bad")[:-1], ids[1:]).item()
    assert page.locator(".metric").text_content() == f"{guess_words(whole, len(TOKENIZER))} ({whole:.2f} nats a letter)"
    switch(page, 0, 1)
    switch(page, 1, 2)
    edit = {f"blocks.{layer}.attention.pattern": look.edits.zero(head) for layer, head in ((0, 1), (1, 2))}
    with torch.no_grad(), look.capture(model, "*.pattern", edit=edit) as seen:
        expected = model(ids[None])
    told = [one for one in page.evaluate("told") if len(one["edits"]) == 2 and one["patterns"]][-1]
    torch.testing.assert_close(numbers(told["outputs"]["logits"]), expected, rtol=0, atol=1e-4)
    for site, pattern in seen.items():
        torch.testing.assert_close(numbers(told["patterns"][site][0]), pattern, rtol=0, atol=1e-5)
    now = functional.cross_entropy(expected[0, :-1], ids[1:]).item()
    assert page.locator(".metric").text_content() == f"{now:.2f} nats a letter without 2 heads, {whole:.2f} with all"
    assert list(bars(page).values()) == [
        format_percent(p) for p in expected[0, -1].softmax(-1).topk(LIKELIEST).values.tolist()
    ]
    assert page.locator(".bar-list .before").count() == LIKELIEST
    click(page, STEP)  # reads all again, heads still off
    ids = torch.cat((ids, torch.tensor([page.evaluate("told")[-1]["ids"][-1]])))
    with torch.no_grad(), look.capture(model, edit=edit):
        expected = model(ids[None])
    told = [one for one in page.evaluate("told") if len(one["edits"]) == 2 and len(one["ids"]) == 9][-1]
    torch.testing.assert_close(numbers(told["outputs"]["logits"]), expected, rtol=0, atol=1e-4)
    click(page, "All on")
    assert page.locator(".bar-list .before").count() == 0
    assert page.locator(".cell.off").count() == 0


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_tokens_move_to_their_new_ranks_while_the_text_stays(studio, motion):
    """A number says what each was; with reduced motion nothing moves."""
    _, made = write_studio()
    page = studio(with_state(made, prompt="face.bad"), reduced_motion=motion)
    page.evaluate("""() => {
      globalThis.moved = 0;
      const animate = Element.prototype.animate;
      Element.prototype.animate = function (frames, ...rest) {
        if (this.matches(".bar-row")) globalThis.moved += 1;
        return animate.call(this, frames, ...rest);
      };
    }""")
    before = bars(page)
    switch(page, 0, 1)
    after = bars(page)
    assert list(before) != list(after)
    was = page.locator(".bar-list .bar-row").evaluate_all(
        "rows => rows.map(row => [row.querySelector('.name').textContent, row.querySelector('.was')?.textContent])"
    )
    for name, text in was:
        name = plain(name).strip("“”")
        if name in before:
            assert text == (None if before[name] == after[name] else f"was {before[name]}")
    assert (page.evaluate("moved") > 0) == (motion == "no-preference")
    moved = page.evaluate("moved")
    click(page, STEP)  # another text: its tokens do not move
    assert page.evaluate("moved") == moved


def choices(loss):
    """The number of equally likely letters among which a choice would cost as much, to two digits."""
    return f"{float(f'{math.exp(loss):.1e}'):g}"


def guess_words(loss, vocab_size):
    if loss > math.log(vocab_size):
        return f"Worse than guessing among all {vocab_size} letters"
    return f"Like guessing among {choices(loss)} of {vocab_size} letters"


def guess_comparison(loss, other):
    if max(loss, other) > math.log(len(TOKENIZER)):
        return ""
    return f": like guessing among {choices(loss)} letters instead of {choices(other)}"


def test_head_sentence_states_ablation_loss(studio):
    """Where its weights are largest, and what the text costs without it."""
    model, made = write_studio()
    text = "face.badface.bad"
    page = studio(with_state(made, prompt=text, layer=1, head=2))
    ids = TOKENIZER.encode(text)
    page.wait_for_function(
        "() => document.querySelector('.tfviz').shadowRoot"
        ".querySelector('.studio-summary p').textContent.includes('nats')"
    )
    with torch.no_grad(), look.capture(model, edit={"blocks.1.attention.pattern": look.edits.zero(2)}):
        without = functional.cross_entropy(model(ids[None])[0, :-1], ids[1:]).item()
    whole = functional.cross_entropy(logits(model, text)[:-1], ids[1:]).item()
    told = page.locator(".studio-summary p").text_content()
    assert told.startswith("Layer 1, head 2 ")
    assert told.endswith(
        f"With this head off the text costs {without:.2f} nats a letter instead of {whole:.2f}"
        f"{guess_comparison(without, whole)}."
    )
    switch(page, 1, 2)
    page.wait_for_function(
        "() => document.querySelector('.tfviz').shadowRoot"
        ".querySelector('.studio-summary p').textContent.includes('off. The')"
    )
    told = page.locator(".studio-summary p").text_content()
    assert told == (
        f"Layer 1, head 2 is off. The text costs {without:.2f} nats a letter instead of {whole:.2f}"
        f"{guess_comparison(without, whole)}."
    )
    assert button(page, "Open this head ↓").count() == 0  # a head that is off has no map to open
    switch(page, 1, 2)
    click(page, "Open this head ↓")
    assert page.locator(".inner .caption, .inner h3").all_text_contents()[0] == "Layer 1, head 2"
    switch(page, 1, 2)
    assert page.locator(".inner .caption, .inner h3").all_text_contents()[0] != "Layer 1, head 2"  # one that is on


def test_head_sentence_accounts_for_other_ablated_heads(studio):
    model, made = write_studio()
    page = studio(with_state(made, prompt="face.badface.bad", layer=1, head=2))
    switch(page, 0, 2)  # of the same number, in another layer
    page.get_by_role("button", name="head 2 of layer 1, on").click()
    ids = TOKENIZER.encode("face.badface.bad")

    def loss(*layers):
        edit = {f"blocks.{layer}.attention.pattern": look.edits.zero(2) for layer in layers}
        with torch.no_grad(), look.capture(model, edit=edit):
            return f"{functional.cross_entropy(model(ids[None])[0, :-1], ids[1:]):.2f}"

    assert len({loss(), loss(0), loss(1), loss(0, 1)}) == 4
    page.get_by_text(f"With this head off the text costs {loss(0, 1)} nats a letter instead of {loss(0)}").wait_for()
    switch(page, 1, 2)
    page.get_by_text(f"is off. The text costs {loss(0, 1)} nats a letter instead of {loss(0)}").wait_for()


def test_tokens_outside_vocabulary_are_never_offered(studio):
    """Of a model whose sizes are rounded up, and which likes best what there is not."""
    letters = CharacterTokenizer("abcdefghijklmnopqrst")
    model = randomize_weights(GPT(22, context=12, layers=1, heads=2, dim=12))
    with torch.no_grad():
        model.tokens.weight[20:] *= 9
    page = studio(view.write(model, letters, "abcd", dtype="float32", temperature=0))
    with torch.no_grad():
        scores = model(letters.encode("abcd")[None])[0, :, :20]
    likeliest = letters.tokens(scores[-1].argmax()[None])[0]
    assert bars(page)[likeliest] == format_percent(1.0)  # as the temperature is 0
    loss = functional.cross_entropy(scores[:-1], letters.encode("abcd")[1:]).item()
    assert page.locator(".metric").text_content() == f"{guess_words(loss, 20)} ({loss:.2f} nats a letter)"
    click(page, *[STEP] * 3)
    assert page.locator(".token").count() == 7


def forbidden_cells(page):
    """Which cells of the shown head are said to be forbidden: [query, key]."""
    page.locator("summary", has_text="Table").last.click()
    page.locator(".tables table").last.wait_for()
    rows = page.locator(".tables table").last.locator("tbody tr")
    cells = rows.evaluate_all("rows => rows.map(row => [...row.cells].slice(1).map((cell) => cell.innerText))")
    return torch.tensor([[cell == "–" for cell in row] for row in cells])


def test_each_head_shows_its_own_mask(studio):
    letters, mask = CharacterTokenizer("abcdefghijkl"), causal & per_head(window(2), dilated(3))
    model = randomize_weights(GPT(len(letters), context=12, layers=1, heads=2, dim=12, mask=mask))
    made = view.write(model, letters, "abcdefghijkl")
    for head, allowed in enumerate(mask.dense(12, 12, heads=2)[0]):
        page = studio(with_state(made, mode="head", head=head, head_map_open=True))
        assert torch.equal(forbidden_cells(page), ~allowed)


# What the reader does


def test_choosing_another_token_adds_a_branch(studio, tmp_path):
    page = studio(write_studio()[1])
    click(page, STEP, STEP)
    first = shown(page)
    assert page.locator(".branches").is_hidden()
    click(page, "Back")
    assert shown(page) == first[:-1]
    names = list(bars(page))
    others = [name for name in names if not first.endswith(name)]
    page.locator(".bar-list button").nth(names.index(others[1])).click()
    wait_until_idle(page)
    second = shown(page)
    assert second[:-1] == first[:-1]
    assert second != first
    branches = page.locator(".branches button")
    assert [one.get_attribute("aria-pressed") for one in branches.all()] == ["false", "true"]
    branches.first.click()
    wait_until_idle(page)
    assert shown(page) == first
    click(page, "Back", "Back", "Back", "Back")
    assert shown(page) == "abc"
    click(page, STEP, STEP)  # the same numbers are drawn, so that the same branch is walked
    assert shown(page) == first
    assert len(saved_state(page, tmp_path)["tree"]) == 3
    type_in_editor(page, "bad")
    assert saved_state(page, tmp_path)["tree"] == []
    assert page.locator(".branches").is_hidden()


def test_typing_during_generation_restarts_from_typed_text(studio, tmp_path):
    model, made = write_studio()
    page = studio(made)
    button(page, RUN).click()
    page.wait_for_function("told.length > 4")
    button(page, "■ Stop").wait_for()
    page.locator(".editor").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("de")
    wait_until_idle(page)
    assert button(page, RUN).is_visible()
    chosen = saved_state(page, tmp_path)
    begun = chosen["prompt"]
    assert chosen["tree"] == []
    assert begun.startswith("abc")
    assert "d" in begun.removeprefix("abc")  # all that stood there is the prompt now
    type_in_editor(page, "abcde")
    for _ in range(7):
        button(page, STEP).click(no_wait_after=True)  # faster than it can write: each counts
    page.wait_for_function(
        "document.querySelector('.tfviz').shadowRoot.querySelectorAll('.token.written').length === 7"
    )
    wait_until_idle(page)
    expected = generate.text(model, TOKENIZER, "abcde", 7)
    chosen = saved_state(page, tmp_path)
    assert "abcde" + TOKENIZER.decode(torch.tensor(path_of(chosen))) == expected


def test_hovered_token_shows_its_attention(studio):
    """The text is shaded by the chosen head's row of the token that is pointed at, in the colours of its map."""
    model, made = write_studio()
    page = studio(with_state(made, prompt="face.bad", layer=1, head=1))
    with torch.no_grad(), look.capture(model, "*.pattern") as seen:
        model(TOKENIZER.encode("face.bad")[None])
    weights = seen["blocks.1.attention.pattern"][0, 1]
    for index in (7, 4):
        page.locator(".token").nth(index).hover()
        wait_until_idle(page)
        assert page.locator(".token.from").all_text_contents() == ["face.bad"[index]]
        shaded = page.locator(".token").evaluate_all("all => all.map(one => Boolean(one.style.backgroundColor))")
        codes = (255 * weights[index].sqrt()).round()
        assert shaded == [key <= index and code >= 8 for key, code in enumerate(codes.tolist())]
    assert page.locator(".pane.text small").first.text_content() == "Where “.” looks: layer 1, head 1"
    page.mouse.move(2, 2)
    wait_until_idle(page)
    page.locator(".editor").click(position={"x": 200, "y": 150})  # the caret goes to the end
    press(page, "ArrowLeft", "ArrowLeft")
    wait_until_idle(page)
    assert page.locator(".token.from").all_text_contents() == ["b"]


def test_undo_redo_and_shared_link_restore_state(studio, new_page, tmp_path):
    page = studio(write_studio()[1])
    first, described = shown(page), page.locator(".studio-summary b").text_content()
    click(page, STEP)
    switch(page, 0, 1)
    assert page.locator(".studio-summary b").text_content() == "Layer 0, head 1" != described
    assert page.locator(".cell.off.chosen").count() == 1
    control(page, "Temperature").fill("0.5")
    wait_until_idle(page)
    whole = saved_state(page, tmp_path)
    page.locator("summary", has_text="Share").click()
    button(page, "Copy link").click()
    page.locator(".status").first.filter(has_text="The link is ").wait_for()
    address = page.evaluate("location.href")
    for _ in range(3):
        click(page, "Undo")
    assert (shown(page), page.locator(".studio-summary b").text_content()) == (first, described)
    assert page.locator(".cell.off").count() == 0
    assert button(page, "Undo").get_attribute("aria-disabled") == "true"
    for _ in range(3):
        press(page, "Control+Shift+Z")
    wait_until_idle(page)
    names = ("prompt", "tree", "node", "ablated_heads", "temperature", "seed")
    assert {name: saved_state(page, tmp_path / "redo")[name] for name in names} == {name: whole[name] for name in names}
    other = new_page()
    other.goto(address)
    wait_until_idle(other)
    other.locator(".cell.off").wait_for()
    wait_until_idle(other)
    assert shown(other) == shown(page)
    assert bars(other) == bars(page)


def test_invalid_link_is_ignored(new_page, tmp_path):
    path = write_studio()[1].save(tmp_path / "x.html")
    name = re.search('data-view="(.*?)"', path.read_text("utf-8"))[1]
    page = new_page()
    page.goto(path.as_uri() + f'#{name}={{"prompt": 3, "ablated_heads": "x", "nothing": 1}}')
    page.locator(".cell").first.wait_for()
    wait_until_idle(page)
    assert shown(page) == "abc"


def test_custom_try_starts_another_text(studio):
    model, _ = write_studio()
    made = view.write(
        model, TOKENIZER, "abc", dtype="float32", examples={"Backwards": {"prompt": "cba", "temperature": 0}}
    )
    page = studio(made)
    click(page, STEP, STEP)
    click(page, "Backwards")
    assert shown(page) == "cba"
    assert control(page, "Temperature").input_value() == "0"
    click(page, "Undo")
    assert len(shown(page)) == 5


CELLS = """() => [...document.querySelector('.tfviz').shadowRoot.querySelectorAll('.cell.off, .cell.chosen')]
    .map(cell => cell.innerText + [...cell.classList].sort())"""


def test_each_try_has_its_effect_in_any_order_and_can_be_undone(studio):
    page = studio(with_state(write_studio()[1], prompt="face.bad"))

    def result():
        return shown(page), page.evaluate(CELLS), control(page, "Temperature").input_value(), status_text(page)

    names = page.locator(".examples button").all_text_contents()
    assert names[0] == "Let it write"
    before, alone = result()[:3], {}
    for name in names:
        do_try(page, name)
        alone[name] = result()
        if "head that" in name:
            assert "Layer" in page.locator(".studio-summary p").text_content()
        elif "switch it off" in name:
            assert page.locator(".cell.off").count() == 1
        else:
            assert shown(page) != before[0]
        click(page, "Undo")
        assert result()[:3] == before
    first, second, writes = names[1:4]  # what follows a text that was written depends on it
    assert re.search(r"It loops: the last|It does not loop within 300", alone[writes][3])
    for name in (second, writes, first):  # none is undone
        do_try(page, name)
        if name == writes:
            assert result() == alone[name]
        else:  # the text stays
            assert result()[1:3] == alone[name][1:3]


def test_write_works_by_keyboard_alone(studio, tmp_path):
    model, made = write_studio()
    page = studio(made)

    tab_to(page, ".editor")
    page.keyboard.press("Control+a")
    page.keyboard.type("face")
    wait_until_idle(page)
    for keys, length in (("Alt+s", 5), ("Alt+s", 6), ("Alt+b", 5), ("Alt+s", 6)):
        page.keyboard.press(keys)
        wait_until_idle(page)
        assert len(shown(page)) == length
    assert shown(page) == generate.text(model, TOKENIZER, "face", 2).replace("\n", "⏎")
    tab_to(page, ".bar-row")
    page.keyboard.press("Enter")
    wait_until_idle(page)
    assert len(shown(page)) == 7
    assert focused(page, ".bar-row")
    tab_to(page, ".threshold")
    before = bars(page)
    press(page, "ArrowUp", "ArrowUp")
    wait_until_idle(page)
    assert bars(page) != before
    assert focused(page, ".threshold")
    tab_to(page, "input[type='range']")
    before = bars(page)
    press(page, "ArrowLeft", "ArrowLeft")
    assert bars(page) != before
    tab_to(page, ".head")
    press(page, "ArrowRight", "ArrowDown", "x")
    wait_until_idle(page)
    assert page.locator(".cell.off").count() == 1
    assert page.locator(".studio-summary b").text_content() == "Layer 1, head 1"
    assert focused(page, ".head")
    page.keyboard.press("Enter")
    wait_until_idle(page)
    assert page.locator(".studio-summary b").text_content() == "Layer 1, head 1"
    page.keyboard.press("x")
    wait_until_idle(page)
    assert page.locator(".cell.off").count() == 0
    page.keyboard.press("Alt+b")
    wait_until_idle(page)
    tab_to(page, ".bar-row")
    press(page, "Tab", "Enter")  # not the one that was taken before
    wait_until_idle(page)
    tab_to(page, ".branches button[aria-pressed='false']")
    page.keyboard.press("Enter")
    wait_until_idle(page)
    assert focused(page, ".branches button[aria-pressed='true']")
    page.keyboard.press("Alt+r")
    page.wait_for_function("told.length > 20")
    page.keyboard.press("Alt+r")
    wait_until_idle(page)
    assert button(page, RUN).is_visible()


# What goes wrong


def test_unreadable_prompt_keeps_last_result(studio):
    page = studio(write_studio()[1])
    before = bars(page)
    lacks = f'the character "ß" (U+00DF) at place 3 is not among the {len(TOKENIZER)} of this tokenizer'
    for prompt, sentence in (
        ("abcß", f"{lacks}: what the model says is of the last text that could be read"),
        ("", "type a text: the model goes on from it"),
    ):
        type_in_editor(page, prompt)
        assert status_text(page) == sentence
        click(page, STEP, RUN)
        assert (shown(page), bars(page)) == (prompt, before)
        assert status_text(page) == sentence
        assert button(page, RUN).is_visible()
        assert dimmed(page) == [True, True, True]
    type_in_editor(page, "abc")
    assert status_text(page) == ""
    assert dimmed(page) == [False, False, False]
    assert "After “\u2068abc\u2069”" in page.locator(".prediction").text_content()
    assert (shown(page), bars(page)) == ("abc", before)


def dimmed(page):
    """Whether the heads, the answer and the sentence are shown as those of another text."""
    return [
        page.locator(part).evaluate("part => getComputedStyle(part).opacity") != "1"
        for part in (".heads-of-model", ".prediction", ".studio-summary")
    ]


LONGER = f"longer than the {CONTEXT} letters that the model reads: it does not see the grey part"


def test_status_reports_text_beyond_context(studio):
    page = studio(write_studio()[1])
    type_in_editor(page, "abcdefga"[:CONTEXT])
    assert status_text(page) == ""
    click(page, *[STEP] * 9)
    assert page.locator(".token.past").count()
    assert status_text(page) == LONGER
    click(page, *["Back"] * 9)
    assert status_text(page) == ""


def test_most_likely_token_stays_listed_when_heads_are_ablated(studio):
    page = studio(with_state(write_studio()[1], prompt="face.bad"))
    before = next(iter(bars(page)))
    for layer in range(2):
        page.get_by_role("button", name=f"layer {layer}: switch all its heads off or on").click()
    wait_until_idle(page)
    assert before in bars(page)
    mark = page.locator(f".bar-row:has(.name:text-is('{before}'))")
    assert "beyond" not in mark.get_attribute("class").split()


def test_tab_key_puts_caret_at_end_of_text(studio, tmp_path):
    page = studio(with_state(write_studio()[1], prompt="face.bad"))
    page.locator(".examples button").last.focus()
    press(page, "Tab")
    page.keyboard.type("ab")
    wait_until_idle(page)
    assert saved_state(page, tmp_path)["prompt"] == "face.badab"
    assert page.locator(".token.from").text_content() == "b"


def test_lower_loss_with_heads_ablated_is_explained_by_generated_text(studio):
    """Cheaper with heads off than with all on: only where the model has written, and only then is it said."""
    page = studio(with_state(write_studio()[1], prompt="face.bad", temperature=0.0))
    for layer in range(2):
        page.get_by_role("button", name=f"layer {layer}: switch all its heads off or on").click()
    sentence = page.locator(".studio-summary p")
    assert "wrote part of the text itself" not in sentence.text_content()
    click(page, *[STEP] * 5)
    page.wait_for_function(
        "() => document.querySelector('.tfviz').shadowRoot"
        ".querySelector('.studio-summary p').textContent.includes('instead')"
    )
    now, other = (
        float(part)
        for part in re.findall(r"costs (\S+) nats a letter instead of (\d+\.\d+)", sentence.text_content())[0]
    )
    assert ("wrote part of the text itself" in sentence.text_content()) == (now < other)


def test_opened_head_scrolls_into_view(studio):
    page = studio(with_state(write_studio()[1], prompt="face.bad"))
    page.set_viewport_size({"width": 1280, "height": 500})
    click(page, "Open this head ↓")
    page.wait_for_function(
        "() => document.querySelector('.tfviz').shadowRoot.querySelector('.inner').getBoundingClientRect().top < 300"
    )


def test_hostile_and_long_text_is_shown_as_text(studio):
    page = studio(write_studio()[1])
    type_in_editor(page, SIGNS[:12])
    expected = SIGNS[:12].replace("\u202e", "⟨202E⟩").replace("\0", "␀")
    assert shown(page) == expected
    click(page, STEP, "Back")
    assert page.locator(".editor b").count() == 0
    long = "".join(TOKENIZER.characters[i % len(TOKENIZER)] for i in range(10_000))
    type_in_editor(page, long.replace("\n", "a"))
    assert page.locator(".token:not(.past)").count() == CONTEXT
    assert status_text(page) == LONGER
    type_in_editor(page, "abc")
    assert status_text(page) == ""


def test_bytes_and_word_vocabularies_match_generate_ids(studio, tmp_path):
    torch.manual_seed(1)
    words = train_whole_words(["the cat sat", "the dog sat on the mat"])
    for tokenizer, prompt, seen, step in (
        (
            ByteTokenizer(),
            "né</script><img src=x onerror=alert(1)>",
            "né</script><img src=x onerror=alert(1)>",
            "One byte",
        ),
        (words, "the cat", "the cat", "One token"),
    ):
        model = GPT(len(tokenizer), context=64, layers=1, heads=2, dim=8)
        page = studio(view.write(model, tokenizer, prompt, dtype="float32", seed=4))
        assert shown(page) == seen
        click(page, *[step] * 5)
        ids = list(generate.ids(model, tokenizer.encode(prompt), 5, seed=4))
        assert path_of(saved_state(page, tmp_path)) == ids
        assert tokenizer is not words or shown(page).split() == [
            words.tokens(torch.tensor([i]))[0] for i in [*tokenizer.encode(prompt).tolist(), *ids]
        ]


def test_engine_error_is_shown(new_page, tmp_path):
    made = write_studio()[1]
    programs = {
        name: {**one, "nodes": [{**node, "op": "nonsense"} if node["op"] == "gelu" else node for node in one["nodes"]]}
        for name, one in made.document["programs"].items()
    }
    page = new_page()
    page.goto(View(made, {**made.document, "programs": programs}, made.data).save(tmp_path / "x.html").as_uri())
    page.wait_for_function("document.querySelector('.tfviz').shadowRoot?.querySelector('.status')?.textContent")
    assert status_text(page) == "cannot show this: the engine has no operation nonsense"
    click(page, RUN)
    wait_until_idle(page)
    assert status_text(page) == "cannot show this: the engine has no operation nonsense"
    assert button(page, RUN).is_visible()


def test_non_finite_logits_are_reported_and_write_nothing(new_page, tmp_path):
    made = write_studio()[1]
    weights = {one["name"]: one["byte_range"] for one in made.document["programs"]["read"]["weights"]}
    start, length = weights["norm.weight"]
    data = made.data[:start] + struct.pack("<f", math.inf) * (length // 4) + made.data[start + length :]
    page = new_page()
    page.goto(View(made, made.document, data).save(tmp_path / "x.html").as_uri())
    page.wait_for_function("document.querySelector('.tfviz').shadowRoot?.querySelector('.status')?.textContent")
    assert status_text(page) == "cannot show this: the model's logits are not finite; there is nothing to draw from"
    click(page, RUN)
    assert status_text(page) == "cannot show this: the model's logits are not finite; there is nothing to draw from"
    assert shown(page) == "abc"


# Where it goes


def test_saved_page_restores_state(studio, new_page, tmp_path):
    page = studio(with_state(write_studio()[1], temperature=0.7, seed=5))
    click(page, STEP, STEP, "Back")
    page.locator(".bar-list button").nth(3).click()
    wait_until_idle(page)
    switch(page, 1, 0)
    own = new_page()
    path = takes(page, "HTML", tmp_path)
    goto_view(own, path)
    wait_until_idle(own)
    for look_at in (shown, bars, lambda one: one.locator(".metric").text_content(), status_text):
        assert look_at(own) == look_at(page)
    texts = "all => all.map(one => [one.textContent, one.getAttribute('aria-pressed')])"
    assert own.locator(".cell.off").count() == page.locator(".cell.off").count() == 1
    for where in (".branches button",):
        assert own.locator(where).evaluate_all(texts) == page.locator(where).evaluate_all(texts)
    assert control(own, "Temperature").input_value() == "0.7"
    assert state(takes(own, "HTML", tmp_path / "again")) == state(path)


def test_page_computes_where_workers_are_forbidden(chromium, tmp_path):
    policy = "worker-src 'none'; script-src 'unsafe-inline'"
    model, made = write_studio()
    path = made.save(tmp_path / "x.html")
    meta = f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">'
    path.write_text(path.read_text("utf-8").replace("<head>", meta, 1), "utf-8")
    context = chromium.new_context(viewport={"width": 1000, "height": 900})
    try:
        context.set_offline(True)
        page, wrong = context.new_page(), []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        goto_view(page, path)
        wait_until_idle(page)
        click(page, *[STEP] * 5)
        assert shown(page) == generate.text(model, TOKENIZER, "abc", 5).replace("\n", "⏎").replace("\0", "␀")
        assert wrong == []
    finally:
        context.close()


def test_thumbnails_have_key_and_described_head_has_switch(studio):
    _, made = write_studio()
    page = studio(made)
    assert plain(page.locator(".legend").text_content()) == (
        "Each row is one letter, each column a letter it looks at. Click a map to select its head, × to switch it off."
        "attention0%25%100%"
    )
    names = [f"head {head}" for head in range(len(page.locator(".layer").first.locator(".cell").all()))]
    assert page.locator(".head-names span").all_text_contents() == ["", *names]
    click(page, "Switch it off")
    assert page.locator(".cell.off.chosen").count() == page.locator(".cell.off").count() == 1
    click(page, "Switch it on")
    assert page.locator(".cell.off").count() == 0


# The colours of the lower left corner of each small map, which may be looked at, and of the upper right one.
CORNERS = """() => [...document.querySelector('.tfviz').shadowRoot.querySelectorAll('.head canvas')].map((canvas) => {
    const { width, height } = canvas, copy = new OffscreenCanvas(width, height).getContext('2d');
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    return [[3, height - 3], [width - 3, 3]].map(([x, y]) => String(data.slice(4 * (y * width + x)).slice(0, 3))); })"""


def test_thumbnails_show_allowed_cells_in_both_color_schemes(studio):
    page = studio(write_studio()[1])
    blank = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(60)
        wait_until_idle(page)
        corners = page.evaluate(CORNERS)
        assert len(corners) > 1
        assert all(seen != forbidden for seen, forbidden in corners)
        assert len({forbidden for _, forbidden in corners}) == 1  # the page's colour
        blank.add(corners[0][1])
    assert len(blank) == 2


def test_csv_contains_bar_probabilities(studio, tmp_path):
    model, made = write_studio()
    page = studio(made)
    lines = takes(page, "CSV", tmp_path).read_text("utf-8-sig").splitlines()
    shares = logits(model, "abc")[-1].softmax(-1).topk(LIKELIEST).values
    found = torch.tensor([float(line.rpartition(",")[2]) for line in lines[-LIKELIEST:]])
    torch.testing.assert_close(found, shares, rtol=1e-3, atol=1e-5)


def test_removed_studio_stops_worker_and_resumes_when_reattached(studio, tmp_path):
    model, made = write_studio()
    page = studio(made)
    click(page, STEP, STEP)
    remove_and_restore(page)
    wait_until_idle(page)
    click(page, STEP)
    assert path_of(saved_state(page, tmp_path)) == list(generate.ids(model, TOKENIZER.encode("abc"), 3))
    assert status_text(page) == ""


# With a kernel


def test_kernel_matches_torch_and_saved_page_is_static(new_page, tmp_path):
    model, _ = write_studio()
    live = view.write(model, TOKENIZER, "abc", seed=6, kernel=True)
    page = open_with_kernel(new_page(), live)
    shares = logits(model, "abc")[-1].softmax(-1).topk(LIKELIEST).values.tolist()
    assert list(bars(page).values()) == [format_percent(share) for share in shares]
    click(page, *[STEP] * 5)
    assert path_of(live.state) == list(generate.ids(model, TOKENIZER.encode("abc"), 5, seed=6))
    switch(page, 1, 2)
    ids = torch.tensor(live._ids())
    with torch.no_grad(), look.capture(model, edit={"blocks.1.attention.pattern": look.edits.zero(2)}):
        without = model(ids[None])[0]
    with torch.no_grad():
        whole = model(ids[None])[0]
    now, before = (functional.cross_entropy(one[:-1], ids[1:]).item() for one in (without, whole))
    assert page.locator(".metric").text_content() == f"{now:.2f} nats a letter without 1 head, {before:.2f} with all"
    assert list(bars(page).values()) == [
        format_percent(share) for share in without[-1].softmax(-1).topk(LIKELIEST).values.tolist()
    ]
    left = new_page()
    goto_view(left, takes(page, "HTML", tmp_path))
    assert "Static: a model in Python computed this" in left.locator(".note").inner_text()
    assert not model.training
    page.evaluate("close_view()")
    assert page.locator(".tfviz").count() == 0

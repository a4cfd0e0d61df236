"""`view.patch` in Chromium, offline: results match `study.patch`."""

import csv
from functools import cache

import pytest
import torch
from browser import control, goto_view, plain, press, takes
from small_models import randomize_weights
from studio_pages import (
    RECORD_ENGINE_JS,
    button,
    click,
    do_try,
    open_with_kernel,
    opened_link,
    state,
    status_text,
    tab_to,
    tensor,
    wait_until_idle,
    with_state,
)
from unportable_tokenizers import unigram
from writing_studios import TOKENIZER, bars, format_percent, gpt

from tfviz import study, view
from tfviz.models import GPT
from tfviz.text import ByteTokenizer, SubwordTokenizer

pytest_plugins = ["browser", "studio_pages"]
CLEAN, CORRUPT = "abc fed", "abd fed"
ANSWERS = ("g", "h")
RESIDUAL, HEADS = "Residual stream before each layer", "Output of each head, at all positions"
# Each run of the engine takes longer.
SLOW = """(() => { const send = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (...given) { setTimeout(() => send.apply(this, given), 300); }; })()"""
BLOCK_INPUTS = "blocks.?.input"


@cache
def patch_studio(answers=ANSWERS):
    """The model and its studio, made once: the weights are kept exactly."""
    model = gpt()
    return model, view.patch(model, TOKENIZER, CLEAN, CORRUPT, answers=answers, dtype="float32")


def study_patch(model, sites, answers=ANSWERS, clean=CLEAN, corrupt=CORRUPT):
    """What `study.patch` says: a table, and the metric of both runs."""
    ids = [TOKENIZER.encode(text)[None] for text in (clean, corrupt)]
    metric = study.logit_difference(*(TOKENIZER.encode(answer).item() for answer in answers))
    return study.patch(model, *ids, metric=metric, sites=sites, progress=False)


def fill(page, name):
    """Have a table filled: by a press, unless it fills by itself."""
    wait_until_idle(page)
    button = page.locator(f"[aria-label='Fill: {name}']")
    if button.get_attribute("aria-disabled") != "true":
        button.click()
    page.locator(f"[aria-label='Fill: {name}'][aria-disabled='true']").wait_for(state="attached")
    wait_until_idle(page)


def patched_change(told, answers, metric_before):
    """Where a run was patched, and how much that changed the difference of the answers' logits."""
    logits = tensor(told["outputs"]["logits"])
    ids = [TOKENIZER.encode(answer).item() for answer in answers]
    residual, heads = (tensor(told["inputs"][name]) > 0 for name in ("residual_at", "heads_at"))
    indices = (residual if residual.any() else heads[:, :, 0]).nonzero()[0].tolist()
    return ("residual" if residual.any() else "heads", *indices), (
        logits[ids[0]] - logits[ids[1]]
    ).item() - metric_before


def sentence(page):
    return plain(page.locator(".studio-summary p").text_content())


def signed(value):
    """A change as the page says it."""
    return f"{value:+.2f}".replace("-", "−")


def canvas(page, name):
    return page.locator(f"canvas[aria-label^='{name}']")


# What is computed


def test_every_cell_matches_study_patch(studio, tmp_path):
    model, made = patch_studio()  # other models: tests/view/test_patch.py
    page = studio(made)
    fill(page, RESIDUAL)
    fill(page, HEADS)
    tables = {"residual": study_patch(model, BLOCK_INPUTS), "heads": study_patch(model, "*.output_heads")}
    corrupt = tables["heads"].notes["corrupt"]
    patched = [
        one
        for one in page.evaluate("told")
        if any(one["inputs"]["residual_at"]["data"] + one["inputs"]["heads_at"]["data"])
    ]
    found = dict(patched_change(one, ANSWERS, corrupt) for one in patched)
    assert len(found) == len(patched) == sum(table.values.numel() for table in tables.values())
    for (name, *indices), value in found.items():
        assert value == pytest.approx(tables[name].values[tuple(indices)].item(), abs=1e-4)
    assert max(map(abs, found.values())) > 0.01
    rows = list(csv.reader(takes(page, "CSV", tmp_path).read_text("utf-8").splitlines()))
    layers = len(tables["residual"].values)
    for start, table in ((2, tables["residual"]), (layers + 5, tables["heads"])):
        read = torch.tensor([[float(cell) for cell in row[1:]] for row in rows[start : start + layers]])
        torch.testing.assert_close(read, table.values, rtol=1e-3, atol=1e-4)


GAUGE = """gauge => {
  const [from, to] = [...gauge.querySelectorAll('.tick')].map((tick) => tick.getBoundingClientRect());
  const bar = gauge.querySelector('.bar').getBoundingClientRect();
  const middle = ({ left, width }) => left + width / 2;
  const track = gauge.querySelector('.track').getBoundingClientRect();
  return [middle(from), middle(to), bar.left, bar.right, track.left, track.right];
}"""


def test_gauge_shows_shares_beyond_both_runs_on_one_scale(studio):
    """Ticks are the corrupt and the clean run; a bar may pass them on either side, within the track."""
    _, made = patch_studio()
    page = studio(made)
    fill(page, HEADS)
    corners = []
    for layer, head in ((0, 0), (0, 1), (1, 1), (1, 2)):
        tab_to(page, f"canvas[aria-label^='{HEADS}']")
        press(
            page, "Home", *["ArrowUp"] * 2, *["ArrowDown"] * layer, *["ArrowLeft"] * 3, *["ArrowRight"] * head, "Enter"
        )
        wait_until_idle(page)
        share = float(page.locator(".gauge b").text_content().replace("−", "-").rstrip("%")) / 100
        from_run, to_run, left, right, low, high = page.locator(".gauge").evaluate(GAUGE)
        end = from_run + min(max(share, -1), 2) * (to_run - from_run)
        assert [left, right] == pytest.approx(sorted([from_run, end]), abs=2.5)
        assert low - 2 <= min(left, from_run) <= max(right, to_run) <= high + 2
        corners.append(share)
        page.keyboard.press("Escape")
        wait_until_idle(page)
    assert min(corners) < 0 < 1 < max(corners)


def test_tables_share_one_scale_with_its_colours(studio):
    model, made = patch_studio()
    page = studio(made)
    for name in (RESIDUAL, HEADS):
        fill(page, name)
    change = max(
        (table.values - 0).abs().max().item()
        for table in (study_patch(model, BLOCK_INPUTS), study_patch(model, "blocks.?.attention.output_heads"))
    )
    ends = [plain(text) for text in page.locator(".scale-of-tables output").all_text_contents()]
    assert ends == [signed(-change), "0", signed(change)]


def test_selected_cell_is_patched_shared_and_undone(studio, new_page, tmp_path):
    model, made = patch_studio()
    page = studio(made)
    table = study_patch(model, BLOCK_INPUTS)
    before = bars(page)
    assert f"{signed(table.notes['clean'])} after the clean text" in sentence(page)
    tab_to(page, f"canvas[aria-label^='{RESIDUAL}']")
    press(page, "ArrowRight", "ArrowRight", "Enter")
    wait_until_idle(page)
    change_there = table.values[0, 2].item()
    now = table.notes["corrupt"] + change_there
    share = change_there / (table.notes["clean"] - table.notes["corrupt"])
    assert sentence(page).startswith("Layer 0, position 2 “c/d” with the clean run's residual stream")
    assert (
        f"goes from {signed(table.notes['corrupt'])} to {signed(now)} (clean: {signed(table.notes['clean'])})"
        in sentence(page)
    )
    assert f"{format_percent(share)} of the clean run's answer is back" in sentence(page)
    assert page.locator(".gauge b").text_content() == format_percent(share)
    assert bars(page) != before
    assert plain(page.locator(".how-to").text_content()).startswith("layer 0, position 2 “c/d”: ")
    other = opened_link(page, new_page)
    assert sentence(other) == sentence(page)
    assert state(takes(page, "HTML", tmp_path))["target"] == ["residual", 0, 2]
    click(page, "Undo")
    assert bars(page) == before
    click(page, "Redo", "Without the patch")
    assert bars(page) == before
    box = canvas(page, HEADS).bounding_box()
    page.mouse.click(box["x"] + 90, box["y"] + box["height"] - 20)
    wait_until_idle(page)
    heads = study_patch(model, "*.output_heads")
    assert sentence(page).startswith("Layer 1, head ")
    head = int(sentence(page)[len("Layer 1, head ")])
    assert signed(heads.notes["corrupt"] + heads.values[1, head].item()) in sentence(page)


def test_metric_follows_chosen_answers(studio):
    """The likeliest tokens are the answers where none is chosen; a bar, or what is typed, chooses another."""
    model, made = patch_studio(answers=None)
    page = studio(with_state(made, target=["heads", 1, 2]))
    ids = [TOKENIZER.encode(text)[None] for text in (CLEAN, CORRUPT)]
    with torch.no_grad():
        clean, corrupt = (model(one)[0, -1] for one in ids)
    answer = clean.argmax().item()
    other = next(one for one in corrupt.topk(2).indices.tolist() if one != answer)
    words = TOKENIZER.tokens(torch.tensor([answer, other]))
    table = study_patch(model, "*.output_heads", words)
    assert signed(table.notes["corrupt"] + table.values[1, 2].item()) in sentence(page)
    control(page, "Clean answer").fill("a")
    control(page, "Clean answer").press("Enter")
    wait_until_idle(page)
    table = study_patch(model, "*.output_heads", ("a", words[1]))
    assert f"ogit of “a” − logit of “{words[1]}”" in sentence(page)
    assert signed(table.notes["corrupt"] + table.values[1, 2].item()) in sentence(page)
    page.get_by_role("tab", name="corrupt").click()
    name = next(name for name in bars(page) if name not in ("a", words[1]))
    page.locator(f".bar-list button:has(.name:text-is('{name}'))").click()
    wait_until_idle(page)
    assert f"ogit of “a” − logit of “{name}”" in sentence(page)


def test_typed_texts_are_patched_and_mistakes_reported(studio):
    model, made = patch_studio()
    page = studio(made)
    clean, corrupt = page.locator(".editor").all()
    runs = len(page.evaluate("told"))
    for text, told in {
        "abc": "the clean text has 3 tokens and the corrupt one 7: make them equal",
        "abcz": 'the clean text: the character "z" (U+007A) at place 3 is not among the ',
        "": "the clean text is empty: type one",
        "a" * 17: "the clean text has more than 16 tokens, which the model cannot read",
    }.items():
        clean.fill(text)
        wait_until_idle(page)
        assert told in status_text(page)
    canvas(page, RESIDUAL).press("Enter")
    page.locator(f"[aria-label='Fill: {HEADS}']").dispatch_event("click")  # nothing is left, so it cannot be seen
    wait_until_idle(page)
    assert len(page.evaluate("told")) == runs
    clean.fill("cafe"), corrupt.fill("face")
    wait_until_idle(page)
    assert status_text(page) == ""
    fill(page, HEADS)
    control(page, "Corrupt answer").fill("ab")
    control(page, "Corrupt answer").press("Enter")
    wait_until_idle(page)
    assert status_text(page) == "an answer is one token, and this is 2: a · b"
    do_try(page, "Find the head that brings most back")
    table = study_patch(model, "*.output_heads", clean="cafe", corrupt="face")
    back = table.values * (1 if table.notes["clean"] > table.notes["corrupt"] else -1)
    layer, head = divmod(int(back.argmax()), back.shape[1])
    assert sentence(page).startswith(f"Layer {layer}, head {head} with the clean run's output")
    assert signed(table.notes["corrupt"] + table.values[layer, head].item()) in sentence(page)


def test_quick_tables_fill_without_a_press_and_refill_for_new_text(studio):
    _, made = patch_studio()
    page = studio(made)

    def filled():
        return [button.get_attribute("aria-disabled") for button in page.locator("[aria-label^='Fill: ']").all()]

    page.wait_for_function("told.length >= 5")
    wait_until_idle(page)
    assert filled() == ["true", "true"]
    page.locator(".editor").first.fill("bbc fed")
    wait_until_idle(page)
    page.wait_for_timeout(300)
    wait_until_idle(page)
    assert filled() == ["true", "true"]
    assert status_text(page) == ""


def test_filling_can_be_stopped_and_resumed(studio, new_page, tmp_path):
    _, made = patch_studio()
    page, cells = new_page(), 2 * len(CLEAN)
    page.add_init_script(RECORD_ENGINE_JS)
    page.add_init_script(SLOW)
    goto_view(page, made.save(tmp_path / "x.html"))
    wait_until_idle(page)
    page.wait_for_function("told.length >= 3")
    page.wait_for_timeout(450)  # longer than a run takes
    assert len(page.evaluate("told")) == 2 + 1  # both texts, and one cell, which took too long to go on unasked
    page.get_by_role("button", name=f"Fill: {RESIDUAL}").click()
    page.locator(".table-title progress:visible").wait_for()
    page.wait_for_function("told.length >= 6")
    page.get_by_role("button", name=f"Stop filling: {RESIDUAL}").click()
    wait_until_idle(page)
    stopped = len(page.evaluate("told")) - 2
    assert 3 <= stopped < cells
    assert not page.locator(".table-title progress:visible").count()
    fill(page, RESIDUAL)
    assert len(page.evaluate("told")) - 2 == cells


def test_swapped_texts_are_patched_in_reverse(studio):
    model, made = patch_studio()
    page = studio(with_state(made, target=["heads", 0, 1]))
    do_try(page, "Swap the texts")
    table = study_patch(model, "*.output_heads", ANSWERS[::-1], CORRUPT, CLEAN)
    assert f"{signed(table.notes['corrupt'] + table.values[0, 1].item())} (clean: " in sentence(page)


def test_invalid_target_patches_nothing(studio):
    _, made = patch_studio()
    page = studio(with_state(made, target=["heads", 0, -1], clean_answer_id=10**6, corrupt_answer_id=0.5))
    assert "after the clean text" in sentence(page)
    assert button(page, "Without the patch").count() == 0


def test_space_is_accepted_as_answer_token(studio):
    torch.manual_seed(1)
    model = GPT(256, context=32, layers=1, heads=2, dim=8).eval()
    page = studio(view.patch(model, ByteTokenizer(), "a b", "b b", dtype="float32"))
    control(page, "Clean answer").fill("␣")
    control(page, "Clean answer").press("Enter")
    wait_until_idle(page)
    assert "Logit of “␣” − " in sentence(page)


def test_svg_contains_both_tables(studio, tmp_path):
    page = studio(with_state(patch_studio()[1], target=["residual", 0, 2]))
    fill(page, RESIDUAL)
    text = takes(page, "SVG", tmp_path).read_text("utf-8")
    assert RESIDUAL in text
    assert HEADS in text


# With a kernel


def test_kernel_fills_tables_with_numbers_of_study_patch(new_page, tmp_path):
    model, _ = patch_studio()
    live = view.patch(model, TOKENIZER, CLEAN, CORRUPT, answers=ANSWERS, kernel=True)
    page = open_with_kernel(new_page(), live, "patching-widget")
    fill(page, RESIDUAL)
    fill(page, HEADS)
    rows = list(csv.reader(takes(page, "CSV", tmp_path).read_text("utf-8").splitlines()))
    for start, sites in ((2, BLOCK_INPUTS), (7, "*.output_heads")):
        table = study_patch(model, sites)
        read = torch.tensor([[float(cell) for cell in row[1:]] for row in rows[start : start + 2]])
        torch.testing.assert_close(read, table.values, rtol=1e-3, atol=1e-4)


def test_kernel_reads_texts_and_answers_by_any_tokenizer(new_page):
    tokenizer = SubwordTokenizer(unigram())
    model = randomize_weights(GPT(len(tokenizer), context=12, layers=1, heads=2, dim=8))
    live = view.patch(model, tokenizer, "the mat", "the sat", kernel=True)
    page = open_with_kernel(new_page(), live, "patching-widget")
    page.locator(".editor").nth(1).fill("the cat")
    wait_until_idle(page)
    assert status_text(page).startswith("the clean text has 7 tokens and the corrupt one 5")
    page.locator(".editor").nth(0).fill("cat the")
    wait_until_idle(page)
    assert status_text(page) == ""
    page.locator(".answer.clean input").fill(" cat")
    page.keyboard.press("Enter")
    wait_until_idle(page)
    page.wait_for_function("() => kernelState().then(({ state }) => state.clean_answer_id >= 0)")
    assert live.state["clean_answer_id"] == tokenizer.encode(" cat").item()
    clean, corrupt = (tokenizer.encode(text)[None] for text in ("cat the", "the cat"))
    answers = live.state["clean_answer_id"], live.state["corrupt_answer_id"]
    with torch.no_grad():
        values = [
            (logits[0, -1, answers[0]] - logits[0, -1, answers[1]]).item() for logits in map(model, (clean, corrupt))
        ]
    assert f"{signed(values[0])} after the clean text, {signed(values[1])} after the corrupt one" in sentence(page)

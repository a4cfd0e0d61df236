"""Every Python block of the README and of the guide runs as it stands, alone, in an empty folder.

On a page with a block marked `<!-- setup -->`, the others run after that one.
"""

import re

import pytest
from guide_blocks import CLONE, PAGES, blocks, run

from tfviz.view import View

pytest_plugins = ["guide_blocks"]
TRANSFORMERLENS = CLONE / "docs" / "from-transformerlens.md"
ALL = [
    pytest.param(code, "".join(one for mark, one in blocks(page) if mark == "setup"), id=f"{page.stem} {number}")
    for page in PAGES
    for number, (mark, code) in enumerate(blocks(page), 1)
    if mark != "setup"
]
OWN = {mark: code for mark, code in blocks(CLONE / "docs" / "own.md") if mark}


@pytest.mark.filterwarnings("ignore::UserWarning:bertviz")
@pytest.mark.parametrize(("code", "setup"), ALL)
def test_a_block_runs_alone(code, setup, stand_ins):
    run(code, setup)


def test_every_block_is_found():
    """A fence of another kind, or indented, would not be run."""
    for page in PAGES:
        assert page.read_text(encoding="utf-8").lower().count("```py") == len(blocks(page)), page
    assert len(ALL) > 50


def test_the_first_script_needs_no_other_model(stand_ins):
    ((_, script),) = blocks(CLONE / "README.md")
    run(script)
    assert "4 layers × 4 heads" in (stand_ins / "heads.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "right"),
    [
        ("Llama", lambda parts: len(parts[0]["rows"]) > 900),
        ("ViT", lambda parts: parts[0]["rows"][0] == "cls"),
        ("T5", lambda parts: parts[0]["rows"] == parts[2]["columns"] != parts[2]["rows"]),
        ("softmax", lambda parts: [part["rows"] for part in parts] == [list("abcde")]),
    ],
)
def test_an_example_to_start_from_shows_its_own_tokens(kind, right, stand_ins):
    shown = run(OWN[f"try: {kind}"])
    assert isinstance(shown, View)
    assert shown.data
    assert right(shown.document["parts"])


def test_the_gallery_has_a_picture_of_each_block_and_no_other():
    page = CLONE / "docs" / "gallery.md"
    shown = re.findall(r"!\[[^\]]+\]\(gallery/(\w+)\.png\)", page.read_text(encoding="utf-8"))
    assert [mark.removeprefix("picture: ") for mark, _ in blocks(page)] == shown
    assert {path.stem for path in (CLONE / "docs" / "gallery").iterdir()} == set(shown)


def example(number, shown):
    """Code and setup of a numbered example of the page for those who come from TransformerLens, and what to return."""
    ((_, setup), *_) = blocks(TRANSFORMERLENS)
    text = TRANSFORMERLENS.read_text(encoding="utf-8")
    code = text[text.index(f"**{number}. ") :].split("```python\n")[1].split("```")[0]
    return f"{code}\n{shown}", setup


@pytest.mark.parametrize(
    ("number", "shown", "expected"),
    [
        (
            4,
            "sorted(captured)",
            sorted(f"transformer.h.{layer}.{part}" for layer in range(12) for part in ("attn", "mlp")),
        ),
        (23, "table.axes['layer']", [str(layer) for layer in range(12)]),
        (24, "attention.axes['layer'] + network.axes['layer']", 2 * [str(layer) for layer in range(12)]),
    ],
)
def test_sites_of_all_blocks_are_those_of_each_of_twelve_blocks(number, shown, expected, stand_ins):
    """A star also stands for dots, and a question mark for one digit alone."""
    assert run(*example(number, shown)) == expected


WRITING = "model.generate(ids[:1], max_new_tokens=5"
SCORED = f"{WRITING}, return_dict_in_generate=True, output_logits=True"
STEERED = {
    16: "change = (steered - model(**clean).logits)[:, -1]",
    17: f"change = written.logits[0] - {SCORED}).logits[0]",
}


@pytest.mark.parametrize("number", STEERED)
def test_steering_of_the_guide_changes_what_the_model_says(number, stand_ins):
    """A constant vector would not: the layer norms of GPT-2 remove it."""
    code, setup = example(number, f"{STEERED[number]}\nchange.abs().max().item()")
    code = code.replace(f"{WRITING})", f"{SCORED})")
    constant = code.replace("4 * (mary - tom)", "4 * torch.ones_like(mary)")
    assert constant != code
    assert run(code, setup) > 0.1
    assert run(constant, setup) < 1e-3


def test_no_glob_of_the_guide_stands_for_layers_of_one_digit():
    for page in PAGES:
        assert ".?." not in page.read_text(encoding="utf-8"), page


def test_analyses_are_numbered_and_enough():
    numbers = [int(number) for number in re.findall(r"\*\*(\d+)\. ", TRANSFORMERLENS.read_text(encoding="utf-8"))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 40

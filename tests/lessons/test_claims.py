"""Claims of lessons: computed sentences, checked statements, and figures in prose bound to code."""

import pytest
import torch
from click.testing import CliRunner
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tfviz.lessons import claims, prose
from tfviz.lessons.cli import main


def lesson(*cells):
    return new_notebook(cells=list(cells))


def code(source, *tags):
    return new_code_cell(source, metadata={"tags": list(tags)})


def unbound(*cells, comparisons=False):
    return [each.text for each in prose.quantities(lesson(*cells), comparisons) if not each.bound]


def test_state_displays_markdown_and_text():
    sentence = claims.state("**Two** heads")
    assert sentence._repr_markdown_() == "**Two** heads"
    assert repr(sentence) == "**Two** heads"


def test_check_reports_which_statements_hold():
    both = claims.check({"a beats b": torch.tensor(True), "b beats c": 1 < 0})
    assert both._repr_markdown_() == "Checked in this run:\n\n- ✓ a beats b\n- ✗ **not in this run:** b beats c"
    three = {"one": True, "two": True, "three": True}
    folded = claims.check(three)._repr_markdown_()
    assert folded.startswith("<details><summary>✓ Checked in this run: all 3 statements hold</summary>\n\n- ✓ one\n")
    assert folded.endswith("- ✓ three\n\n</details>")
    assert "<details>" not in claims.check(three | {"two": False})._repr_markdown_()  # one that fails is seen
    with pytest.raises(ValueError, match="no statement to check"):
        claims.check({})
    with pytest.raises(RuntimeError):  # a comparison of each element is no truth value
        claims.check({"all": torch.tensor([True, False])})


def test_failed_finds_false_statements_in_executed_notebook():
    source = (
        "from tfviz.lessons import claims\nclaims.check({'one is less than two': 1 < 2, 'two is less: here': 2 < 1})"
    )
    notebook = lesson(code(source), code("print('does not hold in this run')"))
    NotebookClient(notebook).execute()
    assert claims.failed(notebook) == ["two is less: here"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It ends at 1.48 nats.", ["1.48"]),
        ("right in 43 % of texts, 44% and 1,600 times", ["43 %", "44%", "1,600"]),
        ("from 3 to 17% of them", ["3%", "17%"]),
        ("a rate of 6e-3", ["6e-3"]),
        ("three times what others give, twice as much, half of it", ["three times", "twice", "half of"]),
        ("Each of 4 heads looks at 12 words.", []),  # counts what is seen
        ("`0.25`, $0.25$, $$0.25$$, [25, 31], [here](0.25), in 1998, `12_gpt` and 13_long_context", []),
        ("## 20 questions\n\n13. one\n14. two", []),
        ("## References\n\n1. pages 100 to 250", []),
        ("version 3.11.7 of a1.25b", []),
    ],
)
def test_figures_are_found_in_prose(text, found):
    assert unbound(new_markdown_cell(text)) == found


def test_figures_are_bound_by_code_outputs_and_tags():
    text = new_markdown_cell("It takes 300 steps, 1,024 tokens, and 25% are right; 0.5 is cited.")
    assert unbound(text) == ["300", "1,024", "25%", "0.5"]
    assert unbound(text, code("steps = 300\nassert right < 0.25")) == ["1,024", "0.5"]
    same = code("print(tokens)", prose.SAME_OUTPUT_TAG)
    same.outputs = [{"output_type": "stream", "name": "stdout", "text": "1024 tokens, 25%\n"}]
    assert unbound(text, same) == ["300", "0.5"]
    text.metadata["tags"] = [prose.FIXED_TAG]
    assert unbound(text) == []


def test_percentage_is_not_bound_by_plain_number():
    assert unbound(new_markdown_cell("25% are right"), code("count = 25")) == ["25%"]


def test_check_binds_words_of_its_own_section_only():
    first, second = (
        new_markdown_cell("## One\n\nIt is twice as good."),
        new_markdown_cell("## Two\n\nHalf of the rest."),
    )
    half = new_markdown_cell("It loses half of it.")
    check = code("claims.check({'a is twice b': a > 2 * b})")
    assert unbound(first, check, second, half) == ["half of"]


def test_literal_picture_titles_count_as_prose():
    assert unbound(code("title = 'right in 83%'\nview.lines(x, title='twice as good')")) == ["83%", "twice"]
    assert unbound(code("title = f'right in {share:.0%}'\nview.lines(x, title=f'{n} times')")) == []


def test_comparisons_are_listed_on_request():
    text = new_markdown_cell("Two heads are better than one, and most of it is lost.")
    assert unbound(text) == []
    assert unbound(text, comparisons=True) == ["better than", "most"]


def test_claims_command_lists_unbound_figures(tmp_path, monkeypatch):
    from tfviz.lessons import notebooks

    monkeypatch.setattr(notebooks, "find", lambda names: [tmp_path / "01_a.ipynb"])
    monkeypatch.setattr(notebooks, "read", lambda path: lesson(new_markdown_cell("1.48 nats, better"), code("x = 1")))
    ended = CliRunner().invoke(main, ["claims"])
    assert ended.exit_code == 1
    assert "01_a [0] UNBOUND: '1.48' in: 1.48 nats, better" in ended.output
    assert "1 of 1 are unbound" in ended.output
    everything = CliRunner().invoke(main, ["claims", "--all"])
    assert everything.exit_code == 0
    assert "'better'" in everything.output

"""The gallery, and the pages of notebooks."""

import re

import pytest
from small_notebooks import v4, write

from tfviz.lessons import clean, course, gallery, lesson_page, notebooks, runs
from tfviz.lessons.html_exporter import code_summary, mathml


def page(tmp_path, *cells):
    lesson_page.write(v4.new_notebook(cells=list(cells)), tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_gallery_lists_questions_and_links_finished_notebooks(tmp_path):
    notebook = notebooks.read(write(tmp_path, "05_memory"))
    ended = runs.Run("05_memory", {"word": "<i>"}, notebook, "", outcome=runs.Outcome("ok", 3.4, error="a < b"))
    waiting = runs.Run("javascript:a#?%", {}, notebook, "")
    for run in (ended, waiting):  # a page of an earlier run, perhaps
        run.path(tmp_path, ".html").write_text("", encoding="utf-8")
    text = gallery.write([ended, waiting], tmp_path).read_text(encoding="utf-8")
    assert re.findall("<li>(.*)</li>", text) == [
        '<a href="05_memory.html">Why could x &lt; y?</a>', '<a href="05_memory.html">And then?</a>',
        "Why could x &lt; y?", "And then?",
    ]  # fmt: skip
    assert text.index("<details") < text.index("<article>")
    assert "1 of 2 notebooks have run" in text
    assert 'http-equiv="refresh"' in text
    assert "a &lt; b" in text
    assert "word=&#39;&lt;i&gt;&#39;" in text
    assert "<h2>About 05_memory &lt;b&gt;</h2>" in text  # of the one that waits
    assert not re.search("<b>|<i>", text)
    waiting.outcome = runs.Outcome("stopped")
    assert "refresh" not in gallery.write([ended, waiting], tmp_path).read_text(encoding="utf-8")
    waiting.outcome = runs.Outcome("failed")
    assert 'href="javascript%3Aa%23%3F%25.html"' in gallery.write([waiting], tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize(("tags", "shown"), [(["thumbnail"], "Zmlyc3Q="), ([], "bGFzdA==")])
def test_thumbnail_is_tagged_or_last_picture(tags, shown):
    cells = [v4.new_code_cell("x", metadata={"tags": each}) for each in (tags, [])]
    for cell, data in zip(cells, ("Zmly\nc3Q=", "bGFzdA==")):
        cell.outputs = [v4.new_output("display_data", data={"image/png": data})]
    notebook = v4.new_notebook(cells=[*cells, v4.new_markdown_cell("end")])
    assert runs.outcome(notebook, "ok", 1.0).thumbnail == shown
    assert runs.outcome(v4.new_notebook(), "ok", 1.0).thumbnail == ""


def test_page_shows_last_state_of_progress_bar(tmp_path):
    cell = v4.new_code_cell("x", execution_count=1)
    cell.outputs = [v4.new_output("stream", name="stderr", text=f"\r{share} % done") for share in (0, 50, 100)]
    text = page(tmp_path, cell)
    assert [share for share in ("0 %", "50 %", "100 %") if f">{share}" in text] == ["100 %"]


def test_page_has_no_widget_and_no_live_link(tmp_path):
    cell = v4.new_code_cell("x", execution_count=1)
    cell.outputs = [v4.new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {"model_id": "m"},
                                                         "text/html": "<em>view</em>"})]  # fmt: skip
    link = f"{clean.LIVE_LINK}{notebooks.WEBSITE}notebooks/x.html)"
    text = page(tmp_path, v4.new_markdown_cell(f"# A title\n\n{link}\n\nMore."), cell)
    assert "<em>view</em>" in text
    assert "model_id" not in text
    assert notebooks.WEBSITE not in text
    assert "<title>A title</title>" in text


def test_formulas_are_rendered_without_network(tmp_path):
    code = v4.new_raw_cell("$raw$")
    prose = "## About $a$\n\n$$b$$ and `$c$`\n\n\\begin{equation}d\\end{equation}"
    text = page(tmp_path, v4.new_markdown_cell(prose), code)
    assert text.count("<math") == 3
    assert "<code>$c$</code>" in text
    assert not re.search('src="http|href="http|@import', text)


@pytest.mark.parametrize("formula", ["x^", "{" * 3000, r"\begin{x", "<script>"])
def test_unconvertible_formula_is_shown_as_code(formula):
    assert "<script>" not in mathml(formula)
    assert mathml(formula).startswith(("<code>$", "<math"))
    assert mathml("x^") == "<code>$x^$</code>"


def test_folded_answer_stays_folded(tmp_path):
    prose = "<details><summary>Answer</summary>\n\nIt is *this*.\n\n</details>\n\nAfter."
    code = v4.new_code_cell("answer = 1", metadata={"tags": ["answer"]})
    text = page(tmp_path, v4.new_markdown_cell(prose), code)
    folded = re.search(r"<details><summary>Answer</summary>(.*?)</details>(.*)", text, re.DOTALL)
    assert "It is <em>this</em>." in folded[1]
    assert "After." in folded[2]
    assert 'class="tfviz-answer"' in folded[2]


def test_empty_notebook_has_a_page(tmp_path):
    assert course.questions(v4.new_notebook()) == []
    assert page(tmp_path).rstrip().endswith("</html>")


def test_words_of_a_picture_are_its_alternative_text(tmp_path):
    data = {"image/png": "iVBORw0KGgo=", "text/plain": "What “a” looks at: 3 < 4"}
    output = v4.new_output("display_data", data, metadata={"image/png": {"width": 123}})
    text = page(tmp_path, v4.new_code_cell("view.head(maps)", outputs=[output]))
    (image,) = re.findall(r"<img [^>]*>", text)
    assert 'alt="What “a” looks at: 3 &lt; 4"' in image
    assert 'width="123"' in image


def test_code_that_is_hidden_in_the_notebook_is_folded(tmp_path):
    plain, hidden = v4.new_code_cell("a = 1"), v4.new_code_cell("claims.check({})", metadata={"jupyter": {}})
    hidden.metadata.jupyter.source_hidden = True
    text = page(tmp_path, plain, hidden)
    assert re.findall(r'<details class="code"( open[^>]*)?>', text) == [' open=""', ""]


def test_long_code_settings_and_imports_are_folded(tmp_path):
    settings = v4.new_code_cell("dim = 4", metadata={"tags": ["parameters"]})
    others = [v4.new_code_cell(source) for source in ("import torch", "x = 1\n" * 13, "x = 1\n" * 12)]
    text = page(tmp_path, settings, *others)
    assert re.findall(r'<details class="code"( open[^>]*)?>', text) == ["", "", "", ' open=""']


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("# Read the text: all of it. Then\nread()", "Read the text: all of it (2 lines)"),
        (
            "def half(x):\n    return x\nclass Twice: pass\ny = 3\nview.heads(y)",
            "Define half, Twice, then call view.heads (5 lines)",
        ),
        ("a, b = 1, 2\nc[0] = a\na = 5", "Set a, b, c (3 lines)"),
        ("a, b, c, d = 1, 2, 3, 4", "Set a, b, c, … (1 line)"),
        ("import math\nfrom a import b as c\nb.start()", "Import math, b (3 lines)"),
        ("for x in y:\n    print(x)", "for x in y … (2 lines)"),
        ("%pip install x", "%pip install x … (1 line)"),
        ("x = 1\nclaims.check({'x': x})", "Check what is said against this run (2 lines)"),
    ],
)
def test_summary_of_folded_code_says_what_it_does(source, summary):
    assert code_summary(source) == summary


def test_progress_bars_are_left_out_of_a_page(tmp_path):
    bar = "\r  0%|          | 0/2 [00:00<?, ?step/s]\r100%|█████| 2/2 [00:01<00:00, 1.4step/s, loss 0.1 nats]\n"
    errors = [v4.new_output("stream", name="stderr", text=text) for text in (bar, f"careful: 5%|\n{bar}")]
    text = page(tmp_path, v4.new_code_cell("fit()", outputs=errors))
    assert "step/s" not in text
    assert text.count("jp-RenderedText") == 1 + text.partition("<body")[0].count("jp-RenderedText")
    assert "careful: 5%|" in text


def test_statement_with_a_sign_has_no_bullet(tmp_path):
    text = page(tmp_path, v4.new_markdown_cell("- ✓ one\n- ✗ two\n- three"))
    assert re.findall(r'<li class="claim">(.*?)</li>', text) == ["✓ one", "✗ two"]


def test_wide_picture_can_be_enlarged(tmp_path):
    outputs = [
        v4.new_output("display_data", {"image/png": "iVBORw0KGgo="}, metadata={"image/png": {"width": width}})
        for width in (440, 441)
    ]
    text = page(tmp_path, v4.new_code_cell("1", outputs=outputs))
    labels = re.findall(r'<label class="enlarges"><input [^>]*><img [^>]*width="(\d+)"', text)
    assert labels == ["441"]

"""Lessons: their order and prerequisites, their pages, and the search index."""

import base64
import io
import json
import re

import pytest
from bs4 import BeautifulSoup
from PIL import Image
from small_notebooks import v4

from tfviz import view
from tfviz.lessons import course, gallery, html_exporter, html_parts, injected_parameters, lesson_page, notebooks, runs
from tfviz.lessons.course import Lesson
from tfviz.lessons.site import search_index

LESSONS = {path.stem: course.describe(notebooks.read(path), path.stem) for path in notebooks.find()}
PROMISES = re.compile(r"\[\*\*(\w+)\*\*\]\(notebooks/\w+\.ipynb\) \((\d+) minutes\)<br>(.*?) \|$", re.MULTILINE)


def page(folder, name, *cells, **given):
    lesson_page.write(v4.new_notebook(cells=list(cells)), folder / f"{name}.html", **given)
    return (folder / f"{name}.html").read_text(encoding="utf-8")


def parameter_cells(source, values):
    pairs = [(source, "parameters"), (values, "injected-parameters")]
    return [v4.new_code_cell(text, metadata={"tags": [tag]}) for text, tag in pairs]


def test_main_line_lessons_need_only_main_line_lessons():
    line = [lesson for lesson in LESSONS.values() if lesson.track == "line"]
    assert len(line) >= 6
    assert {name for lesson in line for name in lesson.needs} <= {lesson.name for lesson in line}
    assert all(name < lesson.name for lesson in LESSONS.values() for name in lesson.needs)


def test_readme_minutes_and_promises_match_lessons():
    readme = (notebooks.folder().parent / "README.md").read_text(encoding="utf-8")
    rows = {
        name: (int(minutes), promise.partition("<br>[![")[0]) for name, minutes, promise in PROMISES.findall(readme)
    }  # and a Colab badge
    assert rows == {name: (lesson.minutes, lesson.promise) for name, lesson in LESSONS.items()}


def test_minutes_follow_words_and_code_lines():
    cells = [v4.new_markdown_cell("word " * 2000), v4.new_code_cell("\n".join(["x"] * 200))]
    assert course.describe(v4.new_notebook(cells=cells), "x").minutes == 15  # 10 of prose, 5 of code
    assert course.describe(v4.new_notebook(), "x").minutes == 5


def test_helpful_lessons_are_not_prerequisites():
    assert LESSONS["02_recommender"].needs == ()  # whose introduction names a lesson that helps
    assert LESSONS["07_transformer"].needs == ("01_attention_from_nothing", "03_masks", "04_positions")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("01_a", (None, "02_b", "03_c")), ("02_b", ("01_a", "03_c", None)), ("03_c", ("02_b", None, None))],
)  # fmt: skip
def test_neighbours_include_next_main_line_lesson(name, expected):
    tracks = {"01_a": "line", "02_b": "side", "03_c": "line"}
    lessons = [Lesson(each, each, "", 5, (), track) for each, track in tracks.items()]
    assert tuple(each and each.name for each in course.neighbours(lessons, name)) == expected


def test_injected_parameters_keep_comments_of_defaults():
    source = 'word = "é"  # of all\nsizes = [\n    1,\n    2,\n]  # two\nkept: int = 3  # so'
    values = '# Parameters\nsizes = [4]\nword = "it\'s"\nother = None\n'
    expected = 'word = "it\'s"  # of all\nsizes = [4]  # two\nkept: int = 3  # so\nother = None'
    notebook = v4.new_notebook(cells=[*parameter_cells(source, values), v4.new_code_cell("print(word)")])
    injected_parameters.merge(notebook)
    assert [cell.source for cell in notebook.cells] == [expected, "print(word)"]


def test_non_python_parameters_are_not_merged():
    notebook = v4.new_notebook(cells=parameter_cells("%%bash", "steps = 1"))
    injected_parameters.merge(notebook)
    assert len(notebook.cells) == 2


def test_contents_match_headings(tmp_path):
    prose = "# One <b>\n\n## Two `x` and $y$\n\n```\n## no heading\n```\n\n### Three?\n\n#### Four\n\n## [Five](https://a.b)"
    text = page(tmp_path, "x", v4.new_markdown_cell(prose))
    contents, _, main = text.partition("<main")
    listed = re.findall(r'<li(?: class="below")?><a href="#([^"]*)">(.*?)</a></li>', contents)
    headings = re.findall(r'<h[23] id="([^"]*)">(.*?)</h[23]>', main)
    assert [name for name, _ in listed] == [name for name, _ in headings] == ["Two-x-and-y", "Three?", "Five"]
    assert listed[0][1] == headings[0][1]
    assert listed[2][1] == "Five"
    assert contents.count('class="below"') == 1
    assert len(re.findall("<h1", text)) == 1


def test_page_with_one_section_has_no_contents(tmp_path):
    assert 'class="contents"' not in page(tmp_path, "x", v4.new_markdown_cell("# One\n\n## Two"))


def test_page_without_title_is_named_after_its_file(tmp_path):
    text = page(tmp_path, "some_file", v4.new_code_cell("x = 1"))
    assert re.findall("<h1>(.*?)</h1>", text) == ["some_file"]


def test_lesson_page_links_to_other_lessons(tmp_path):
    lessons = [Lesson(name, f"About {name}", "", 5, (), "line") for name in ("01_a", "02_b", "03_c")]
    prose = "# B\n\nSee `01_a`, `02_b`, [c](03_c.ipynb#Part), [d](./04_d.ipynb), [e](https://x.y/01_a.ipynb)."
    text = page(tmp_path, "02_b", v4.new_markdown_cell(prose), lessons=lessons)
    links = [link["href"] for link in BeautifulSoup(text, "html.parser").main.find_all("a")]
    prose = ["01_a.html", "03_c.html#Part", "./04_d.ipynb", "https://x.y/01_a.ipynb"]
    assert links == ["01_a.html", "03_c.html", *prose, "01_a.html", "03_c.html"]
    assert "Lesson 2 · 5 minutes to read" in text


def test_code_cells_are_foldable_and_open(tmp_path):
    answer = v4.new_code_cell("z = 3", metadata={"tags": ["answer"]})
    text = page(tmp_path, "x", v4.new_code_cell("x = 1\ny = 2"), v4.new_code_cell(""), answer)
    cells = BeautifulSoup(text, "html.parser").find_all("details", class_="code")
    assert [(cell.has_attr("open"), cell.summary.text) for cell in cells] == [(True, "Set x, y (2 lines)")]


def test_tables_scroll_and_numbers_do_not_wrap(tmp_path):
    cell = v4.new_code_cell("x", execution_count=1)
    frame = '<div><table border="1" class="dataframe"><tr><td>-1.5</td><td>two words</td></tr></table></div>'
    cell.outputs = [v4.new_output("display_data", data={"text/html": frame})]
    text = page(tmp_path, "x", v4.new_markdown_cell("| a | b |\n|---|---|\n| 46,678 MB | 3 of 5 |"), cell)
    scrolling = BeautifulSoup(text, "html.parser").find_all(class_="scrolls", tabindex="0", role="group")
    assert [len(each.find_all("table")) for each in scrolling] == [1, 1]
    assert [cell.text for each in scrolling for cell in each.find_all(class_="number")] == ["46,678 MB", "-1.5"]


@pytest.mark.parametrize(
    "text", ["1", "−0.5", "12%", "1,024", "3.6 MB", "265 MB/s", "0.12 ± 0.03", "<0.1", "~5", "2×", "+3"]
)
def test_number_pattern_matches_numbers(text):
    assert html_parts.NUMBER.fullmatch(text)


@pytest.mark.parametrize("text", ["", "–", "3 of 5", "1 and more", "a 1", "GPT-2", "1; 2", "3 sentences"])
def test_number_pattern_rejects_other_text(text):
    assert not html_parts.NUMBER.fullmatch(text)


def test_course_gallery_lists_prerequisites(tmp_path):
    names = ["01_attention_from_nothing", "02_recommender", "03_masks"]
    listed = [runs.Run(name, {"steps": 3}, notebooks.read(notebooks.folder() / f"{name}.ipynb"), "") for name in names]
    for run in listed:
        run.outcome = runs.Outcome("ok", 1.0)
        run.path(tmp_path, ".html").write_text("", encoding="utf-8")
    text = gallery.write(listed, tmp_path, gallery.navigation({"Lessons": "index.html"})).read_text(encoding="utf-8")
    assert re.findall('<li class="(line|side)">', text) == ["line", "side", "line"]
    assert 'builds on <a href="01_attention_from_nothing.html"' in text
    assert "steps=3" not in text  # nor how each ran: it is a course
    assert len(re.findall("<h1", text)) == 1


def test_search_sections_contain_headings_and_prose_without_code(tmp_path):
    prose = (
        "# A title\n\nAbove.\n\n## On *masks*\n\nForbidden `cell`s.\n\n```python\nhidden = 1\n```\n\n- item\n\n## Last"
    )
    cell = v4.new_code_cell("secret = 2", execution_count=1)
    cell.outputs = [v4.new_output("stream", text="printed")]
    text = page(tmp_path, "01_a", v4.new_markdown_cell(prose), cell, v4.new_markdown_cell("After."))
    assert [tuple(section) for section in search_index.sections(text, "notebooks/01_a.html")] == [
        ("notebooks/01_a.html", "A title", "A title", "Above."),
        ("notebooks/01_a.html#On-masks", "A title", "On masks", "Forbidden cells. item"),
        ("notebooks/01_a.html#Last", "A title", "Last", "After."),
    ]


def test_search_index_is_a_script(tmp_path):
    (tmp_path / "notebooks").mkdir()
    page(tmp_path / "notebooks", "01_a", v4.new_markdown_cell("# A\n\nAn *induction* head copies."))
    (tmp_path / "notebooks/01_a.ipynb").write_text("{}", encoding="utf-8")
    search_index.write(tmp_path)
    text = (tmp_path / "search-index.js").read_text(encoding="utf-8")
    assert json.loads(text.removeprefix("tfvizSearchIndex=")) == [
        {"address": "notebooks/01_a.html", "page": "A", "heading": "A", "text": "An induction head copies."}
    ]
    assert (tmp_path / "site-search.js").stat().st_size < 25_000


def test_lesson_page_opens_with_its_view_alive_unless_it_is_large(tmp_path, monkeypatch):
    points = view.scatter([[1.0, 2.0], [3.0, 1.0]], ["a", "b"], title="Two points")
    data, metadata = points._repr_mimebundle_()
    output = v4.new_output("display_data", data, metadata=metadata)
    title = v4.new_markdown_cell("# Points\n\nA promise.\n\n**Questions:** Why?")
    tagged = v4.new_code_cell("1", outputs=[output], metadata={"tags": ["thumbnail"]})
    html = page(tmp_path, "01_points", title, tagged, v4.new_code_cell("2", outputs=[output]))
    soup = BeautifulSoup(html, "html.parser")
    first, second, third = soup.select("div.tfviz")
    assert first.find_parent("figure")["class"] == ["opening-of-lesson"]
    assert first.find_previous("p").get_text() == "A promise."
    assert str(first) == str(second) == str(third)
    bundles = soup.select("script[data-bundle]")
    assert len(bundles) == len({bundle["data-bundle"] for bundle in bundles})  # once each,
    mounts = [found.start() for found in re.finditer(f'mount\\("{first["data-view"]}"', html)]
    assert html.index("data-bundle") < mounts[0]  # before it is first needed
    assert len(mounts) == 3
    monkeypatch.setattr(lesson_page, "MAX_OPENING", 100)
    soup = BeautifulSoup(page(tmp_path, "02_points", title, tagged), "html.parser")
    assert len(soup.select("div.tfviz")) == 1
    assert "change it, further down" in soup.select_one("figure.opening-of-lesson:has(img.opening)").get_text()


def test_description_ends_at_word_boundary():
    assert html_parts.description("short") == "short"
    text = html_parts.description("some words, " * 30)
    assert len(text) <= html_parts.DESCRIPTION_LENGTH + 2
    assert text.endswith(("some …", "words …"))


def test_lesson_page_opens_with_downscaled_thumbnail(tmp_path):
    made = io.BytesIO()
    Image.new("RGB", (1520, 400), "teal").save(made, "PNG")
    data = {"image/png": base64.b64encode(made.getvalue()).decode(), "text/plain": "teal"}
    output = v4.new_output("display_data", data, metadata={"image/png": {"width": 1013}})
    title = v4.new_markdown_cell("# Teal\n\nA promise.\n\n**Questions:** Why?")
    tagged = v4.new_code_cell("1", outputs=[output], metadata={"tags": ["thumbnail"]})
    soup = BeautifulSoup(page(tmp_path, "01_teal", title, tagged), "html.parser")
    [picture] = soup.select("img.opening")
    assert (picture["width"], picture["alt"]) == ("1013", "")  # the width in the notebook
    assert picture.find_previous("h1").get_text().startswith("Teal")
    assert picture.find_previous("p").get_text() == "A promise."
    assert picture.find_next("p").get_text() == "Questions: Why?"
    link = picture.find_next("a")
    assert soup.find(id=link["href"].removeprefix("#")) is not None
    assert link.get_text() == "see how it is made, further down ↓"
    data["text/html"] = "<p>a view</p>"
    output = v4.new_output("display_data", data, metadata={"image/png": {"width": 1013}})
    live = v4.new_code_cell("1", outputs=[output], metadata={"tags": ["thumbnail"]})
    assert "change it, further down" in page(tmp_path, "03_live", title, live)
    kind, _, encoded = picture["src"].partition(",")
    assert kind == "data:image/webp;base64"
    assert Image.open(io.BytesIO(base64.b64decode(encoded))).size == (1520, 400)
    bare = page(tmp_path, "04_bare", v4.new_markdown_cell("# Bare"), tagged, v4.new_markdown_cell("Later."))
    assert bare.index('class="opening"') < bare.index("Later.")  # no paragraph of another cell is the promise
    plain = v4.new_code_cell("1", outputs=[output])
    assert 'opening"' not in page(tmp_path, "02_plain", title, plain)


@pytest.mark.parametrize(
    ("lines", "draws", "defines", "expected"),
    [(12, False, False, False), (13, False, False, True), (4, True, False, False), (5, True, False, True),
     (12, True, True, False), (13, True, True, True)],
)  # fmt: skip
def test_long_code_folds_and_code_that_draws_sooner(lines, draws, defines, expected):
    source = "\n".join(["def twice(x):"] * defines + ["    view.bars(x)"] * (lines - defines))
    output = v4.new_output("display_data", {"image/png" if draws else "text/plain": ""})
    assert html_exporter.folds(v4.new_code_cell(source, outputs=[output])) == expected

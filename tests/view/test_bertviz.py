"""bertviz's own views, offline: what is in the page, and what Chromium makes of it."""

import base64
import importlib
import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution

import nbformat
import pytest
import torch
from nbconvert import HTMLExporter

from tfviz.look import AttentionMaps

module = importlib.import_module("tfviz.view.bertviz")
bertviz = module.bertviz
pytest_plugins = ["browser"]
WORDS = ["the", "cat", "sat", "on", "mats"]
SHOWN = {  # a word -> what the page shows
    "</script><script>alert(1)</script>": "</script><sc…",
    "<img src=x onerror=alert(1)>": "<img␣src=x␣o…",
    "<!--<script>": "<!--<script>",
    "'\"`${1}\\": "'\"`${1}\\",
    "a\nb\tc": "a⏎b⇥c",
    "\0": "␀",
    "\ud800": "⟨D800⟩",
    "\u2028\u202e": "⟨2028⟩⟨202E⟩",
    "שלום": "שלום",
    "👩\u200d👧": "👩\u200d👧",
    "漢字": "漢字",
    "漢" * 9: "漢" * 5 + "…",
    "x" * 1000: "x" * 12 + "…",
    " the": "␣the",
    "": "∅",
    "&lt;b>": "&lt;b>",
    "PYTHON_PARAMS{}%s": "PYTHON_PARAM…",
}
kinds = pytest.mark.parametrize("kind", ["head", "model"])


def maps(layers=2, heads=3, queries=5, keys=5, **given):
    draw = torch.Generator().manual_seed(1)
    return AttentionMaps(torch.rand(layers, heads, queries, keys, generator=draw).softmax(-1), **given)


def parts(**layers):
    return {name: maps(count, queries=3 + len(name)) for name, count in layers.items()}


def html(picture):
    return picture._repr_mimebundle_()[0]["text/html"]


def params(picture):
    found = re.findall(r"\(Object\.assign\((\{.*\}), \{root_div_id: root\.id\}\)", html(picture))
    assert len(found) == 1
    return json.loads(found[0])


@kinds
def test_a_bundle_has_a_page_a_picture_and_a_text(kind):
    picture = bertviz(maps(), kind)
    data, metadata = picture._repr_mimebundle_()
    assert set(data) == {"text/html", "image/png", "text/plain"}
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert metadata["image/png"]["width"] > 0
    assert data["text/plain"] == repr(picture) == picture.summary
    assert picture.summary == f"bertviz's {kind} view\nAttentionMaps: 2 layers x 3 heads x 5 queries x 5 keys"


@kinds
def test_bertviz_own_script_is_there_unchanged_and_once(kind):
    page = html(bertviz(maps(), kind))
    own = next(file for file in distribution("bertviz").files if file.name == f"{kind}_view.js")
    assert page.count(own.read_text("utf-8")) == 1
    assert page.count("const params = PYTHON_PARAMS;") == 1
    assert len(re.findall(r"</script|<!--", page, re.I)) == 1
    assert not re.search(r"<(?:script|link)[^>]* (?:src|href)|sourceMappingURL|@import", page)


def test_the_data_is_there_once_in_four_decimals():
    some = maps(rows=WORDS)
    picture = bertviz(some)
    (data,) = params(picture)["attention"]
    torch.testing.assert_close(torch.tensor(data["attn"]), some.weights, atol=5.1e-5, rtol=0)
    assert data["left_text"] == data["right_text"] == WORDS
    weights = re.findall(r"0\.\d+", json.dumps(data["attn"]))
    assert len(weights) == some.weights.numel()
    assert max(map(len, weights)) <= 6
    assert html(picture).count(json.dumps(data["attn"][0][0][0], separators=(",", ":"))) == 1


def test_packed_maps_and_rectangles_are_drawn():
    packed = AttentionMaps((torch.rand(1, 2, 3, 4) * 255).to(torch.uint8), rows="abc", cols="wxyz")
    (data,) = params(bertviz(packed))["attention"]
    torch.testing.assert_close(torch.tensor(data["attn"]), packed.weights, atol=5.1e-5, rtol=0)
    assert (data["left_text"], data["right_text"]) == (list("abc"), list("wxyz"))


@kinds
def test_the_same_maps_give_the_same_bytes_in_another_process(kind, tmp_path):
    maps(rows=WORDS).save(tmp_path / "maps")
    code = (
        "import sys; from tfviz.look.maps import AttentionMaps; from tfviz.view.bertviz import bertviz;"
        "bertviz(AttentionMaps.load(sys.argv[1]), sys.argv[2]).save(sys.argv[3]);"
        "assert not {'bertviz', 'mpld3', 'xstatic', 'IPython'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "maps", kind, tmp_path / "other.html"])
    assert done.returncode == 0
    here = bertviz(maps(rows=WORDS), kind).save(tmp_path / "here.html")
    assert here.read_bytes() == (tmp_path / "other.html").read_bytes()


def test_different_views_have_different_ids():
    views = [bertviz(maps()), bertviz(maps(), "model"), bertviz(maps(rows=WORDS)), bertviz(parts(cross=2))]
    assert len({re.search(r'<div id="(bertviz-\w{16})"', html(view))[1] for view in views}) == 4


def test_any_word_is_text():
    words = list(SHOWN)
    picture = bertviz(maps(1, 1, len(words), len(words), rows=words))
    assert params(picture)["attention"][0]["left_text"] == list(SHOWN.values())
    page = html(picture)
    page.encode()
    script = page[page.index("<script>") + 8 :]
    assert "alert(1)" not in script
    assert script.index("</script") > script.rindex("})();")


@pytest.mark.parametrize("given", [{}, {"self": maps()}, {"encoder": maps(), "x": maps()}])
def test_other_parts_are_refused(given):
    with pytest.raises(ValueError, match="any of encoder, decoder, cross"):
        bertviz(given)


def test_unequal_depths_are_refused():
    with pytest.raises(ValueError, match="encoder 2 x 3, cross 1 x 3; bertviz draws as many as the first has"):
        bertviz(parts(encoder=2, cross=1))
    with pytest.raises(ValueError, match="decoder 2 x 3, cross 2 x 4"):
        bertviz({"decoder": maps(), "cross": maps(heads=4)})


def test_parts_come_in_bertviz_order():
    picture = bertviz(parts(cross=2, decoder=2, encoder=2))
    assert [part["name"] for part in params(picture)["attention"]] == ["encoder", "decoder", "cross"]
    assert picture.summary.count("AttentionMaps: 2 layers x 3 heads") == 3


@kinds
def test_what_cannot_be_drawn_is_refused(kind):
    with pytest.raises(ValueError, match=r"kind is 'neuron'; it can be 'head' or 'model'"):
        bertviz(maps(), "neuron")
    for shape in ((1, 1, 0, 0), (1, 0, 2, 2)):
        with pytest.raises(ValueError, match="nothing to draw"):
            bertviz(maps(*shape), kind)
    with pytest.raises(ValueError, match="no finite numbers"):
        bertviz(AttentionMaps(torch.full((1, 1, 2, 2), torch.nan)), kind)


def test_too_much_is_refused_before_it_is_written(monkeypatch):
    layer = torch.zeros(1, 1, 1).expand(12, 300, 300)
    with pytest.raises(ValueError, match=r"12,960,000 lines or more.*use view\.heads, or fewer tokens"):
        bertviz(AttentionMaps([layer] * 12), "model")
    with pytest.raises(ValueError, match="1,080,000 lines or more"):
        bertviz(AttentionMaps([layer] * 12), "head")
    with pytest.raises(ValueError, match=r"51,840,000 bytes or more, and 32,000,000 are allowed"):
        bertviz(AttentionMaps([layer[:, :150]] * 24), "head")
    monkeypatch.setattr(module, "BUDGET", 100_000)
    with pytest.raises(ValueError, match="bytes or more"):
        bertviz(maps())


@pytest.mark.parametrize("package", ["mpld3", "XStatic-jQuery", "bertviz"])
@pytest.mark.parametrize("how", ["no package", "no file"])
def test_a_missing_package_says_how_to_get_it(monkeypatch, package, how):
    def lacking(name):
        if name == package and how == "no package":
            raise PackageNotFoundError(name)
        return distribution("click" if name == package else name)

    monkeypatch.setattr(module, "distribution", lacking)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        bertviz(maps())


def opacities(page):
    return page.locator("line").evaluate_all("lines => lines.map(line => +line.getAttribute('stroke-opacity'))")


def texts(page, within="svg"):
    return page.locator(f"{within} text").evaluate_all("texts => texts.map(text => text.textContent)")


def test_the_head_view_is_drawn_and_its_layers_change(page, tmp_path):
    some = maps(rows=WORDS)
    page.shows(bertviz(some).save(tmp_path / "saved.html").read_text("utf-8"))
    assert texts(page) == WORDS * 2
    assert page.locator("img").count() == 0
    for layer in (0, 1):
        page.select_option("#layer", str(layer))
        torch.testing.assert_close(torch.tensor(opacities(page)) * 3, some[layer].flatten(), atol=1e-4, rtol=0)
    page.locator("svg > g:last-child rect").nth(1).dblclick()
    torch.testing.assert_close(torch.tensor(opacities(page))[25:50], some[1, 1].flatten(), atol=1e-4, rtol=0)
    page.locator("#left text").nth(2).hover()
    assert page.locator("line[visibility=visible]").count() == 15


def test_the_model_view_is_drawn_and_a_head_opens(page):
    some = maps(rows=WORDS)
    page.shows(html(bertviz(some, "model")))
    torch.testing.assert_close(torch.tensor(opacities(page)), some.weights.flatten(), atol=1e-4, rtol=0)
    page.locator("svg rect[style*='opacity: 0']").nth(4).click()
    assert texts(page)[-11:] == ["Layer 1, Head 1", *WORDS, *WORDS]


@kinds
def test_parts_can_be_chosen(page, kind):
    some = parts(encoder=2, decoder=2, cross=2)
    some["cross"] = maps(queries=4, keys=6, rows="abcd", cols="uvwxyz")
    page.shows(html(bertviz(some, kind)))
    assert page.locator("#filter option").all_inner_texts() == ["Encoder", "Decoder", "Cross"]
    page.select_option("#filter", "2")
    assert page.locator("line").count() == 3 * 4 * 6 * (1 if kind == "head" else 2)
    if kind == "head":
        assert "".join(texts(page)) == "abcduvwxyz"


@kinds
def test_any_word_is_shown_and_none_is_run(page, kind):
    words = list(SHOWN)
    page.shows(html(bertviz(maps(1, 2, len(words), len(words), rows=words), kind)))
    if kind == "model":
        page.locator("svg rect[style*='opacity: 0']").nth(0).click(position={"x": 5, "y": 5})
    assert texts(page)[-2 * len(words) :] == list(SHOWN.values()) * 2


def test_views_on_one_page_keep_to_themselves(page):
    """The same view twice, and others, in a page that has a require.js, a jQuery and a d3 of its own."""
    views = [maps(), maps(), maps(rows=WORDS)]
    own = "const own = () => { throw 'asked' }; own.amd = {}; for (const name of ['define', 'require', 'requirejs',"
    own += " 'd3', '$', 'jQuery']) window[name] = own"
    page.shows(f"<script>{own}</script>" + "".join(html(bertviz(view)) for view in views))
    assert page.evaluate("[define, require, requirejs, d3, $, jQuery].every(name => name === own)")
    ids = page.locator("body > div").evaluate_all("divs => divs.map(div => div.id)")
    assert [name[-2:] for name in ids] == ["-1", "-2", "-3"]
    assert [texts(page, f"#{name}")[0] for name in ids] == ["0", "0", "the"]
    page.locator("select").nth(1).select_option("1")
    shown = [page.locator(f"#{name} line").first.get_attribute("stroke-opacity") for name in ids]
    assert shown[0] == shown[2] != shown[1]
    assert page.locator("option").count() == 6


def test_a_page_by_nbconvert_shows_the_views(page):
    cells = []
    for kind in ("head", "head", "model"):
        data, metadata = bertviz(maps(rows=WORDS), kind)._repr_mimebundle_()
        output = nbformat.v4.new_output("display_data", data, metadata=metadata)
        cells.append(nbformat.v4.new_code_cell("view", outputs=[output]))
    text, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    text = re.sub(r'<script[^>]* src="https://[^"]*"[^>]*>', "<script>", text)  # nbconvert's own
    page.set_viewport_size({"width": 600, "height": 600})
    page.shows(text)
    assert texts(page)[:20] == WORDS * 4
    model = page.locator("#vis svg").nth(2)
    shown, wanted = model.bounding_box(), [float(model.get_attribute(side)) for side in ("width", "height")]
    assert [shown["width"], shown["height"]] == pytest.approx(wanted, abs=1)


def test_a_picture_stands_where_no_script_runs(chromium, tmp_path):
    path = bertviz(maps()).save(tmp_path / "x.html")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("img").bounding_box()["width"] > 100
    assert page.locator("body").inner_text().strip() == ""
    context.close()

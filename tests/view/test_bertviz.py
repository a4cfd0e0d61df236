"""bertviz's own views, offline: contents of the page and behaviour in Chromium."""

import base64
import importlib
import json
import re
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


def output(picture):
    return picture._repr_mimebundle_()[0]["text/html"]


def params(picture):
    found = re.findall(r"const PYTHON_PARAMS = (\{.*\});", picture.page())
    assert len(found) == 1
    return json.loads(found[0])


@kinds
def test_page_contains_bertviz_script_and_no_external_resources(kind):
    picture = bertviz(maps(), kind)
    data, _ = picture._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"] == f"bertviz's {kind} view\nAttentionMaps: 2 layers x 3 heads x 5 queries x 5 keys"
    page = picture.page()
    own = next(file for file in distribution("bertviz").files if file.name == f"{kind}_view.js")
    assert page.count(own.read_text("utf-8")) == 1
    assert not re.search(r"<(?:script|link)[^>]* (?:src|href)|sourceMappingURL|@import", page)
    assert page == bertviz(maps(), kind).page()


def test_attention_data_is_stored_once_in_four_decimals():
    for some in (
        maps(query_tokens=WORDS),
        AttentionMaps((torch.rand(1, 2, 3, 4) * 255).to(torch.uint8), "abc", "wxyz"),
    ):
        (data,) = params(bertviz(some))["attention"]
        torch.testing.assert_close(torch.tensor(data["attn"]), some.weights, atol=5.1e-5, rtol=0)
        assert (data["left_text"], data["right_text"]) == (some.query_tokens, some.key_tokens)
        weights = re.findall(r"0\.\d+", json.dumps(data["attn"]))
        assert max(map(len, weights)) <= 6


def test_parts_are_in_bertviz_order():
    picture = bertviz(parts(cross=2, decoder=2, encoder=2))
    assert [part["name"] for part in params(picture)["attention"]] == ["encoder", "decoder", "cross"]
    assert picture.summary.count("AttentionMaps: 2 layers x 3 heads") == 3


LAYER = torch.zeros(1, 1, 1).expand(12, 300, 300)


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({}, "head", "any of encoder, decoder, cross"),
        ({"encoder": maps(), "x": maps()}, "head", "any of encoder, decoder, cross"),
        (parts(encoder=2, cross=1), "head", "encoder 2 x 3, cross 1 x 3"),
        ({"decoder": maps(), "cross": maps(heads=4)}, "head", "decoder 2 x 3, cross 2 x 4"),
        (maps(), "neuron", "kind is 'neuron'"),
        (maps(1, 1, 0, 0), "model", "nothing to draw"),
        (maps(1, 0, 2, 2), "head", "nothing to draw"),
        (AttentionMaps(torch.full((1, 1, 2, 2), torch.nan)), "head", "finite"),
        (AttentionMaps([LAYER] * 12), "model", "12,960,000 lines or more"),
        (AttentionMaps([LAYER] * 12), "head", "1,080,000 lines or more"),
        (AttentionMaps([LAYER[:, :150]] * 24), "head", "51,840,000 bytes or more, and 32,000,000"),
    ],
)
def test_bertviz_rejects_invalid_maps(given, kind, says):
    with pytest.raises(ValueError, match=says):
        bertviz(given, kind)


def test_oversized_page_raises(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 100_000)
    with pytest.raises(ValueError, match="bytes or more"):
        bertviz(maps())


@pytest.mark.parametrize("package", ["mpld3", "XStatic-jQuery", "bertviz"])
@pytest.mark.parametrize("how", ["no package", "no file"])
def test_missing_package_raises_with_install_hint(monkeypatch, package, how):
    def lacking(name):
        if name == package and how == "no package":
            raise PackageNotFoundError(name)
        return distribution("click" if name == package else name)

    monkeypatch.setattr(module, "distribution", lacking)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        bertviz(maps())


def opacities(page):
    return page.locator("line").evaluate_all("lines => lines.map(line => +line.getAttribute('stroke-opacity'))")


def texts(page):
    return page.locator("svg text").evaluate_all("texts => texts.map(text => text.textContent)")


def test_head_view_draws_weights_of_selected_layer_and_head(page, tmp_path):
    some = maps(query_tokens=WORDS)
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


def test_model_view_draws_all_weights_and_opens_head(page):
    some = maps(query_tokens=WORDS)
    page.shows(bertviz(some, "model").page())
    torch.testing.assert_close(torch.tensor(opacities(page)), some.weights.flatten(), atol=1e-4, rtol=0)
    page.locator("svg rect[style*='opacity: 0']").nth(4).click()
    assert texts(page)[-11:] == ["Layer 1, Head 1", *WORDS, *WORDS]


@kinds
def test_parts_can_be_selected(page, kind):
    some = parts(encoder=2, decoder=2, cross=2)
    some["cross"] = maps(queries=4, keys=6, query_tokens="abcd", key_tokens="uvwxyz")
    page.shows(bertviz(some, kind).page())
    assert page.locator("#filter option").all_inner_texts() == ["Encoder", "Decoder", "Cross"]
    page.select_option("#filter", "2")
    assert page.locator("line").count() == 3 * 4 * 6 * (1 if kind == "head" else 2)
    if kind == "head":
        assert "".join(texts(page)) == "abcduvwxyz"


@kinds
def test_hostile_words_are_shown_as_text(page, kind):
    words = list(SHOWN)
    page.shows(output(bertviz(maps(1, 2, len(words), len(words), query_tokens=words), kind)))
    frame = page.frames[1]
    if kind == "model":
        frame.locator("svg rect[style*='opacity: 0']").nth(0).click(position={"x": 5, "y": 5})
    assert texts(frame)[-2 * len(words) :] == list(SHOWN.values()) * 2


def test_notebook_views_are_independent_and_fit_their_frames(page):
    cells = []
    for kind in ("head", "head", "model"):
        data, metadata = bertviz(maps(query_tokens=WORDS), kind)._repr_mimebundle_()
        shown = nbformat.v4.new_output("display_data", data, metadata=metadata)
        cells.append(nbformat.v4.new_code_cell("view", outputs=[shown]))
    text, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    page.set_viewport_size({"width": 600, "height": 600})
    page.shows(re.sub(r'<script[^>]* src="https://[^"]*"[^>]*>', "<script>", text))  # nbconvert's own
    one, other, model = page.frames[1:]
    assert texts(one) == texts(other) == WORDS * 2
    one.select_option("#layer", "1")
    assert opacities(one) != opacities(other)
    assert page.locator("img").count() == 0
    for frame in (one, other, model):
        frame.wait_for_function("innerHeight >= document.body.offsetHeight")
    svg = model.locator("#vis svg")
    wanted = [float(svg.get_attribute(side)) for side in ("width", "height")]
    assert [svg.bounding_box()[side] for side in ("width", "height")] == pytest.approx(wanted, abs=1)


def test_picture_is_shown_without_javascript(chromium, tmp_path):
    picture = bertviz(maps())
    (tmp_path / "output.html").write_text(output(picture), encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in (picture.save(tmp_path / "x.html"), tmp_path / "output.html"):
        page.goto(path.as_uri())
        assert page.locator("img:visible").bounding_box()["width"] > 100
        assert page.locator("body").inner_text().strip() == ""
    context.close()

"""`view.neurons`: products and scores match the model, and the page matches Python."""

import csv

import pytest
import torch
from browser import control, plain, press, takes, wait_until_drawn
from browser import status_text as status
from example_views import COLS, ROWS, multiplied
from small_models import randomize_weights
from writing_studios import KINDS, TOKENIZER, gpt

from tfviz import view
from tfviz.look import AttentionMaps, capture
from tfviz.view.neurons import HeadParts

pytest_plugins = ["browser"]
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])


def hugging_face(kind):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    few = {"vocab_size": len(TOKENIZER), "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 20}
    if kind == "gpt2":
        sizes = {"n_positions": 20, "n_embd": 12, "n_layer": 2, "n_head": 3, "bos_token_id": 0, "eos_token_id": 0}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(TOKENIZER), **sizes))
    if kind == "llama":
        config = transformers.LlamaConfig(hidden_size=16, num_key_value_heads=2, max_position_embeddings=20, **few)
        return transformers.LlamaForCausalLM(config)
    return transformers.BertModel(transformers.BertConfig(hidden_size=16, max_position_embeddings=20, **few))


MODELS = {
    **{kind: lambda kind=kind: gpt(**KINDS[kind]) for kind in KINDS},
    **{kind: lambda kind=kind: hugging_face(kind) for kind in ("gpt2", "llama", "bert")},
}


@pytest.mark.parametrize("kind", MODELS)
@torch.no_grad()
def test_head_parts_match_model_scores_and_weights(kind):
    model = randomize_weights(MODELS[kind](), seed=None, std=0.35)
    with capture(model, ["*.scores", "*.pattern"]) as seen:
        model(IDS)
    with capture(model, lazy=True) as lazily:
        model(IDS)
    maps = AttentionMaps.from_capture(lazily, TOKENIZER.tokens(IDS[0]))
    found = 0
    for number, layer in enumerate(maps.layers):
        scores, pattern = scores_and_pattern(seen, number)
        for head in range(layer.shape[0]):
            parts = HeadParts.from_layer(layer, head)
            assert (parts.bias is not None) == (kind == "alibi")
            for row in range(layer.shape[1]):
                allowed_cells = scores[0, head, row] > -1e30
                torch.testing.assert_close(
                    parts.scores(row)[allowed_cells], scores[0, head, row][allowed_cells], rtol=0, atol=1e-5
                )
                assert (parts.scores(row)[~allowed_cells] == -torch.inf).all()
                torch.testing.assert_close(parts.weights(row), pattern[0, head, row], rtol=0, atol=1e-5)
                found += 1
    assert found >= 2 * 3 * 7


def scores_and_pattern(seen, number):
    sites = [site for site in seen if f".{number}." in site]
    return seen[next(s for s in sites if s.endswith(".scores"))], seen[next(s for s in sites if s.endswith(".pattern"))]


def test_shared_keys_are_stored_once():
    document = view.neurons(multiplied()).document
    assert [len(layer["keys"]) for layer in document["layers"]] == [2, 2]
    assert [len(layer["queries"]) for layer in document["layers"]] == [4, 4]
    assert len(document["masks"]) == 1


def test_page_matches_python(open_view, tmp_path):
    maps = multiplied()
    page = open_view(view.neurons(maps, 0, 1, 2))
    control(page, "Head").select_option("3")
    page.locator(".word").nth(4).click()
    wait_until_drawn(page)
    parts = HeadParts.from_layer(maps.layers[0], 3)
    rows = list(csv.reader(takes(page, "CSV", tmp_path).read_text("utf-8").splitlines()))
    assert rows[1][1:] == ["sum of q × k", "scale", "bias", "score", "weight"]
    scores, weights = parts.scores(4), parts.weights(4)
    for key, (name, total, scale, *rest) in enumerate(rows[2 : 2 + len(COLS)]):
        assert name == COLS[key]
        assert float(total) == pytest.approx((parts.query[4] @ parts.key[key]).item(), rel=1e-3)
        assert float(scale) == pytest.approx(0.4)
        if scores[key] == -torch.inf:
            assert rest == ["", "", ""]
            continue
        bias, score, weight = map(float, rest)
        assert bias == pytest.approx(parts.bias[4, key].item(), rel=1e-3)
        assert score == pytest.approx(scores[key].item(), rel=1e-3)
        assert weight == pytest.approx(weights[key].item(), rel=1e-3)
    products = torch.tensor([[float(cell) for cell in row[1:]] for row in rows[12:19]])
    torch.testing.assert_close(products, parts.query[4] * parts.key, rtol=1e-3, atol=1e-6)


def test_keys_and_dimensions_are_read_by_keyboard(open_view):
    maps = multiplied()
    page = open_view(view.neurons(maps, 1, 0, 4))
    parts = HeadParts.from_layer(maps.layers[1], 0)
    best = COLS[int(parts.weights(4).argmax())]
    assert plain(status(page)).startswith(f"query “{ROWS[4]}”, key “{best}”: ")
    page.locator("canvas").focus()
    press(page, "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight")
    assert plain(status(page)).startswith(f"query “{ROWS[4]}”, key “{COLS[1]}”: dimension 1: ")
    value = (parts.query[4, 1] * parts.key[1, 1]).item()
    assert float(status(page).rpartition(" = ")[2].replace("−", "-")) == pytest.approx(value, rel=1e-2)
    page.locator(".word").nth(4).focus()
    press(page, "Home")
    assert f"query “{ROWS[0]}”" in plain(status(page))
    assert page.locator(".word[aria-selected='true']").text_content() == ROWS[0]


def test_long_text_shows_strongest_keys_only(open_view):
    page = open_view(view.neurons(long_maps()))
    assert page.locator(".neurons p.muted").text_content() == "the 60 keys with the largest weights; CSV has all"
    assert page.locator("canvas").bounding_box()["height"] < 1400


def long_maps():
    maps = multiplied(5, 7)
    layer = maps.layers[0]
    key = torch.randn(1, 2, 90, 6, generator=torch.Generator().manual_seed(1))
    call = type(layer.call)(layer.call.query, key, key, None, 0.4)
    return AttentionMaps([type(layer).from_call(call, 0)], ROWS, [f"word{number}" for number in range(90)])


def test_summary_names_most_attended_key():
    maps = multiplied()
    made = view.neurons(maps, 0, 1, 3)
    weights = HeadParts.from_layer(maps.layers[0], 1).weights(3)
    assert made.summary.startswith("Layer 0, head 1\n'd' looks most at ")
    assert repr(COLS[int(weights.argmax())]) in made.summary
    assert made._png("dark")[:4] == b"\x89PNG"

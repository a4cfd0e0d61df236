"""`view.masks`, `positions`, `as_similarities` and `gates`: documents, static pictures and input checks."""

import zlib

import numpy
import pytest
import torch

from tfviz import view
from tfviz.layers import masks, positions
from tfviz.view.tables import Similarity

WORDS = ["one", "two", "three", "four", "five"]


def floats(lab, panel):
    start, length = panel["data"]
    numbers = numpy.frombuffer(lab.data[start : start + length], "<f4")
    return numbers.reshape(len(panel["rows"]), len(panel["columns"]))


def bits(lab, number):
    start, length = lab.document["masks"][number]
    cells = numpy.unpackbits(numpy.frombuffer(zlib.decompress(lab.data[start : start + length]), numpy.uint8))
    shape = len(lab.document["rows"]), len(lab.document["columns"])
    return cells[: shape[0] * shape[1]].reshape(shape).astype(bool)


def test_masks_document_contains_every_rule_at_every_size():
    sizes = {size: masks.window(size).dense(5, 7) for size in (1, 2, 6)}
    lab = view.masks({"causal": masks.causal.dense(5, 7), "window": sizes}, WORDS, key_tokens=list("abcdefg"))
    causal, window = lab.document["predicates"]
    assert (causal["sizes"], window["sizes"]) == ([""], ["1", "2", "6"])
    assert (bits(lab, causal["masks"][0]) == masks.causal.dense(5, 7)[0, 0].numpy()).all()
    for size, number in zip(sizes, window["masks"]):
        assert (bits(lab, number) == sizes[size][0, 0].numpy()).all()
    assert lab.document["state"]["roles"] == {"causal": "all"}
    windows = {size: masks.window(size).dense(5, 5) for size in (1, 2, 3)}
    rules = {"causal": masks.causal.dense(5, 5), "window": windows}
    used = view.masks(rules, roles=dict.fromkeys(rules, "all"))
    assert "9 of 25 cells allowed by causal & window(2);" in used.summary  # where the slider stands at first


def test_the_picture_of_a_mask_has_the_words_of_the_page():
    shown = view.mask(torch.ones(5, 5).bool().tril(), WORDS)
    labels = [[tick.get_text() for tick in axis.get_ticklabels()] for axes in shown.figure().axes[:1]
              for axis in (axes.xaxis, axes.yaxis)]  # fmt: skip
    assert labels == [WORDS, WORDS] == [shown.document["columns"], shown.document["rows"]]


def test_positions_document_contains_values_and_cosines():
    table = positions.sinusoids(torch.arange(9), 6)
    lab = view.positions(
        {"sinusoidal": table, "ALiBi": view.as_similarities(positions.alibi(9, 4)[1])}, trained_length=5
    )
    first, second = lab.document["tabs"]
    shown, alike = first["panels"]
    numpy.testing.assert_array_equal(floats(lab, shown), table.numpy())
    cosine = torch.nn.functional.cosine_similarity(table[:, None], table[None], dim=-1)
    numpy.testing.assert_allclose(floats(lab, alike), cosine.numpy(), atol=1e-6)
    assert (shown["dividers"], alike["dividers"]) == ([("rows", 5)], [("rows", 5), ("columns", 5)])
    (bias,) = second["panels"]
    numpy.testing.assert_array_equal(floats(lab, bias), positions.alibi(9, 4)[1].numpy())
    assert bias["scale"] == "diverging"
    assert isinstance(view.as_similarities(table[:6]), Similarity)


def test_positions_still_picture_shows_similarity_of_each_kind():
    table, bias = positions.sinusoids(torch.arange(9), 6), positions.alibi(9, 4)[1]
    kinds = {"sinusoidal": table, "ALiBi": view.as_similarities(bias)}
    drawn = {axes.get_title(loc="left"): axes for axes in view.positions(kinds).figure().axes if axes.images}
    cosine = torch.nn.functional.cosine_similarity(table[:, None], table[None], dim=-1)
    for name, wanted in {"sinusoidal": cosine, "ALiBi": bias}.items():
        (image,) = drawn[name].images
        numpy.testing.assert_allclose(image.get_array(), wanted.numpy(), atol=1e-6)
        assert image.get_clim() == pytest.approx((-float(wanted.abs().max()), float(wanted.abs().max())))


def test_gates_document_contains_values_by_word():
    gates = {"input": torch.rand(5, 3), "cell": torch.randn(5, 3) * 2}
    lab = view.gates(gates, WORDS)
    everything, *single = lab.document["tabs"]
    assert [panel["name"] for panel in everything["panels"]] == [tab["name"] for tab in single] == list(gates)
    for panel in everything["panels"]:
        numpy.testing.assert_array_equal(floats(lab, panel), gates[panel["name"]].T.numpy())
        assert panel["columns"] == WORDS
    assert [panel["scale"] for panel in everything["panels"]] == ["linear", "diverging"]


def test_alibi_matches_paper():
    slopes = -positions.alibi(3, 8)[:, 2, 1]
    assert slopes.tolist() == [2.0**-n for n in range(1, 9)]  # Press et al. 2022, section 3, for 8 heads
    bias = positions.alibi(5, 4)
    for head, query, key in torch.cartesian_prod(torch.arange(4), torch.arange(5), torch.arange(5)).tolist():
        assert bias[head, query, key] == -(2.0 ** (-2 * (head + 1))) * abs(query - key)


def test_rotary_agreement_matches_mean_rotated_score():
    kind = positions.Rotary(7, 10, 1)
    vectors = torch.nn.functional.normalize(torch.randn(4000, 10, generator=torch.Generator().manual_seed(0)), dim=-1)
    turned = kind.rotate(vectors[:, None, None].expand(-1, 1, 7, -1))[:, 0]
    scores = torch.einsum("nid,njd->ij", turned, turned) / len(vectors)
    torch.testing.assert_close(kind.cosine_by_distance(7), scores, atol=0.02, rtol=0)


def test_relative_positions_depend_only_on_distance():
    table = positions.relative(6, 8)
    for distance in range(6):
        assert table.diagonal(distance).unique().numel() == 1 or table.diagonal(distance).std() < 1e-6
    torch.testing.assert_close(table.diagonal(), torch.ones(6))


def test_positions_reject_trained_beyond_longest_table():
    with pytest.raises(ValueError, match="trained_length is 9; the longest table has 5 positions"):
        view.positions(torch.eye(5), trained_length=9)
    with pytest.raises(ValueError, match="trained_length is 6"):
        view.positions({"a": torch.eye(5), "b": torch.eye(3)}, trained_length=6)
    assert view.positions({"a": torch.eye(5), "b": torch.eye(3)}, trained_length=5).document["tabs"][0]["note"] == ""

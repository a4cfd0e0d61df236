"""Invalid arguments raise errors with helpful messages."""

import numpy
import pytest
import torch
from torch import nn

from tfviz import view
from tfviz.layers import masks
from tfviz.look import AttentionMaps, capture


def test_unknown_theme_raises(tmp_path):
    with pytest.raises(ValueError, match="'sepia'; it can be 'light' or 'dark'"), view.theme("sepia"):
        pass
    with pytest.raises(ValueError, match="sepia"):
        view.mask(masks.causal.dense(3, 3)).save(tmp_path / "x.png", style="sepia")
    assert list(tmp_path.iterdir()) == []


def test_attention_maps_reject_mismatched_words_and_weights():
    weights = torch.rand(1, 2, 3, 5)
    with pytest.raises(ValueError, match="query_tokens has 5 labels, the maps have 3 queries"):
        AttentionMaps(weights, query_tokens="abcde")
    with pytest.raises(ValueError, match="layer head query key"):
        AttentionMaps(weights[0])
    with pytest.raises(ValueError, match=r"no weights.*look\.capture"):
        AttentionMaps([])


MAPS = AttentionMaps(torch.rand(2, 3, 5, 5))


def test_integer_masks_and_numeric_words_are_accepted():
    allowed = masks.causal.dense(5, 5)[0, 0]
    whole = AttentionMaps(
        MAPS.weights, query_tokens=[1, numpy.int64(2), torch.tensor(3), "d", "e"], mask=allowed.long()
    )
    assert whole.query_tokens == ["1", "2", "3", "d", "e"]
    same = AttentionMaps(MAPS.weights, whole.query_tokens, mask=allowed)
    assert view.head(whole, 0, 1).data == view.head(same, 0, 1).data


def test_live_view_clamps_layer_to_selected_capture():
    parts = {"shallow": AttentionMaps(torch.rand(1, 2, 4, 4)), "deep": MAPS}
    live = view.live(parts, mode="head", part=1, layer=1, head=2)
    live.part = 0
    assert live.view().document["state"]["layer"] == 0


def test_attention_maps_of_different_head_counts_need_sites():
    model = nn.ModuleList([nn.MultiheadAttention(6, heads, batch_first=True) for heads in (2, 3)])
    x = torch.randn(2, 5, 6)
    with capture(model) as seen:
        [layer(x, x, x) for layer in model]
    with pytest.raises(ValueError, match=r"sites= selects some: 0\.pattern \(2, 5, 5\), 1\.pattern \(3, 5, 5\)"):
        AttentionMaps.from_capture(seen)
    assert AttentionMaps.from_capture(seen, sites="1.*").shape == (1, 3, 5, 5)
    with pytest.raises(LookupError, match=r"no pattern of '2\.\*' was captured"):
        AttentionMaps.from_capture(seen, sites="2.*")


def test_save_to_unwritable_path_raises(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(OSError, match="file"):
        AttentionMaps(torch.rand(1, 2, 3, 5)).save(tmp_path / "file" / "maps")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

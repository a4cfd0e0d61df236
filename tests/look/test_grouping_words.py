"""Words of groups by globs: from the beginning of a name, or from a part of its path on."""

import pytest
import torch
from torch import nn

from tfviz import look


class Side(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(6, 2, batch_first=True)
        if cross:
            self.encoder_attn = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x, states=None):
        x = self.self_attn(x, x, x)[0]
        return x if states is None else self.encoder_attn(x, states, states)[0]


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Side(False), Side(True)

    def forward(self, source, target):
        return self.decoder(target, self.encoder(source))


class Whole(nn.Module):
    """Named as Marian is: model.encoder..., model.decoder...encoder_attn."""

    def __init__(self):
        super().__init__()
        self.model = Inner()

    def forward(self, source, target):
        return self.model(source, target)


@pytest.mark.parametrize("prefix", ["", "model."])
def test_encoder_and_decoder_are_found_behind_the_models_name(prefix):
    model = Whole()
    with torch.no_grad(), look.capture(model) as seen:
        model(torch.randn(1, 5, 6), torch.randn(1, 3, 6))
    source, target = list("abcde"), list("xyz")
    made = look.groups(seen, {f"{prefix}encoder*": source, f"{prefix}decoder*": target})
    words = {name: (maps.rows, maps.cols) for name, maps in made.items()}
    assert words == {
        "model.encoder.self_attn": (source, source),
        "model.decoder.self_attn": (target, target),
        "model.decoder.encoder_attn": (target, source),
    }
    only = look.groups(seen, {"encoder*": source})
    assert only["model.decoder.encoder_attn"].rows == ["0", "1", "2"]
    with pytest.raises(LookupError, match=r"rows: no group matches 'decodr.'; there are: model.encoder.self_attn, "):
        look.groups(seen, {"encoder*": source, "decodr*": target})

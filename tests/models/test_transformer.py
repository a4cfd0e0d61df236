"""The encoder-decoder Transformer and its translation loss (see also test_encoder_decoders.py)."""

from math import cos, log, sin, sqrt

import pytest
import torch
from small_models import build, source, target
from torch import nn
from torch.nn import functional

from tfviz.layers import DecoderBlock, post_norm, pre_norm
from tfviz.learn import losses
from tfviz.models import Transformer

SOURCE, TARGET, DIM = 11, 13, 6  # two tokenizers and the width
residuals = pytest.mark.parametrize("residual", [pre_norm, post_norm])
tokenizers = pytest.mark.parametrize("target_vocab_size", [None, TARGET])


def transformer(target_vocab_size=TARGET, **parts):
    parts = {"context": 12, "layers": 2, "heads": 3, "dim": DIM, "inner": 10, **parts}
    return build(Transformer, SOURCE, target_vocab_size, std=0.6, **parts)


def waves(length):
    rows = [
        [(cos if column % 2 else sin)(position / 10_000 ** (column // 2 * 2 / DIM)) for column in range(DIM)]
        for position in range(length)
    ]
    return torch.tensor(rows)


def torch_transformer(residual):
    norms = [nn.LayerNorm(DIM) if residual is pre_norm else None for _ in range(2)]
    parts = {"dropout": 0.0, "batch_first": True, "norm_first": residual is pre_norm}
    encoder, decoder = (kind(DIM, 3, 10, **parts) for kind in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer))
    return nn.Transformer(
        DIM,
        3,
        custom_encoder=nn.TransformerEncoder(encoder, 2, norms[0], enable_nested_tensor=False),
        custom_decoder=nn.TransformerDecoder(decoder, 2, norms[1]),
        batch_first=True,
    ).eval()


def parameter_pairs(ours, theirs):
    """Each parameter of ours but the tables, and theirs."""
    for mine, other in [*zip(ours.encoder, theirs.encoder.layers), *zip(ours.decoder, theirs.decoder.layers)]:
        attentions = [(mine.attention, other.self_attn)]
        modules = [(mine.feed_forward[0], other.linear1), (mine.feed_forward[2], other.linear2)]
        modules.append((mine.attention_norm, other.norm1))
        if isinstance(mine, DecoderBlock):
            attentions.append((mine.cross, other.multihead_attn))
            modules += [(mine.cross_norm, other.norm2), (mine.feed_forward_norm, other.norm3)]
        else:
            modules.append((mine.feed_forward_norm, other.norm2))
        for attention, their in attentions:
            modules.append((attention.out_proj, their.out_proj))
            yield from ((attention.in_proj.weight, their.in_proj_weight), (attention.in_proj.bias, their.in_proj_bias))
        for module, their in modules:
            yield from zip(module.parameters(), their.parameters(), strict=True)
    if theirs.encoder.norm:
        yield from zip(ours.encoder_norm.parameters(), theirs.encoder.norm.parameters(), strict=True)
        yield from zip(ours.decoder_norm.parameters(), theirs.decoder.norm.parameters(), strict=True)


@residuals
@tokenizers
def test_transformer_matches_torch(residual, target_vocab_size):
    ours, theirs = transformer(target_vocab_size, residual=residual), torch_transformer(residual)
    pairs = list(parameter_pairs(ours, theirs))
    with torch.no_grad():
        for mine, other in pairs:
            other.copy_(mine)
    tables = {table: table.weight.detach().clone().requires_grad_() for table in (ours.source, ours.target)}
    from_table, to_table = tables[ours.source], tables[ours.target]
    pairs += [(table.weight, copy) for table, copy in tables.items()]
    assert {id(mine) for mine, _ in pairs} == {id(parameter) for parameter in ours.parameters()}
    states = theirs(
        functional.embedding(source(), from_table) * sqrt(DIM) + waves(7),
        functional.embedding(target(), to_table) * sqrt(DIM) + waves(5),
        tgt_mask=torch.ones(5, 5).triu(1).bool(),
        src_key_padding_mask=source() == 0,
        memory_key_padding_mask=source() == 0,
    )
    given, expected = ours(source(), target()), states @ to_table.T
    torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-5)
    direction = torch.randn(given.shape, generator=torch.Generator().manual_seed(1))
    (given * direction).sum().backward()
    (expected * direction).sum().backward()
    for mine, other in pairs:
        assert mine.grad.any()
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("residual", [pre_norm, post_norm])
@pytest.mark.parametrize("inner", [10, 3 * DIM])
def test_initialization_is_within_glorot_bound(inner, residual):
    torch.manual_seed(5)
    model = Transformer(SOURCE, 211, layers=2, heads=3, dim=DIM, inner=inner, residual=residual)
    ends = ("out_proj.weight", "feed_forward.2.weight") if residual is pre_norm else ()
    for name, parameter in model.named_parameters():
        if name in ("source.weight", "target.weight"):
            continue
        if parameter.dim() == 1:
            assert torch.equal(parameter, torch.full_like(parameter, "norm.weight" in name)), name
            continue
        for matrix in parameter.chunk(3 if "in_proj" in name else 1):
            bound = sqrt(6 / sum(matrix.shape)) * (0.1 if name.endswith(ends) else 1)
            assert 0.8 < matrix.abs().max() / bound <= 1 + 1e-6, name
    assert model.target.weight.std().item() == pytest.approx(DIM**-0.5, rel=0.1)


def test_decoder_block_applies_dropout_to_every_branch():
    x, memory = torch.randn(4, 5, DIM), torch.randn(4, 7, DIM)
    assert torch.equal(DecoderBlock(DIM, 3, dropout=1.0).train()(x, memory), x)
    block = DecoderBlock(DIM, 3, norm=nn.RMSNorm)
    assert {type(norm) for norm in (block.attention_norm, block.cross_norm, block.feed_forward_norm)} == {nn.RMSNorm}


class LastToken(nn.Module):
    """Logits that depend on the last token alone."""

    logits = torch.tensor([[2, 2, 2, 2], [3, 3, 2, 1], [2, 2, 2, 2], [1, 2, 3, 3]]) * -log(2)

    def forward(self, source, target):
        assert target.tolist() == [[1, 3, 2], [1, 2, 0]]
        return self.logits[target]


@pytest.mark.parametrize(("smoothing", "bits"), [(0.0, 1 + 3 + 2), (0.2, 0.8 * 6 + 0.2 * 3 * (1 + 2 + 3 + 3) / 4)])
def test_translation_loss_matches_hand_computed_values(smoothing, bits):
    batch = torch.tensor([[3], [2]]), torch.tensor([[1, 3, 2, 0], [1, 2, 0, 0]])
    total, count = losses.translation(smoothing)(LastToken(), batch)
    assert (total.item(), count) == (pytest.approx(bits * log(2), rel=1e-6), 3)

"""BERT: its encoder, heads, loss and classifier (compared with Hugging Face in test_checkpoints.py)."""

import math

import pytest
import torch
from small_models import Always, build, close, parameters
from torch import nn

from tfviz import look, text
from tfviz.layers import pre_norm
from tfviz.learn import fit, losses
from tfviz.models import BERT, BERTClassifier

IDS = torch.tensor([[4, 9, 5, 10, 3, 12, 8], [7, 2, 6, 11, 1, 0, 0]])
WORDS = IDS != 0
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0]])


def bert(**parts):
    return build(BERT, 13, **{"context": 11, "layers": 2, "heads": 3, "dim": 6, "inner": 5, **parts})


def pairs(seed=1):
    """Sentences of two documents, in pairs, with hidden tokens: ids, targets, segments, follows."""
    draw = torch.Generator().manual_seed(seed)
    documents = [[torch.randint(7, 29, (length,), generator=draw) for length in (2, 3, 4, 2)] for _ in range(2)]
    return text.MaskedTokens(
        text.Buckets(*text.sentence_pairs(documents, length=11, seed=3), max_tokens=99), 29, mlm_probability=0.3
    )[0]


@torch.no_grad()
def test_encoder_matches_torch():
    ours = bert(epsilon=0.02)
    layer = nn.TransformerEncoderLayer(6, 3, 5, activation="gelu", batch_first=True, layer_norm_eps=0.02)
    theirs = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    for mine, other in zip(ours.blocks, theirs.layers, strict=True):
        other.self_attn.in_proj_weight.copy_(mine.attention.in_proj.weight)
        other.self_attn.in_proj_bias.copy_(mine.attention.in_proj.bias)
        other.self_attn.out_proj.load_state_dict(mine.attention.out_proj.state_dict())
        other.norm1.load_state_dict(mine.attention_norm.state_dict())
        other.linear1.load_state_dict(mine.feed_forward[0].state_dict())
        other.linear2.load_state_dict(mine.feed_forward[2].state_dict())
        other.norm2.load_state_dict(mine.feed_forward_norm.state_dict())
    x = ours.tokens.weight[IDS] + ours.positions.vectors.weight[:7] + ours.segments.weight[SEGMENTS]
    x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 0.02).sqrt()
    x = x * ours.norm.weight + ours.norm.bias
    close(ours.encode(IDS, SEGMENTS)[WORDS], theirs(x, src_key_padding_mask=~WORDS)[WORDS])


@torch.no_grad()
def test_heads_match_reference():
    model = bert(epsilon=0.02)
    states = model.encode(IDS, SEGMENTS)
    tokens, follows = model(IDS, SEGMENTS)
    for row in range(2):
        pooled = (model.pooler.weight @ states[row, 0] + model.pooler.bias).tanh()
        close(follows[row], model.next_sentence_head.weight @ pooled + model.next_sentence_head.bias)
        for position in range(7):
            word = model.mlm_dense.weight @ states[row, position] + model.mlm_dense.bias
            word = word / 2 * (1 + torch.erf(word / math.sqrt(2)))
            word = (word - word.mean()) / (word.var(correction=0) + 0.02).sqrt()
            word = word * model.mlm_norm.weight + model.mlm_norm.bias
            close(
                tokens[row, position], torch.stack([vector @ word for vector in model.tokens.weight]) + model.mlm_bias
            )


def test_selected_positions_match_full_prediction():
    model, where = bert(), torch.tensor([[0, 1, 0, 0, 1, 0, 1], [1, 0, 0, 0, 0, 0, 0]]).bool()
    (tokens, follows), (every, same) = model(IDS, SEGMENTS, where), model(IDS, SEGMENTS)
    close(tokens, every[where])
    assert tokens.shape == (4, 13)
    assert torch.equal(model(IDS).logits, model(IDS, torch.zeros_like(IDS)).logits)
    assert torch.equal(follows, same)
    nothing, follows = model(IDS, SEGMENTS, torch.zeros_like(where))
    assert nothing.shape == (0, 13)
    assert torch.equal(follows, same)


def test_initialization_matches_paper():
    torch.manual_seed(2)
    model = BERT(300, dim=60, heads=5, layers=2)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and parameter.numel() > 1000:
            assert 0.019 < parameter.std() < 0.021, name
            assert parameter.mean().abs() < 0.002, name
        elif "bias" in name:
            assert not parameter.any(), name
    chances = model.eval()(IDS).logits.softmax(-1)
    assert 0.2 / 300 < chances.min() < chances.max() < 5 / 300


@torch.no_grad()
@pytest.mark.parametrize("paired", [False, True])
def test_masked_lm_matches_reference(paired):
    model, targets = bert(), torch.zeros_like(IDS)
    targets[0, 1], targets[0, 5], targets[1, 3] = 9, 4, 12
    batch = (IDS, targets, SEGMENTS, torch.tensor([1, 0])) if paired else (IDS, targets)
    tokens, follows = model(IDS, SEGMENTS if paired else None)

    def nats(logits, target):
        powers = [math.exp(logit) for logit in logits.tolist()]
        return -math.log(powers[target] / sum(powers))

    hidden = nats(tokens[0, 1], 9) + nats(tokens[0, 5], 4) + nats(tokens[1, 3], 12)
    sentences = (nats(follows[0], 1) + nats(follows[1], 0)) / 2
    total, count = losses.masked_lm(model, batch)
    assert count == 3
    assert losses.masked_lm(model, (IDS, 0 * targets, *batch[2:])) == (0, 0)  # nothing is hidden
    assert total.item() / count == pytest.approx(hidden / 3 + paired * sentences, abs=1e-5)


def test_bert_overfits_one_batch():
    torch.manual_seed(1)
    model, batch = BERT(29, context=11, layers=2, heads=3, dim=24, dropout=0.0), pairs()
    steps = list(fit(model, Always(*batch), 120, lr=1e-2, loss=losses.masked_lm, device="cpu", progress=False))
    assert steps[0].loss > 0.9 * (math.log(29) + math.log(2))
    assert steps[-1].loss < 0.05
    ids, targets, segments, follows = batch
    assert 0 < follows.sum() < len(follows)
    guess = model.eval()(ids, segments, targets != 0)
    assert torch.equal(guess.logits.argmax(-1), targets[targets != 0])
    assert torch.equal(guess.next_sentence_logits.argmax(-1), follows)


@torch.no_grad()
def test_classifier_pools_the_first_position():
    encoder = bert()
    model = build(BERTClassifier, encoder, classes=5)
    assert model.bert is encoder
    assert parameters(model) == parameters(encoder) + 6 * 5 + 5
    logits = model(IDS)
    close(logits, model.to_logits(model.bert.pool(model.bert.encode(IDS))))
    close(model(torch.cat((IDS, torch.zeros(2, 3, dtype=torch.long)), 1)), logits, 1e-5)
    swapped = IDS[:, [1, 0, *range(2, 7)]]
    assert (model(swapped) - logits).abs().amax(1).min() > 1e-3
    with look.capture(model.train(), ["dropout", "bert.pooler"]) as seen:
        model(IDS)
    pooled, dropped = seen["bert.pooler"].tanh(), seen["dropout"]
    close(dropped[dropped != 0], pooled[dropped != 0] / (1 - model.dropout.p))


def test_pre_norm_normalizes_branches_and_output():
    model = bert(residual=pre_norm)
    with torch.no_grad(), look.capture(model, ["norm", "blocks.0.attention", "blocks.*", "last_norm"]) as seen:
        out = model.encode(IDS, SEGMENTS)
    assert torch.equal(out, seen["last_norm"])
    block = model.blocks[0]
    first = seen["norm"] + seen["blocks.0.attention"]
    assert torch.allclose(seen["blocks.0"], first + block.feed_forward(block.feed_forward_norm(first)), atol=1e-5)
    assert torch.allclose(out, model.last_norm(seen["blocks.1"]))

"""Capture of every site in every tfviz model: unchanged outputs, normalized rows, effective edits and shapes."""

from functools import partial

import pytest
import torch
from torch import nn

from tfviz import layers, look, models
from tfviz.layers import masks, positions
from tfviz.look import capture

VOCAB_SIZE, BATCH, SOURCE, TARGET, HEADS, DIM, LAYERS = 13, 2, 7, 5, 3, 6, 2
SMALL = {"layers": LAYERS, "heads": HEADS, "dim": DIM}
IDS = torch.randint(1, VOCAB_SIZE, (BATCH, SOURCE), generator=torch.Generator().manual_seed(1))
WORDS = torch.randint(1, VOCAB_SIZE, (BATCH, TARGET), generator=torch.Generator().manual_seed(2))
FEATURES = torch.randn(BATCH, SOURCE, 4, generator=torch.Generator().manual_seed(3))
EDGES = torch.rand(BATCH, SOURCE, SOURCE, generator=torch.Generator().manual_seed(4)) < 0.5

LANGUAGE = {  # models of the next token: no position sees a later one
    "GPT": partial(models.GPT, VOCAB_SIZE, context=SOURCE, **SMALL),
    "GPT, rotary": partial(models.GPT, VOCAB_SIZE, context=SOURCE, positions=positions.Rotary, **SMALL),
    "GPT, ALiBi": partial(models.GPT, VOCAB_SIZE, context=SOURCE, positions=positions.ALiBi, **SMALL),
    "GPT, relative": partial(models.GPT, VOCAB_SIZE, context=SOURCE, positions=positions.Relative, **SMALL),
    "sparse": partial(models.SparseTransformer, VOCAB_SIZE, context=SOURCE, stride=3, **SMALL),
    "sparse, heads apart": partial(
        models.SparseTransformer, VOCAB_SIZE, context=SOURCE, stride=3, make_mask=[masks.window, masks.dilated], **SMALL
    ),
    "Transformer-XL": partial(models.TransformerXL, VOCAB_SIZE, memory=4, **SMALL),
    "LSTMN": partial(models.LSTMN, VOCAB_SIZE, dim=DIM, hidden=5),
    "RNN": partial(models.RecurrentLM, VOCAB_SIZE, cell=layers.RNN, dim=DIM, hidden=5, layers=LAYERS),
    "LSTM": partial(models.RecurrentLM, VOCAB_SIZE, dim=DIM, hidden=5, layers=LAYERS),
    "convolution": partial(models.ConvLM, VOCAB_SIZE, dim=DIM, layers=LAYERS),
}
READERS = {  # models of a padded text
    "classifier": partial(models.Classifier, VOCAB_SIZE, context=SOURCE + 2, **SMALL),
    "classifier, local": partial(models.Classifier, VOCAB_SIZE, context=SOURCE + 2, mask=masks.window(2), **SMALL),
    "BERT": partial(models.BERT, VOCAB_SIZE, context=SOURCE + 2, **SMALL),
}
WRITERS = {  # models of a padded text and another one
    "Transformer": partial(models.Transformer, VOCAB_SIZE, **SMALL),
    "Transformer, post-norm, two tokenizers": partial(
        models.Transformer, VOCAB_SIZE, VOCAB_SIZE, residual=layers.post_norm, **SMALL
    ),
    "Bahdanau": partial(models.Seq2Seq, VOCAB_SIZE, attention=layers.AdditiveAttention, dim=DIM, hidden=8),
    "dot scores": partial(models.Seq2Seq, VOCAB_SIZE, attention=layers.DotAttention, dim=DIM, hidden=8),
    "RNN encoder-decoder": partial(models.Seq2Seq, VOCAB_SIZE, cell=layers.RNN, dim=DIM, hidden=8),
}
OTHERS = {
    "self-attention": (models.SelfAttention, (FEATURES,)),
    "graph": (partial(models.GraphAttention, 4, 5, **SMALL), (FEATURES, EDGES)),
    "recommender": (partial(models.Recommender, 7, 11, dim=3), (torch.tensor([0, 6]), torch.tensor([10, 2]))),
}
GIVEN = dict.fromkeys(LANGUAGE | READERS, (IDS,)) | dict.fromkeys(WRITERS, (IDS, WORDS))
MADE = LANGUAGE | READERS | WRITERS | {name: make for name, (make, _) in OTHERS.items()}
GIVEN |= {name: given for name, (_, given) in OTHERS.items()}
WITHOUT_ATTENTION = {"RNN", "LSTM", "convolution", "RNN encoder-decoder", "recommender"}
ATTENTIVE = [name for name in MADE if name not in WITHOUT_ATTENTION]
PATTERNS = {"Transformer": 3 * LAYERS, "Transformer, post-norm, two tokenizers": 3 * LAYERS}
PATTERNS |= dict.fromkeys(("LSTMN", "Bahdanau", "dot scores", "self-attention"), 1)


def build_model(name):
    torch.manual_seed(7)
    model = MADE[name]().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def capture_model(name, given=None, sites="*"):
    model = build_model(name)
    with torch.no_grad(), capture(model, sites) as seen:
        out = model(*(given or GIVEN[name]))
    return out, seen


def first(out):
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize("name", MADE)
def test_capturing_all_sites_leaves_outputs_unchanged(name):
    out, seen = capture_model(name)
    with torch.no_grad():
        torch.testing.assert_close(first(out), first(build_model(name)(*GIVEN[name])), rtol=1e-5, atol=1e-5)
    assert all(
        invocation.isfinite().all()
        for site in seen
        if not site.endswith("scores")
        for invocation in seen.over_time(site)
    )
    patterns = [site for site in seen if site.endswith("pattern")]
    assert len(patterns) == PATTERNS.get(name, LAYERS if name in ATTENTIVE else 0)


@pytest.mark.parametrize("name", ATTENTIVE)
def test_pattern_rows_sum_to_one_or_zero(name):
    _, seen = capture_model(name, sites="*pattern")
    for site in seen:
        for pattern in seen.over_time(site):
            batch, heads, queries, keys = pattern.shape
            assert batch == BATCH
            assert heads in (1, HEADS)
            assert {queries, keys} <= {1, SOURCE, TARGET} or name == "LSTMN"
            assert pattern.min() >= 0
            total = pattern.sum(-1)
            dead = total < 1e-6
            torch.testing.assert_close(total[~dead], torch.ones_like(total[~dead]), rtol=0, atol=1e-5)
            assert not dead.any() or name == "graph"


@pytest.mark.parametrize("name", ATTENTIVE)
def test_zeroing_a_pattern_changes_the_output(name):
    plain, seen = capture_model(name, sites="*pattern")
    for site in seen:
        model = build_model(name)
        with torch.no_grad(), capture(model, site, edit={site: torch.zeros_like}):
            edited = model(*GIVEN[name])
        assert (first(edited) - first(plain)).abs().max() > 1e-5, site


def test_cross_attention_has_target_queries_and_source_keys():
    _, seen = capture_model("Transformer", sites="*.pattern")
    shapes = {site: tuple(tensor.shape[1:]) for site, tensor in seen.items()}
    assert shapes["encoder.1.attention.pattern"] == (HEADS, SOURCE, SOURCE)
    assert shapes["decoder.1.attention.pattern"] == (HEADS, TARGET, TARGET)
    assert shapes["decoder.1.cross.pattern"] == (HEADS, TARGET, SOURCE)
    _, seen = capture_model("Bahdanau", sites="attention.pattern")
    assert [tuple(one.shape) for one in seen.over_time("attention.pattern")] == [(BATCH, 1, 1, SOURCE)] * TARGET
    _, seen = capture_model("LSTMN", sites="*attention.pattern")
    (site,) = seen
    assert [one.shape[-1] for one in seen.over_time(site)] == list(range(1, SOURCE))


@pytest.mark.parametrize("name", ["LSTM", "LSTMN", "dot scores"])
def test_gates_are_captured_at_every_step(name):
    _, seen = capture_model(name, sites="*_gate")
    kinds = {site.rpartition(".")[2] for site in seen}
    assert kinds == {"input_gate", "forget_gate", "output_gate"}
    for site in seen:
        invocations = seen.over_time(site)
        assert len(invocations) in (SOURCE, TARGET)
        assert all(one.min() > 0 and one.max() < 1 for one in invocations)


class Block(nn.Module):
    """A block with a stack inside, which is none of the model's."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True), 11),
            [f"layers.{layer}" for layer in range(11)],
        ),
        (
            nn.Transformer(4, 2, 1, 2, 8, batch_first=True),
            ["encoder.layers.0", "decoder.layers.0", "decoder.layers.1"],
        ),
        (nn.ModuleDict({"h": nn.Sequential(Block(), Block())}), ["h.0", "h.1"]),
        (nn.ModuleList([Block()]), ["0"]),
        (nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), []),
        (nn.Sequential(nn.Embedding(5, 4), nn.ModuleList([Block(), Block()])), ["1.0", "1.1"]),
        (models.Transformer(VOCAB_SIZE, VOCAB_SIZE, **SMALL), ["encoder.0", "encoder.1", "decoder.0", "decoder.1"]),
    ],
)
def test_blocks_are_the_members_of_the_outermost_stacks(model, expected):
    assert look.blocks(model) == expected


def test_blocks_name_the_stream_before_each_of_them_alone():
    gpt = models.GPT(VOCAB_SIZE, context=SOURCE, layers=11, heads=HEADS, dim=DIM)
    with capture(gpt, [f"{block}.input" for block in look.blocks(gpt)]) as seen, torch.no_grad():
        gpt(IDS)
    assert list(seen) == [f"blocks.{layer}.input" for layer in range(11)]

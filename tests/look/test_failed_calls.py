"""What a capture and an analysis say where the model fails on its inputs: the reason in a sentence, and its limit."""

import re

import pytest
import torch
from combinations import one_at_a_time
from small_transformers import small_model, transformers
from torch import nn

from tfviz import study
from tfviz.look import capture
from tfviz.models import GPT

SIZES = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 30}
BART = {
    "d_model": 12, "vocab_size": 30, "max_position_embeddings": 14, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8,
}  # fmt: skip


class Positions(nn.Module):
    """A model of one's own, with a table of positions and no config."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(30, 12), nn.Embedding(14, 12)
        self.attention = nn.MultiheadAttention(12, 2, batch_first=True)

    def forward(self, ids):
        x = self.words(ids) + self.positions(torch.arange(ids.shape[-1]))
        return self.attention(x, x, x)[0]


def gpt2():
    return small_model("GPT2LMHeadModel", vocab_size=30, n_positions=14)


MODELS = {
    "GPT-2": gpt2,
    "BERT": lambda: small_model("BertForMaskedLM", vocab_size=30, max_position_embeddings=14),
    "RoBERTa": lambda: transformers.RobertaModel(
        transformers.RobertaConfig(**SIZES, max_position_embeddings=14)
    ).eval(),
    "BART": lambda: transformers.BartModel(transformers.BartConfig(**BART)).eval(),
    "ours": lambda: GPT(30, layers=1, heads=2, dim=12, context=14),
    "one's own": Positions,
}
LIMITS = {
    "GPT-2": "input_ids has 20 tokens in a text; GPT2LMHeadModel has 14 positions: .*max_length=14",
    "BERT": "input_ids has 20 tokens in a text; BertForMaskedLM has 14 positions",
    "RoBERTa": "input_ids has 20 tokens in a text; RobertaModel has 12 positions",  # it counts from 2
    "BART": "input_ids has 20 tokens in a text; BartModel has 14 positions",
    "ours": "20 positions are needed, but only 14 were learned; shorten the text",
    "one's own": "position 19 is looked up in a table of 14, positions: shorten the text",
}


def call(model, *args, **kwargs):
    with torch.no_grad(), capture(model):
        model(*args, **kwargs)


@pytest.mark.parametrize(("name", "texts"), one_at_a_time(MODELS, [1, 3]))
def test_too_long_text_raises_with_the_limit(name, texts):
    model = MODELS[name]()
    call(model, torch.full((texts, 12), 5))
    with pytest.raises(ValueError, match=LIMITS[name]) as raised:
        call(model, torch.full((texts, 20), 5))
    if name == "RoBERTa":  # whose first position is 2
        with pytest.raises(ValueError, match="input_ids has 13 tokens in a text; RobertaModel has 12 positions"):
            call(model, torch.full((texts, 13), 5))
    if name != "ours":
        assert raised.value.__cause__ is not None  # PyTorch's own error is kept


def test_generation_beyond_the_limit_raises():
    model, ids = gpt2(), torch.full((1, 12), 5)
    model.generation_config.update(eos_token_id=None, pad_token_id=0)
    with pytest.raises(ValueError, match=r"shorten the text"), torch.no_grad(), capture(model):
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=5, do_sample=False)


@pytest.mark.parametrize("name", ["GPT-2", "BERT"])
def test_empty_text_raises(name):
    with pytest.raises(ValueError, match=r"^input_ids is empty, \[2, 0\]; give a text of one token or more$"):
        call(MODELS[name](), input_ids=torch.zeros(2, 0, dtype=torch.long))


@pytest.mark.parametrize(
    ("name", "given"),
    one_at_a_time(MODELS, ["the red house", ["the red house"], [1, 2, 3], [[1, 2], [3]], {"input_ids": [1, 2]}]),
)
def test_text_that_is_no_tensor_raises(name, given):
    kind = "is a (list|dict)|is 'the red house'"
    with pytest.raises(
        TypeError, match=rf'^(input_ids|ids) ({kind}).*tokenizer\(texts, return_tensors="pt", padding=True\)'
    ):
        call(MODELS[name](), given)


@pytest.mark.parametrize(("wrong", "which"), [(99, "input_ids holds 99"), (-4, "input_ids holds -4")])
def test_id_outside_the_vocabulary_raises(wrong, which):
    with pytest.raises(ValueError, match=f"{which}; GPT2LMHeadModel has 30 tokens of that kind, counted from 0"):
        call(gpt2(), torch.full((1, 5), wrong))


def test_other_errors_are_unchanged():
    """An error in the block but not in the model, and one of the model that its inputs do not explain."""

    class Failing(Positions):
        def forward(self, ids):
            raise RuntimeError("of its own")

    with pytest.raises(RuntimeError, match=r"^of its own$"):
        call(Failing(), torch.ones(1, 12, dtype=torch.long))

    def fail_after(model):
        with torch.no_grad(), capture(model):
            model(torch.ones(1, 12, dtype=torch.long))
            raise IndexError("mine")

    with pytest.raises(IndexError, match=r"^mine$"):
        fail_after(gpt2())
    with pytest.raises(KeyboardInterrupt), capture(gpt2()):
        raise KeyboardInterrupt


METRIC = study.logit(3)
ANALYSES = {
    "patch": lambda model, ids: study.patch(model, ids, ids + 1, metric=METRIC),
    "attribute": lambda model, ids: study.logit_attribution(model, ids, target=METRIC),
    "lens": lambda model, ids: study.logit_lens(model, ids),
    "aggregate": lambda model, ids: study.aggregate(model, [ids], study.HeadScores(), progress=False),
}


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_raises_the_same_errors(name):
    model = gpt2()
    with pytest.raises(ValueError, match="input_ids has 20 tokens in a text; GPT2LMHeadModel has 14 positions"):
        ANALYSES[name](model, torch.ones(2, 20, dtype=torch.long))
    with pytest.raises(ValueError, match=r"is empty|no token"):
        ANALYSES[name](model, torch.ones(2, 0, dtype=torch.long))


def lists(texts):
    return {"input_ids": [[1] * len(text) for text in texts]}


def ragged(texts):
    raise ValueError("Unable to create tensor, you should probably activate truncation and/or padding")


def tensors(texts):
    return [torch.ones(1, len(text), dtype=torch.long) for text in texts]


def broken(texts):
    raise ValueError("no such file")


@pytest.mark.parametrize(
    ("tokenize", "says"),
    [
        (lists, "tokenize returns lists; "), (lambda texts: lists(texts)["input_ids"], "tokenize returns lists; "),
        (ragged, "tokenize cannot put texts of several lengths into a tensor; "),
        (tensors, r"tokenize returns a list of tensors, \[1, 5\], \[1, 3\]; "),
    ],
)  # fmt: skip
def test_tokenize_without_padded_tensors_raises(tokenize, says):
    advice = re.escape(
        'give tensors, padded to one length: tokenize=lambda texts: tokenizer(texts, return_tensors="pt", padding=True)'
    )
    for analysis in (study.aggregate, study.mean_activations):
        rest = {"measure": study.HeadScores()} if analysis is study.aggregate else {"sites": "*.output"}
        with pytest.raises(ValueError, match=f"{says}{advice}"):
            analysis(gpt2(), ["a red", "the"], **rest, tokenize=tokenize, progress=False)
    with pytest.raises(ValueError, match=r"^no such file$"):
        study.aggregate(gpt2(), ["a red", "the"], study.HeadScores(), tokenize=broken, progress=False)
    with pytest.raises(
        TypeError, match=r'give tokenize, .* such as lambda texts: tokenizer\(texts, return_tensors="pt"'
    ):
        study.aggregate(gpt2(), ["a red", "the"], study.HeadScores(), progress=False)

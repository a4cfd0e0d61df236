"""Studios of models whose vocabulary size differs from the tokenizer's, and models that studios reject."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from calls import Calls
from tokenizers import AddedToken, Tokenizer
from tokenizers import models as token_models
from torch import nn
from typeguard import CollectionCheckStrategy, check_type
from unportable_tokenizers import unigram

from tfviz import models, text, view
from tfviz.text import SubwordTokenizer
from tfviz.view.documents.studios import StudioDocument

LETTERS = text.CharacterTokenizer("abcdefghijklmnopqrstuvwxyz .")  # 28
WORDS = text.train_whole_words(["the plot was not very good but the music was never dull at all of it"])
ROOM = 1.1
EACH = CollectionCheckStrategy.ALL_ITEMS
SIZES = {"context": 12, "layers": 1, "heads": 2, "dim": 8}


def built(kind, *sizes, **more):
    torch.manual_seed(1)
    return kind(*sizes, **SIZES, **more).eval()


gpt, bert = partial(built, models.GPT), partial(built, models.BERT)


def translator(size):
    return built(models.Transformer, size, size)


def classifier(size):
    return built(models.Classifier, size, 2)


STUDIOS = {
    "write": (lambda size, **how: view.write(gpt(size), LETTERS, "abc", **how), len(LETTERS)),
    "fill": (lambda size, **how: view.fill(bert(size), WORDS, "the plot was good", **how), len(WORDS)),
    "beside": (
        lambda size, **how: view.fill(
            bert(len(WORDS)), WORDS, "the plot was good", compare_with=(gpt(size), WORDS), **how
        ), len(WORDS),
    ),
    "translate": (
        lambda size, **how: view.translate(translator(size), WORDS, "the plot", max_new_tokens=4, **how), len(WORDS),
    ),
    "classify": (lambda size, **how: view.classify(classifier(size), WORDS, ["a", "b"], "the plot", **how), len(WORDS)),
}  # fmt: skip
each = pytest.mark.parametrize("studio", STUDIOS)
where = pytest.mark.parametrize("kernel", [False, True])


@each
@where
def test_studio_accepts_slightly_larger_model_vocabulary(studio, kernel):
    make, tokens = STUDIOS[studio]
    check_type(make(tokens + 2, kernel=kernel).document, StudioDocument, collection_check_strategy=EACH)


@each
@where
def test_studio_rejects_smaller_model_vocabulary(studio, kernel):
    make, tokens = STUDIOS[studio]
    with pytest.raises(ValueError, match=r"(reads fewer than|has logits for).*model's own"):
        make(tokens - 1, kernel=kernel)


@each
@where
def test_studio_rejects_much_larger_model_vocabulary(studio, kernel):
    make, tokens = STUDIOS[studio]
    if studio == "classify":
        pytest.skip("a classifier does not say how many tokens it reads")
    with pytest.raises(ValueError, match=f"has logits for {int(ROOM * tokens) + 1} tokens.*model's own"):
        make(int(ROOM * tokens) + 1, kernel=kernel)


class PrefersUnknownTokens(nn.Module):
    """Prefers what the tokenizer does not have."""

    def __init__(self, model, tokens):
        super().__init__()
        self.model, self.tokens = model, tokens

    def forward(self, ids):
        logits = self.model(ids)
        return torch.cat([logits[..., : self.tokens], logits[..., self.tokens :] + 9.0], -1)


def test_write_summary_normalizes_over_vocabulary_tokens():
    model = PrefersUnknownTokens(gpt(30), 28)
    made = view.write(model, LETTERS, "abc", dtype="float32")
    with torch.no_grad():
        shares = model(LETTERS.encode("abc")[None])[0, -1, :28].softmax(-1)
    top = LETTERS.tokens(shares.argmax()[None])[0]
    assert f"probability: {top!r} {float(shares.max()):.3f}".rstrip("0") in made.summary


def test_subwords_with_gaps_in_ids_count_up_to_largest_id():
    tokenizer = Tokenizer(token_models.WordLevel({"a": 0, "b": 1, "[UNK]": 2, "z": 6}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = unigram().pre_tokenizer.__class__()
    vocab = SubwordTokenizer(tokenizer)
    assert len(vocab) == 7
    assert vocab.tokens([0, 4, 6]) == ["a", "⟨4⟩", "z"]
    told = vocab.to_decoding_spec()
    assert len(told["texts"]) == 7
    assert told["names"][4] == "⟨4⟩"
    assert view.write(gpt(7), vocab, "▁a", kernel=True).width == 7
    with pytest.raises(ValueError, match="model's own"):
        view.write(gpt(6), vocab, "▁a", kernel=True)
    tokenizer.add_tokens([AddedToken("more"), AddedToken("most"), AddedToken("end"), AddedToken("last")])
    assert len(vocab) == 1 + max(tokenizer.get_vocab().values()) > 7


# Models that are none for a studio


def returning(name, model):
    """A model that returns its logits by this name, as those of transformers do."""
    return Calls(lambda ids: SimpleNamespace(**{name: getattr(out := model(ids), "logits", out)}), inner=model)


def headless(model):
    return returning("last_hidden_state", model)


@where
@pytest.mark.parametrize(
    ("model", "prompt", "says"),
    {
        "both ways": (lambda: bert(28), "abc", r"BERT does not write from left to right.*view\.fill"),
        "both ways, of others": (
            lambda: returning("logits", bert(28)), "abc", r"Calls does not write from left.*view\.fill",
        ),
        "no head": (
            lambda: headless(gpt(28)), "abc", "the model returns a SimpleNamespace without logits; give the model",
        ),
        "no prompt": (lambda: gpt(28), "", "the prompt has 0 tokens.*a prompt of at least one token"),
        "a long prompt": (lambda: gpt(28), "a" * 13, "the prompt has 13 tokens; the model takes 1 to 12: give a"),
    }.values(),
)  # fmt: skip
def test_write_rejects_unsuitable_models_and_prompts(model, prompt, says, kernel):
    with pytest.raises(ValueError, match=says):
        view.write(model(), LETTERS, prompt, kernel=kernel)


def test_fill_rejects_model_without_head():
    with pytest.raises(ValueError, match="the model returns a SimpleNamespace without logits"):
        view.fill(headless(bert(len(WORDS))), WORDS, "the plot was good")


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_write_rejects_torch_quantized_model():
    model = gpt(28)
    torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8, inplace=True)
    with pytest.raises(ValueError, match=r'was quantized by PyTorch.*dtype="int8".*kernel=True'):
        view.write(model, LETTERS, "abc")


def test_translate_rejects_unsuitable_models_and_vocabularies():
    with pytest.raises(ValueError, match=r"GPT has no encode and decode.*view\.groups or view\.live"):
        view.translate(gpt(28), WORDS, "the plot")
    plain = SubwordTokenizer(unigram())
    with pytest.raises(ValueError, match=r"the target's tokenizer has no token \[BOS\]"):
        view.translate(translator(len(WORDS)), plain, "the plot")
    with pytest.raises(ValueError, match=r"the source's tokenizer has no token </s>"):
        view.translate(translator(len(WORDS)), WORDS, "the plot", eos="</s>")


@pytest.mark.parametrize("given", [(0, 10**30), 10**23 - 1, (-(10**20), 0, 7)])
@where
def test_interact_rejects_integers_beyond_page_range(given, kernel):
    with pytest.raises(ValueError, match="integers of a page end at 9,007,199,254,740,991: give floats"):
        view.interact(lambda x: torch.ones(2) * x, x=given, kernel=kernel)

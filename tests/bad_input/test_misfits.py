"""What does not fit together: ids, labels, masks, caches, texts, numbers to draw. Told, and never silently taken."""

import pytest
import torch

from tfviz import generate, learn, look, models, text, view
from tfviz.layers import MultiHead, attend, masks
from tfviz.learn import evaluate, losses, schedule

IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])


def gpt(**parts):
    torch.manual_seed(1)
    return models.GPT(11, **{"context": 7, "layers": 2, "heads": 3, "dim": 6, **parts}).eval()


class Says(torch.nn.Module):
    """A model that says the same to everything."""

    def __init__(self, said):
        super().__init__()
        self.said = said

    def forward(self, *_):
        return self.said


def even(*shape):
    return Says(torch.zeros(*shape))


def test_only_the_captured_model_is_seen_and_edited():
    one, other = gpt(), gpt()
    with pytest.raises(LookupError, match="was not called"), look.capture(one):
        other(IDS)
    whole = models.Transformer(11, heads=3, dim=6, layers=2).eval()
    with look.capture(whole.decoder[1]) as seen:
        whole(IDS, IDS)
    assert list(seen) == ["attention.pattern", "cross.pattern"]
    plain = other(IDS)
    with look.capture(one, "*.pattern", edit={"*.pattern": torch.zeros_like}):
        one(IDS)
        assert torch.equal(other(IDS), plain)


@pytest.mark.parametrize(
    ("loss", "logits", "batch"),
    [
        (losses.next_token, even(2, 3, 11), (IDS, torch.tensor([[1, 2, -100], [3, 4, 5]]))),
        (losses.next_token, even(2, 3, 11), (IDS, IDS.T)),
        (losses.masked_lm, Says(models.bert.Guess(torch.zeros(6, 11), torch.zeros(2, 2))), (IDS, IDS * 0 - 100)),
        (losses.classification, even(4, 3), (IDS, torch.tensor([0.0, 1, 2, 0]))),
        (losses.classification, even(4, 3), (IDS, torch.tensor([[0], [1], [2], [0]]))),
        (losses.classification, even(4, 3), (IDS, torch.tensor([0, 1, 3, 0]))),
        (losses.squared_error, even(4), (IDS, torch.zeros(4, 1))),
    ],
)
def test_what_is_to_be_guessed_must_fit_what_is_guessed(loss, logits, batch):
    with pytest.raises(ValueError, match=r"target|label|values"):
        loss(logits, batch)


def test_a_right_loss_is_what_it_was():
    assert losses.next_token(even(2, 3, 11), (IDS, IDS))[0].item() == pytest.approx(6 * 2.3979, abs=1e-3)
    guess = models.bert.Guess(torch.zeros(6, 11), torch.zeros(2, 2))
    total, count = losses.masked_lm(Says(guess), (IDS, IDS, IDS * 0, torch.tensor([0, 1])))
    assert (total.item() / count, count) == (pytest.approx(2.3979 + 0.6931, abs=1e-3), 6)


@pytest.mark.parametrize("labels", [[[0], [1]], [0, 3], [0.0, 1.0], [0, -100]])
def test_labels_that_accuracy_cannot_count(labels):
    model = torch.nn.Linear(5, 3)
    with pytest.raises(ValueError, match="label"):
        evaluate.accuracy(model, [(torch.zeros(2, 5), torch.tensor(labels))])


@pytest.mark.parametrize("mask", [torch.ones(3, 3).tril(), torch.ones(2, 3, 3).bool(), masks.window(2)])
def test_a_mask_that_would_be_misread(mask):
    query = torch.zeros(2, 2, 3, 4)
    with pytest.raises((TypeError, ValueError), match="mask is"):
        attend(query, query, query, mask)


def test_a_mask_of_each_text_is_that_of_each_text():
    kinds = torch.tensor([[0, 0, 0], [0, 1, 1]])
    model = gpt(mask=masks.causal & masks.documents(kinds))
    both = model(IDS)
    for row in range(2):
        alone = gpt(mask=masks.causal & masks.documents(kinds[row : row + 1]))
        assert torch.allclose(both[row], alone(IDS[row : row + 1])[0], atol=1e-6)


@pytest.mark.parametrize(("dim", "heads"), [(6, 0), (6, -2), (0, 1)])
def test_attention_without_heads_or_width(dim, heads):
    with pytest.raises(ValueError, match=r"(dim|heads) is -?\d; it must be at least 1"):
        MultiHead(dim, heads)


def test_a_cache_of_another_model_or_of_other_texts():
    model = gpt()
    with pytest.raises(ValueError, match="this model needs 2"):
        model(IDS, gpt(layers=1).new_cache())
    longer, shorter = (models.TransformerXL(11, layers=many, heads=3, dim=6) for many in (2, 1))
    shorter(IDS, memory := shorter.new_cache())
    with pytest.raises(ValueError, match="cache has 1 parts, this model needs 2"):
        longer(IDS, memory)
    cache = model.new_cache()
    model(IDS, cache)
    with pytest.raises(ValueError, match="begin a new one"):
        model(IDS[:1, :1], cache)


@pytest.mark.parametrize("wrong", [11, -1])
@pytest.mark.parametrize(
    "model",
    [
        gpt(),
        models.BERT(11, dim=6, heads=3),
        models.Classifier(11, dim=6, heads=3),
        models.TransformerXL(11, dim=6, heads=3),
        models.RecurrentLM(11, dim=6, hidden=4),
        models.Convolution(11, dim=6),
        models.LSTMN(11, dim=6, hidden=4),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_id_that_is_no_token_is_named(model, wrong):
    with pytest.raises(IndexError, match=f"id {wrong} is none of the model's 11 tokens"):
        model(torch.tensor([[1, wrong, 2]]))


@pytest.mark.parametrize("make", [models.Transformer, models.Seq2Seq])
def test_an_id_that_neither_language_has(make):
    model = make(11, 13, dim=8)
    model(torch.tensor([[10]]), torch.tensor([[12]]))
    with pytest.raises(IndexError, match="id 12 is none of the model's 11"):
        model(torch.tensor([[12]]), torch.tensor([[1]]))


@pytest.mark.parametrize("vocab", [text.Characters("abc"), text.whole_words(["the cat sat"])], ids=["letters", "words"])
@pytest.mark.parametrize("wrong", [99, -1])
def test_an_id_that_stands_for_nothing(vocab, wrong):
    for read in (vocab.decode, vocab.words, lambda ids: list(vocab.pieces(ids))):
        with pytest.raises(ValueError, match=f"id {wrong} is none of the {len(vocab)} tokens"):
            read(torch.tensor([1, wrong]))


def test_one_text_is_not_many():
    vocab = text.whole_words(["the cat sat"])
    for call in (
        lambda: vocab.encode_all("cat"),
        lambda: evaluate.bleu("a", "b"),
        lambda: evaluate.exact_match("a", "b"),
    ):
        with pytest.raises(ValueError, match="one string where many texts are meant"):
            call()


def test_a_search_with_logits_that_are_no_numbers():
    model = models.Transformer(11, heads=2, dim=8, layers=1)
    torch.nn.init.constant_(model.decoder_norm.weight, torch.nan)
    with pytest.raises(FloatingPointError, match="not finite"):
        generate.beam.search(model, IDS, bos=1, eos=2)


@pytest.mark.parametrize("wrong", [{"max_grad_norm": 0}, {"max_grad_norm": -1}, {"device": "cuda"}])
def test_fit_refuses_what_would_train_nothing_or_elsewhere(wrong):
    with pytest.raises(ValueError, match=rf"^{next(iter(wrong))} is"):
        learn.fit(gpt(), text.Windows(torch.arange(50) % 11, 7, 2), 3, **wrong)
    with pytest.raises(ValueError, match="warmup is 0"):
        schedule.inverse_square_root(0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: view.curves([]),
        lambda: view.lines({}, x="x", y="y", title="t"),
        lambda: view.lines({"a": ([], [])}, x="x", y="y", title="t"),
        lambda: view.bars([], {}, "t"),
        lambda: view.rows(["a"], {}, "t"),
        lambda: view.bars(["a", "b", "c"], {"x": [0.5]}, "t"),
        lambda: view.rows(["a"], {"x": [float("nan")]}, "t"),
        lambda: view.shares({"a": torch.rand(2, 3), "b": torch.rand(3, 2)}),
        lambda: view.shares({"a": torch.full((2, 3), torch.nan)}),
        lambda: view.shares({"a": torch.full((2, 3), 9.0)}),
        lambda: view.shares({}),
    ],
)
def test_numbers_that_cannot_be_drawn(draw):
    with pytest.raises((ValueError, TypeError), match=r"draw|must be|alike|shares lie|columns|holds nan"):
        draw()


def test_curves_may_be_handed_the_training_itself():
    batches = text.Windows(torch.arange(50) % 11, 7, 2)
    assert "after 3 steps" in repr(view.curves(learn.fit(gpt(), batches, 3, device="cpu", progress=False)))

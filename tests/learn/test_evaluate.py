"""Evaluation metrics compared with hand-computed values and sacreBLEU, and translation of whole texts."""

from functools import partial
from typing import NamedTuple

import pytest
import sacrebleu
import torch

from tfviz import generate, text
from tfviz.generate import beam
from tfviz.layers import AdditiveAttention, DotAttention
from tfviz.learn import evaluate
from tfviz.models import Classifier, Seq2Seq, Transformer

SAID = ["Ein Mann läuft .", "zwei hunde spielen im Schnee", "eine Frau"]
MEANT = ["ein Mann läuft.", "Zwei Hunde spielen im Gras.", "eine Frau liest ein Buch"]


def test_bleu_matches_sacrebleu_on_lower_case():
    lower = [[line.lower() for line in lines] for lines in (SAID, MEANT)]
    expected = sacrebleu.corpus_bleu(lower[0], [lower[1]], tokenize="13a").score
    assert evaluate.bleu(SAID, MEANT) == pytest.approx(expected)
    assert evaluate.bleu([line.upper() for line in SAID], MEANT) == pytest.approx(expected)


def test_alignment_error_rate_matches_hand_computed_values():
    sure, possible = [(0, 0), (1, 2)], [(2, 3), (2, 4)]
    rate = evaluate.alignment_error_rate
    assert rate(sure, sure) == 0
    assert rate([*sure, (2, 3)], sure, possible) == 0
    assert rate([(0, 5)], sure) == 1
    assert rate([(0, 0), (2, 4), (2, 7)], sure, possible) == pytest.approx(1 - (1 + 2) / (3 + 2))
    with pytest.raises(ValueError, match="no link"):
        rate([], [])


def test_links_pick_the_strongest_key_of_aligned_words():
    pattern = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    assert evaluate.argmax_alignment(pattern, {(0, 1), (2, 0), (2, 1)}) == {(0, 1), (2, 2)}


@pytest.mark.parametrize("measure", [evaluate.bleu, evaluate.exact_match])
def test_text_metrics_reject_unequal_or_empty_lists(measure):
    with pytest.raises(ValueError, match=r"2 texts.* 3 references"):
        measure(SAID[:2], MEANT)
    with pytest.raises(ValueError, match=r"0 texts.* 0 references"):
        measure([], [])


def test_exact_match_and_accuracy_match_hand_computed_values():
    assert evaluate.exact_match(["a", "b", "c"], ["a", "B", "c"]) == pytest.approx(2 / 3)
    model, ids = Classifier(11, 3, dim=6, heads=3), torch.randint(1, 11, (5, 7))
    model.train()
    with evaluate.eval_mode(model):
        labels = model(ids).argmax(-1)
    wrong = labels.clone()
    wrong[:2] = (wrong[:2] + 1) % 3
    assert evaluate.accuracy(model, [(ids[:4], wrong[:4]), (ids[4:], wrong[4:])]) == pytest.approx(3 / 5)
    assert model.training
    with pytest.raises(ValueError, match="no batch"):
        evaluate.accuracy(model, [])


class Source(NamedTuple):
    ids: torch.Tensor


class Copy(torch.nn.Module):
    """An encoder-decoder whose translation of a text is the text."""

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer, self.weight = tokenizer, torch.nn.Parameter(torch.zeros(()))

    def encode(self, source):
        return Source(source)

    def decode(self, target, memory):
        end = torch.full_like(memory.ids[:, :1], self.tokenizer["[EOS]"])
        ids = torch.cat((memory.ids, end.expand(-1, 20)), 1)[:, : target.shape[1]]
        return 9 * torch.nn.functional.one_hot(ids, len(self.tokenizer)).float()


@pytest.mark.parametrize("tokens", [1, 3, 5, 9, 2000])
def test_translate_keeps_the_order_of_texts(tokens):
    texts = ["one two three", "two", "", "three one", "one", "two one", "three three two one"]
    tokenizer = text.train_whole_words(texts)
    assert (
        generate.translate(Copy(tokenizer), texts, tokenizer, num_beams=2, max_new_tokens=6, max_tokens=tokens) == texts
    )


SYSTEMS = {
    "transformer": partial(Transformer, dim=6, heads=3, layers=1),
    "one vector": partial(Seq2Seq, dim=6, hidden=8),
    "additive": partial(Seq2Seq, dim=6, hidden=8, attention=AdditiveAttention),
    "dot": partial(Seq2Seq, dim=6, hidden=8, attention=DotAttention),
}


@pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)
@pytest.mark.parametrize("num_beams", [1, 3])
def test_translate_supports_empty_texts(make, num_beams):
    """It is the source of nothing but an end; beside other lines, too, and whatever they are."""
    texts = ["one two three", "", "two", "", " "]
    tokenizer = text.train_whole_words(texts)
    torch.manual_seed(0)
    model = make(len(tokenizer)).eval()
    found = generate.translate(model, texts, tokenizer, num_beams=num_beams, max_new_tokens=5)
    alone = beam.search(
        model,
        torch.tensor([[tokenizer["[EOS]"]]]),
        bos=tokenizer["[BOS]"],
        eos=tokenizer["[EOS]"],
        num_beams=num_beams,
        max_new_tokens=5,
    )
    assert found[1] == found[3] == found[4] == tokenizer.decode(alone.ids(0))
    assert generate.translate(model, ["", ""], tokenizer, num_beams=num_beams, max_new_tokens=5) == [found[1]] * 2
    assert generate.translate(model, [], tokenizer) == []
    with pytest.raises(ValueError, match="one of the texts is empty"):
        generate.translate(model, ["", texts[0]], tokenizer, eos=None)


def test_translate_appends_the_end_token():
    texts = ["one two three", "two"]
    tokenizer = text.train_whole_words(texts)
    torch.manual_seed(0)
    model = Transformer(len(tokenizer), dim=6, heads=3, layers=1).eval()
    row = tokenizer.encode(texts[0])
    how = {"bos": tokenizer["[BOS]"], "eos": tokenizer["[EOS]"], "num_beams": 2, "max_new_tokens": 5}
    ends = {None: [], "[EOS]": [tokenizer["[EOS]"]], "[CLS]": [tokenizer["[CLS]"]]}
    for eos, end in ends.items():
        ids = torch.cat([row, torch.tensor(end, dtype=torch.long)])
        expected = tokenizer.decode(beam.search(model, ids[None], **how).ids(0))
        assert generate.translate(model, texts[:1], tokenizer, num_beams=2, max_new_tokens=5, eos=eos) == [expected]


@pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)
def test_padding_only_source_gives_finite_logits(make):
    """No error and no NaN: as no word has a part in what is written, it does not matter how much padding there is."""
    torch.manual_seed(0)
    model, target = make(11).eval(), torch.tensor([[1, 4, 6], [1, 5, 2]])
    with torch.no_grad():
        logits = model(torch.zeros(2, 4, dtype=torch.long), target)
        assert logits.isfinite().all()
        assert torch.allclose(model(torch.zeros(2, 1, dtype=torch.long), target), logits, atol=1e-6)
        beside = model(torch.tensor([[0, 0, 0, 0], [7, 3, 5, 2]]), target)
        torch.testing.assert_close(beside[0], logits[0])
    if isinstance(model, Seq2Seq):
        with pytest.raises(ValueError, match="the text is empty; a recurrent network needs at least one position"):
            model(torch.zeros(2, 0, dtype=torch.long), target)
    else:
        torch.testing.assert_close(model(torch.zeros(2, 0, dtype=torch.long), target), logits)

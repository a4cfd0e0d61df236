"""`view.classify` and `view.fill` without a browser: summaries and initial documents."""

import importlib
from functools import cache

import pytest
import torch
from small_models import randomize_weights

from tfviz import view
from tfviz.models import BERT, GPT, BERTClassifier, Classifier
from tfviz.text import train_whole_words, train_wordpiece

classify_module = importlib.import_module("tfviz.view.studio.classify")
TEXT = "the plot was not good"
TOKENIZER = train_whole_words([TEXT])
CLS, SEP, MASK = (TOKENIZER[token] for token in ("[CLS]", "[SEP]", "[MASK]"))


def seeded(make):
    torch.manual_seed(2)
    return randomize_weights(make(), seed=None, std=0.5)


@cache
def classifier():
    return seeded(lambda: Classifier(len(TOKENIZER), 3, context=9, layers=1, heads=2, dim=8))


@cache
def bert():
    return seeded(lambda: BERT(len(TOKENIZER), context=11, layers=1, heads=2, dim=8))


def test_classify_document_contains_prediction_and_special_tokens():
    ids = torch.tensor([[CLS, *TOKENIZER.encode(TEXT), SEP]])
    shares = classifier()(ids)[0].softmax(-1)
    made, again = (
        view.classify(classifier(), TOKENIZER, ["no", "so", "yes"], TEXT, bos=CLS, eos=SEP, dtype="float32")
        for _ in range(2)
    )
    best = int(shares.argmax())
    assert made.summary == (
        f"Which words make it say so? {TEXT!r}\nhighest probability: {['no', 'so', 'yes'][best]!r} {shares[best]:.3g}"
    )
    described = made.document
    assert described["special_tokens"] == {"prefix_id": CLS, "suffix_id": SEP}
    assert (described["context"], described["labels"]) == (9, ["no", "so", "yes"])
    state = {key: described["state"][key] for key in ("text", "deleted", "replaced", "label", "ablated_heads")}
    assert state == {"text": TEXT, "deleted": [], "replaced": [], "label": -3, "ablated_heads": []}
    assert made.document["programs"]["read"]["weights"][0]["stored"] == "float32"
    assert made.html() == again.html()


def test_classify_static_picture_is_shaded_by_effects_of_words():
    model, ids = classifier(), TOKENIZER.encode(TEXT)[None]
    made = view.classify(model, TOKENIZER, ["no", "so", "yes"], TEXT, head=(0, 1))
    assert (made.document["state"]["layer"], made.document["state"]["head"]) == (0, 1)
    label = int(model(ids)[0].argmax())

    def odds(text):
        share = model(text)[0].softmax(-1)[label]
        return (share / (1 - share)).log().item()

    expected = [odds(ids) - odds(ids[:, [n for n in range(5) if n != position]]) for position in range(5)]
    assert classify_module._effects(
        model, ids, {"prefix_id": None, "suffix_id": None}, label
    ).tolist() == pytest.approx(expected, abs=1e-4)
    written = " ".join(text.get_text() for text in made.figure().axes[0].texts)
    assert f"shaded: the effect of each token on “{['no', 'so', 'yes'][label]}”" in written
    most = max(range(5), key=lambda position: abs(expected[position]))
    finding = made.figure().texts[-1].get_text()
    sign = "+" if expected[most] > 0 else "−"
    assert finding.startswith(f"“{TEXT.split()[most]}” changes “{['no', 'so', 'yes'][label]}” most: by {sign}")
    assert "square-root scale" in written
    framed = classify_module._effects(
        model, torch.tensor([[CLS, 6, 7, SEP]]), {"prefix_id": CLS, "suffix_id": SEP}, label
    )
    assert framed[[0, 3]].tolist() == [0, 0]
    assert (framed[1:3] != 0).all()
    with pytest.raises(IndexError, match="head is 2"):
        view.classify(model, TOKENIZER, ["no", "so", "yes"], TEXT, head=(0, 2))


def test_classify_accepts_bert_classifier():
    model = seeded(lambda: BERTClassifier(BERT(len(TOKENIZER), context=11, layers=1, heads=2, dim=8)))
    made = view.classify(model, TOKENIZER, ["no", "yes"], TEXT, bos=CLS, dtype="float32")
    share = model(torch.tensor([[CLS, *TOKENIZER.encode(TEXT)]]))[0].softmax(-1)
    assert made.summary.endswith(f"{['no', 'yes'][int(share.argmax())]!r} {share.max():.3g}")


@pytest.mark.parametrize(("hidden", "positions"), [(None, [2]), (0, [0]), ([4, 1], [1, 4])])
def test_fill_masks_words_by_number_and_matches_model(hidden, positions):
    ids = torch.tensor([[CLS, *TOKENIZER.encode(TEXT), SEP]])
    ids[0, [position + 1 for position in positions]] = MASK
    share = bert()(ids).logits[0, positions[0] + 1].softmax(-1)
    made = view.fill(bert(), TOKENIZER, TEXT, masked=hidden, dtype="float32")
    assert made.document["state"]["masked"] == positions
    word = TEXT.split()[positions[0]]
    guess = TOKENIZER.tokens(share.argmax()[None])[0]
    assert (
        made.summary
        == f"Which word is hidden? in place of {word!r} in {TEXT!r}\nhighest both sides: {guess!r} {share.max():.3g}"
    )
    assert "compare_with" not in made.document


def test_fill_masks_all_pieces_of_word_without_special_tokens():
    pieces = train_wordpiece(["sing sings singing the ring"], 60)
    count = len(pieces.encode("ringing"))
    assert count == 2
    model = seeded(lambda: BERT(len(pieces), context=11, layers=1, heads=2, dim=8))
    made = view.fill(model, pieces, "the ringing ring", masked=1, add_special_tokens=False)
    start = len(pieces.encode("the"))
    assert made.document["state"]["masked"] == list(range(start, start + count))
    assert made.document["special_tokens"] == {"prefix_id": None, "suffix_id": None}


def test_fill_compare_with_predicts_from_left_context():
    gpt = seeded(lambda: GPT(len(TOKENIZER), context=7, layers=1, heads=2, dim=8))
    made = view.fill(bert(), TOKENIZER, TEXT, masked=3, compare_with=(gpt, TOKENIZER, CLS), dtype="float32")
    share = gpt(torch.tensor([[CLS, *TOKENIZER.encode("the plot was")]]))[0, -1].softmax(-1)
    guess = TOKENIZER.tokens(share.argmax()[None])[0]
    assert made.summary.endswith(f", left side: {guess!r} {share.max():.3g}")
    assert made.document["compare_with"] == {"tokenizer": 0, "prefix_id": CLS, "context": 7}
    assert len(made.document["tokenizers"]) == 1
    other = train_whole_words([f"another {TEXT}"])
    gpt = seeded(lambda: GPT(len(other), context=7, layers=1, heads=2, dim=8))
    made = view.fill(bert(), TOKENIZER, TEXT, masked=0, compare_with=[gpt, other])
    assert made.document["compare_with"] == {"tokenizer": 1, "prefix_id": None, "context": 7}
    assert made.document["tokenizers"] == [TOKENIZER.to_spec(), other.to_spec()]


def test_the_still_pictures_have_the_chosen_head_and_both_sides():
    gpt = seeded(lambda: GPT(len(TOKENIZER), context=7, layers=1, heads=2, dim=8))
    classified = view.classify(classifier(), TOKENIZER, ["no", "so", "yes"], TEXT, bos=CLS, eos=SEP)
    filled = view.fill(bert(), TOKENIZER, TEXT, masked=3, compare_with=(gpt, TOKENIZER, CLS))
    for made, looks in ((classified, ""), (filled, " looks at, from “[MASK]”")):
        figure = made.figure()
        texts = [text.get_text() for axes in figure.axes for text in axes.texts]
        state = made.document["state"]
        by_head = f"shaded: what layer {state['layer']}, head {state['head']}{looks}"
        assert by_head in texts if looks else any(text.startswith("shaded: the effect of each token") for text in texts)
        opened, small = (
            [axes for axes in figure.axes if axes.images and bool(axes.get_yticks().size) == is_opened]
            for is_opened in (True, False)
        )
        assert len(opened) == 1
        assert f"Layer {state['layer']}, head {state['head']}" in texts
        outlined = [axes.spines["left"].get_linewidth() > 2 for axes in small]
        heads = sum(outlined)
        assert heads == 1
        assert outlined.index(True) == len(outlined) // (state["layer"] + 1) * state["layer"] + state["head"]
    assert {"both sides", "left side"} <= set(texts)


@pytest.mark.parametrize("model", ["GPT", "BERT"])
def test_classify_names_what_a_language_model_lacks(model):
    made = {"GPT": lambda: GPT(len(TOKENIZER), context=9, layers=1, heads=2, dim=8), "BERT": bert}[model]()
    says = r"returns numbers for each part of a text, \[1, 5, \d+\], as a language model does; give a model .* \[1, 2\]"
    with pytest.raises(ValueError, match=f"{says}.*models.Classifier.*view.write and view.fill show language models"):
        view.classify(made, TOKENIZER, ["no", "yes"], TEXT)

"""`view.patch` with a kernel, without a browser: what it answers is what `study.patch` measures."""

import numpy as np
import pytest
import torch
from test_patch import MODELS
from unportable_tokenizers import unigram
from widgets import ask_widget
from writing_studios import TOKENIZER, gpt

from tfviz import study, view
from tfviz.models import GPT
from tfviz.text import SubwordTokenizer

TEXTS = ("face", "fade")
ANSWERS = (3, 5)


def studio(model, **more):
    return view.patch(model, TOKENIZER, *TEXTS, answers=ANSWERS, kernel=True, **more)


def ask(live, **question):
    """What Python answers, and the first of its tensors."""
    content, pieces = ask_widget(live, **question)
    return content, torch.from_numpy(np.frombuffer(pieces[0], np.float32).copy()) if pieces else None


def read(live, text):
    ids = TOKENIZER.encode(text).tolist()
    return ask(live, run="read", inputs=[["ids", [1, len(ids)], ids]])


def patched(live, target, texts=TEXTS):
    ids = [TOKENIZER.encode(text).tolist() for text in texts]
    inputs = [["texts", [2, len(ids[0])], [*ids[0], *ids[1]]], ["target", [3], target]]
    return ask(live, run="patch", inputs=inputs)


@pytest.mark.parametrize("kind", MODELS)
def test_answers_equal_study_patch(kind):
    torch.manual_seed(2)
    model = MODELS[kind]().eval()
    live = studio(model)
    clean, corrupt = (TOKENIZER.encode(text)[None] for text in TEXTS)
    _, base = read(live, TEXTS[1])
    torch.testing.assert_close(base, _last_logits(model, corrupt), rtol=0, atol=1e-4)
    metric = study.logit_difference(*ANSWERS)
    blocks = (
        "gpt_neox.layers.?" if kind == "neox" else "transformer.h.?" if hasattr(model, "transformer") else "blocks.?"
    )
    for table, more in enumerate([{"sites": f"{blocks}.input", "each": "position"}, {"each": "head"}]):
        expected = study.patch(model, clean, corrupt, metric=metric, progress=False, **more).values
        assert expected.abs().max() > 1e-3
        for (layer, at), value in np.ndenumerate(expected.numpy()):
            content, logits = patched(live, [table, layer, at])
            assert content["outputs"] == [["logits", [len(base)], "float32"]]
            assert (metric(logits[None]) - metric(base[None])).item() == pytest.approx(value, abs=1e-4)


def _last_logits(model, ids):
    with torch.no_grad():
        output = model(ids)
    return getattr(output, "logits", output)[0, -1]


def test_model_of_half_precision_stays_in_python():
    live = studio(gpt().to(torch.bfloat16))
    _, logits = read(live, TEXTS[0])
    torch.testing.assert_close(
        logits, _last_logits(live._programs["read"].model, TOKENIZER.encode(TEXTS[0])[None]).float()
    )
    assert patched(live, [1, 0, 2])[1].isfinite().all()


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ([0, 2, 0], "there is no ['residual', 2, 0]; layers go from 0 to 1, places to 3"),
        ([0, 0, 4], "places to 3"),
        ([1, 0, 3], "there is no ['heads', 0, 3]"),
        ([2, 0, 0], "IndexError"),
        ([0, 0, -1], "the inputs are"),
        ([0, 0], "ValueError"),
        ("nonsense", "the inputs are"),
    ],
)
def test_wrong_targets_are_answered_with_an_error(target, error):
    content, piece = patched(studio(gpt()), target)
    assert error in content["error"]
    assert piece is None


def test_kernel_encodes_for_any_tokenizer():
    tokenizer = SubwordTokenizer(unigram())
    model = GPT(len(tokenizer), context=8, layers=1, heads=2, dim=8)
    live = view.patch(model, tokenizer, "the mat", "the sat", kernel=True)
    content, _ = ask(live, encode=["the mat", "the"], tokenizer=0)
    assert content["ids"] == [tokenizer.encode(text).tolist() for text in ("the mat", "the")]
    with pytest.raises(ValueError, match="with kernel=True Python encodes"):
        view.patch(model, tokenizer, "the mat", "the sat")


def test_page_without_kernel_shows_state():
    model = gpt()
    live = studio(model)
    assert "with the patch" not in live.view().summary
    live.state = {**live.state, "clean": "bag", "corrupt": "bad", "target": ["heads", 1, 0]}
    made = live.view()
    _, logits = patched(live, [1, 1, 0], ("bag", "bad"))
    top = logits.softmax(-1).max().item()
    assert "clean is 'bag'" in made.summary
    assert "with the patch" in made.summary
    assert f"{top:.3g}" in made.summary
    assert made.document["kind"].startswith("heads")
    assert made.document["note"].startswith("Static: a model in Python computed this")
    live.state = {**live.state, "clean": "ba"}  # texts that cannot be compared
    assert "after the corrupt text" in live.view().summary


def test_model_is_left_as_it_was():
    model = gpt().train()
    live = studio(model)
    patched(live, [0, 1, 2])
    assert model.training
    assert not any(module._forward_pre_hooks for module in model.modules())

"""The compiled step: the same text, from any weights, and the model alone where something looks into it."""

import shutil
from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import nn

from tfviz import generate, look
from tfviz.generate import GREEDY, Sampler, building, compiled
from tfviz.layers import MultiHead, masks, positions
from tfviz.models import GPT, RecurrentLM, TransformerXL

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")
PROMPT = torch.tensor([3, 1, 2, 6])
MODELS = {
    "learned": partial(GPT, 11, context=9, layers=2, heads=3, dim=12),
    "strided": partial(
        GPT,
        11,
        context=9,
        layers=1,
        heads=3,
        dim=6,
        mask=masks.strided(3),
        positions=positions.ALiBi,
        attention=partial(MultiHead, norm=nn.RMSNorm),
    ),
}


def gpt(name, seed=24):
    torch.manual_seed(seed)
    model = MODELS[name]().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    nn.init.constant_(model.norm.weight, -1.0)  # against the tied embeddings: a token does not repeat itself
    nn.init.zeros_(model.norm.bias)
    return model


@pytest.fixture(scope="module", params=MODELS)
def name(request, tmp_path_factory):
    """A model whose step is compiled, in a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFVIZ_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("TFVIZ_COMPILE", "1")
        model = gpt(request.param)
        file = compiled.place(model)
        assert compiled.reader(model) is None
        assert compiled.build(model, file).wait() == 0
        assert file.is_file(), compiled._failure(file).read_text()
        yield request.param


def written(model, sampler=GREEDY, count=30):
    return list(generate.ids(model, PROMPT, count, sampler, seed=4))


def alone(monkeypatch, *given):
    with monkeypatch.context() as patch:
        patch.setenv("TFVIZ_COMPILE", "0")
        return written(*given)


@pytest.mark.parametrize("sampler", [GREEDY, Sampler(), Sampler(0.7, top_k=5)], ids=str)
def test_the_text_is_the_same(name, sampler, monkeypatch):
    model, calls = gpt(name), []
    expected = alone(monkeypatch, model, sampler)
    step = compiled.Step(compiled.place(model), model)
    monkeypatch.setattr(step, "run", lambda given, run=step.run: calls.append(given[1].shape[3]) or run(given))
    compiled._steps[model] = step
    assert written(model, sampler) == expected
    assert len(set(expected)) > 1
    assert calls[:5] == [4, 5, 6, 7, 8]  # then the context is full: 4 of 9 tokens are read again
    assert calls[5:10] == [4, 5, 6, 7, 8]


def test_one_file_serves_all_weights(name, monkeypatch):
    first, second = gpt(name), gpt(name, seed=25)
    assert compiled.place(first) == compiled.place(second)
    texts = [written(model) for model in (first, second)]
    assert texts[0] != texts[1]
    reader = compiled.reader(second)
    with torch.inference_mode():
        assert [reader(ids).shape for ids in PROMPT[None].split([3, 1], dim=1)] == 2 * [(11,)]
    assert reader.kept is not None
    with torch.no_grad():
        for old, new in zip(first.parameters(), second.parameters()):
            old.copy_(new)
    assert written(first) == texts[1]
    first.tokens.weight = nn.Parameter(second.tokens.weight.detach() * -1.0)
    assert written(first) == alone(monkeypatch, first)


def test_two_texts_may_be_written_in_turns(name):
    first, second = gpt(name), gpt(name, seed=25)
    texts = [written(model, GREEDY, 12) for model in (first, second)]
    turns = zip(*(generate.ids(model, PROMPT, 12, GREEDY, seed=4) for model in (first, second)))
    assert [list(text) for text in zip(*turns)] == texts


def test_who_looks_sees_every_step(name):
    model = gpt(name)
    with look.capture(model, "*.pattern") as maps:
        text = written(model, GREEDY, 4)
    assert text == written(model, GREEDY, 4)
    assert len(maps.over_time("blocks.0.attention.pattern")) == 4
    seen = []
    handle = model.blocks[0].register_forward_hook(lambda *_: seen.append(1))
    written(model, GREEDY, 4)
    assert len(seen) == 4
    handle.remove()


def test_a_model_that_does_something_else_goes_on_alone(name, monkeypatch):
    model = gpt(name)
    model.norm.forward = lambda x: 2.0 * x
    expected = alone(monkeypatch, model)
    assert written(model) == expected
    assert expected != written(gpt(name))


def test_what_is_told_apart():
    places = {compiled.place(MODELS["learned"](**more)) for more in ({}, {"heads": 4}, {"dim": 6}, {"context": 8})}
    assert len(places) == 4
    other = [MODELS["learned"](mask=mask, positions=kind) for mask, kind in (
        (masks.causal, positions.Learned), (masks.window(3), positions.Learned), (masks.causal, positions.Rotary)
    )]  # fmt: skip
    assert len({compiled.place(model) for model in other}) == 3
    assert compiled.place(other[0]) in places
    assert compiled.place(deepcopy(other[0])) == compiled.place(other[0])


@pytest.mark.parametrize(
    "model",
    [
        TransformerXL(11, layers=1, heads=3, dim=6),
        RecurrentLM(11, dim=6, hidden=4),
        GPT(11, layers=1, heads=3, dim=6).double(),
        GPT(11, layers=1, heads=3, dim=6).to("meta"),
        GPT(2**17, layers=1, heads=1, dim=64),
        None,
    ],
    ids=["memory", "recurrent", "double", "elsewhere", "large", "none"],
)
def test_what_is_not_compiled(model, monkeypatch):
    monkeypatch.setenv("TFVIZ_COMPILE", "1")
    assert not compiled.possible(model)
    compiled.wrote(model, 10 * compiled.WORTH)


def test_it_is_begun_once_when_it_is_worth_it(monkeypatch, tmp_path):
    monkeypatch.setenv("TFVIZ_CACHE", str(tmp_path))
    monkeypatch.setenv("TFVIZ_COMPILE", "1")
    begun = []
    monkeypatch.setattr(compiled, "build", lambda model, file: begun.append(file))
    monkeypatch.setattr(compiled, "WORTH", 50)
    model = gpt("learned")
    written(model, GREEDY, 49)
    assert not begun
    written(model, GREEDY, 1)
    written(model, GREEDY, 60)
    assert begun == [compiled.place(model)]


def test_a_failure_is_told_and_not_tried_again(monkeypatch, tmp_path):
    monkeypatch.setenv("TFVIZ_CACHE", str(tmp_path))
    monkeypatch.setenv("TFVIZ_COMPILE", "1")
    model, source = gpt("learned"), tmp_path / "model"
    file = compiled.place(model)
    file.parent.mkdir()
    source.write_bytes(b"no model")
    building.main(str(source), str(file), str(compiled._failure(file)))
    assert "Traceback" in compiled._failure(file).read_text()
    assert not file.exists()
    assert not source.exists()
    monkeypatch.setattr(compiled, "build", lambda *_: pytest.fail("it was tried again"))
    compiled.wrote(model, 2 * compiled.WORTH)


def test_a_damaged_file_is_passed_by(monkeypatch, tmp_path):
    monkeypatch.setenv("TFVIZ_CACHE", str(tmp_path))
    monkeypatch.setenv("TFVIZ_COMPILE", "1")
    model = gpt("learned")
    compiled.place(model).parent.mkdir()
    compiled.place(model).write_bytes(b"no program")
    assert written(model) == alone(monkeypatch, model)

"""Models, captures and studies match the CPU on another device: a simulated one, which rejects CPU tensors, or a GPU.

The checks of a device run in a process of their own, since PyTorch never forgets one that is written in Python.
"""

import copy
import json
import subprocess
import sys
import traceback
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # in a process of its own

from other_device import NAME, installed
from torch import nn
from torch.nn import functional

from tfviz import generate, layers, learn, look, models, study, view
from tfviz.layers import masks, positions
from tfviz.learn import evaluate
from tfviz.text import CharacterTokenizer, train_bpe, train_wordpiece

WORDS = torch.tensor([[3, 5, 8, 2, 9, 4, 1], [3, 7, 8, 1, 9, 1, 2]])
SOURCE = torch.tensor([[3, 5, 8, 2, 9], [3, 7, 8, 0, 0]])
EDGES = torch.eye(5, dtype=torch.bool).roll(1, 0).repeat(2, 1, 1) | torch.eye(5, dtype=torch.bool)
SMALL = {"layers": 2, "heads": 3, "dim": 12}


def gpt(**more):
    return models.GPT(11, context=8, **SMALL, **more)


def sparse(**more):
    return models.SparseTransformer(11, stride=3, context=8, **SMALL | {"dim": 48}, **more)


def documents():
    """Documents of different lengths, from numbers that Python holds."""
    return masks.documents(torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 2, 2]])) & masks.causal


MODELS = {
    "GPT": (gpt, (WORDS,)),
    "GPT, rotary": (lambda: gpt(positions=positions.Rotary), (WORDS,)),
    "GPT, ALiBi": (lambda: gpt(positions=positions.ALiBi), (WORDS,)),
    "GPT, documents": (lambda: gpt(mask=documents()), (WORDS,)),
    "GPT, window": (lambda: gpt(mask=masks.window(2)), (WORDS,)),
    "sparse": (lambda: models.SparseTransformer(11, stride=3, context=8, **SMALL), (WORDS,)),
    "sparse, wide heads": (sparse, (WORDS,)),  # for which a GPU has a kernel
    "sparse, fixed": (lambda: sparse(make_mask=masks.fixed), (WORDS,)),
    "sparse, by head": (lambda: sparse(make_mask=[masks.window, masks.dilated]), (WORDS,)),
    "BERT": (lambda: models.BERT(11, context=8, **SMALL), (WORDS,)),
    "BERT classifier": (lambda: models.BERTClassifier(models.BERT(11, context=8, **SMALL)), (WORDS,)),
    "classifier": (lambda: models.Classifier(11, context=8, **SMALL), (SOURCE,)),
    "Transformer": (lambda: models.Transformer(11, **SMALL), (SOURCE, WORDS)),
    "Transformer-XL": (lambda: models.TransformerXL(11, memory=4, **SMALL), (WORDS,)),
    "RNN": (lambda: models.RecurrentLM(11, dim=6, hidden=4), (WORDS,)),
    "LSTMN": (lambda: models.LSTMN(11, dim=6, hidden=4), (WORDS,)),
    "convolution": (lambda: models.ConvLM(11, dim=6, layers=2), (WORDS,)),
    "seq2seq": (lambda: models.Seq2Seq(11, attention=layers.AdditiveAttention, dim=6, hidden=8), (SOURCE, WORDS)),
    "recommender": (lambda: models.Recommender(10, 9, dim=5), (WORDS[0], WORDS[1] - 1)),
    "graph": (lambda: models.GraphAttention(4, 3, **SMALL), (torch.ones(2, 5, 4).cumsum(1), EDGES)),
    "self-attention": (models.SelfAttention, (torch.ones(2, 5, 4).cumsum(1),)),
}  # fmt: skip
CAPTURES = {
    "plain": {},
    "lazy": {"lazy": True},
    "everything": {"sites": "*"},
    "kept on the CPU": {"device": "cpu"},
    "lazy, kept on the CPU": {"device": "cpu", "lazy": True},
    "bytes": {"dtype": torch.uint8},
    "half": {"dtype": torch.float16},
    "head off": {"edit": {"*.pattern": look.edits.zero(1)}},
    "even": {"edit": {"*.pattern": look.edits.uniform()}},
    "head's output": {"edit": {"*.output_heads": look.edits.zero(head=1)}},
    "steered": {"edit": {"blocks.0": look.edits.add(torch.ones(12), positions=[0, 2])}},
    "noise": {"edit": {"blocks.0": look.edits.noise(0.3, positions=[0, 2])}},
    "pasted": {"edit": {"*.output_heads": look.edits.paste(torch.ones(4), head=1)}},
    "gradients": {"sites": ["*.pattern", "*.output_heads"], "grad": True},
}


def cpu_tensors(found):
    """Numbers on the CPU, of whatever was returned."""
    if isinstance(found, torch.Tensor):
        return [found.detach().cpu().float()]
    if isinstance(found, study.Table):
        return [found.values]
    if isinstance(found, study.Statistics):
        return cpu_tensors(found.mean)
    if isinstance(found, dict):
        return [number for part in found.values() for number in cpu_tensors(part)]
    if isinstance(found, tuple | list):
        return [number for part in found for number in cpu_tensors(part)]
    return [torch.tensor(float(found))] if isinstance(found, float | int) else []


def assert_matches_cpu(device, build, call, on_gpu=1e-4):
    """Raise unless a call on the other device gives what it gives on the CPU, to a tolerance of its own on a GPU."""
    torch.manual_seed(0)
    model = build().eval()
    own, other = copy.deepcopy(model), model.to(device)
    assert {tensor.device.type for tensor in other.state_dict().values()} <= {device}
    expected, found = cpu_tensors(call(own, "cpu")), cpu_tensors(call(other, device))
    assert expected
    tolerance = on_gpu if device == "cuda" else 1e-4
    for one, two in zip(expected, found, strict=True):
        torch.testing.assert_close(one, two, atol=tolerance, rtol=tolerance, equal_nan=True)


def check_forward(device, name):
    build, inputs = MODELS[name]
    assert_matches_cpu(device, build, lambda model, device: model(*(tensor.to(device) for tensor in inputs)))


def check_capture(device, options):
    def call(model, device):
        with look.capture(model, **CAPTURES[options]) as seen:
            output = model(WORDS.to(device))
        stays = "cpu" if "device" in CAPTURES[options] else device
        assert {tensor.device.type for tensor in seen.values() if CAPTURES[options].get("lazy") is None} <= {stays}
        if not CAPTURES[options].get("edit"):
            maps = look.AttentionMaps.from_capture(seen, list("abcdefg"), batch=1)
            return [output, dict(seen), look.measures.head_scores(maps), maps.weights[0, 1]]
        return [output]

    assert_matches_cpu(device, gpt, call)


def train(model, device):
    torch.manual_seed(0)
    steps = list(learn.fit(model, [(WORDS, WORDS)] * 2, device=device, precision="float32", progress=False))
    assert {weight.device.type for weight in model.parameters()} == {device}
    return [step.loss for step in steps]


STUDIES = {
    "patch": lambda model, _: study.patch(model, WORDS[:1], WORDS[1:], metric=METRIC, progress=False),
    "patch by gradient": lambda model, _: study.patch(
        model, WORDS[:1], WORDS[1:], metric=METRIC, source="gradient", progress=False
    ),
    "patch by means": lambda model, _: study.patch(
        model, WORDS, metric=METRIC, source=study.mean_activations(model, [WORDS], progress=False), progress=False
    ),
    "path": lambda model, _: study.patch_path(
        model, WORDS[:1], WORDS[1:], metric=METRIC, receivers="blocks.1.attention.query", progress=False
    ),
    "lens": lambda model, _: study.logit_lens(model, WORDS),
    "attribute": lambda model, _: study.logit_attribution(model, WORDS, target=METRIC).values,
    "attribute to heads": lambda model, _: study.logit_attribution(model, WORDS, target=METRIC, each="head"),
    "head weights": lambda model, _: [(found := study.head_weights(model)).query, found.output, found.ov(1, 0)],
    "find heads": lambda model, _: study.mean_head_scores(model, [WORDS], progress=False),
    "compare": lambda model, _: study.compare(model, copy.deepcopy(model), [WORDS], progress=False),
    "fit": train,
    "evaluate": lambda model, _: evaluate.loss(model, [(WORDS, WORDS)]),
    "generate": lambda model, _: list(generate.ids(model, WORDS[0][:3], 3)),
    "generate without a cache": lambda model, _: list(generate.ids(model, WORDS[0][:3], 3, cache=False)),
}
METRIC = study.logit_difference(3, 5)


def check_hugging_face(device, attention):
    """Padded texts in a model of Hugging Face, with what is kept of a mask."""
    transformers = pytest.importorskip("transformers")
    small = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 8, "bos_token_id": None, "eos_token_id": None}
    config = transformers.GPT2Config(vocab_size=11, attn_implementation=attention, **small)
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])

    def call(model, device):
        inputs = {"input_ids": WORDS.to(device), "attention_mask": mask.to(device)}
        found = []
        for options in ({}, {"lazy": True}, {"lazy": True, "device": "cpu"}, {"device": "cpu"}):
            with torch.no_grad(), look.capture(model, **options) as seen:
                found.append(model(**inputs).logits)
            found += [pair for site in seen for pair in (seen[site], seen.allowed(site))]
        heads = study.mean_head_scores(model, [{"input_ids": WORDS, "attention_mask": mask}], progress=False)
        return [*found, heads]

    assert_matches_cpu(device, lambda: transformers.GPT2LMHeadModel(config), call)


def check_beam_search(device):
    """Also of a batch, and with the memory of the encoder repeated for each text."""
    options = {"bos": 1, "eos": 2, "num_beams": 3, "max_new_tokens": 4}

    def call(model, _):
        beam = generate.beam.search(model, SOURCE, **options)
        return [beam.ids, beam.scores]

    assert_matches_cpu(device, lambda: models.Transformer(11, **SMALL), call)


def check_mixed_devices_raise(device):
    """The simulated device refuses what a GPU refuses, and takes what a GPU takes."""
    x = torch.ones(2, 3, device=device)
    for wrong in (
        lambda: x + torch.ones(3),
        lambda: x @ torch.ones(3, 2),
        lambda: functional.linear(x, torch.ones(2, 3)),
    ):
        try:
            wrong()
        except RuntimeError:
            continue
        raise AssertionError("two devices were mixed")
    assert (x + torch.tensor(1.0)).tolist() == [[2.0] * 3] * 2
    assert x[torch.tensor([1])].tolist() == [[1.0] * 3]
    assert torch.tensor([1, 2], device=device).device.type == device
    assert type(x.cpu()) is torch.Tensor


class PictureClassifier(nn.Module):
    """Four patches of a picture of 4 x 4 pixels, one attention over them, their mean."""

    def __init__(self):
        super().__init__()
        self.embed, self.to_logits = nn.Conv2d(3, 12, 2, 2), nn.Linear(12, 3)
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, pixels):
        patches = self.embed(pixels).flatten(2).mT
        return self.to_logits(self.attention(patches, patches, patches, need_weights=False)[0].mean(1))


LETTERS = CharacterTokenizer("abcdefghijk")
WORDPIECE = train_wordpiece(["the cat sat on the mat"], 60)
BPE = train_bpe(["the cat sat on the mat"], 266)
PIXELS = torch.arange(48.0).view(1, 3, 4, 4).sin()
STUDIOS = {
    "write": (gpt, lambda model, **more: view.write(model, LETTERS, "abc", **more)),
    "fill": (
        lambda: models.BERT(len(WORDPIECE), context=12, **SMALL),
        lambda model, **more: view.fill(model, WORDPIECE, "the cat sat", masked=[1], **more),
    ),
    "classify": (
        lambda: models.BERTClassifier(models.BERT(11, context=8, **SMALL), classes=3),
        lambda model, **more: view.classify(model, LETTERS, ["x", "y", "z"], "abcd", **more),
    ),
    "classify_image": (
        PictureClassifier,
        lambda model, **more: view.classify_image(model, PIXELS, ["x", "y", "z"], **more),
    ),
    "translate": (
        lambda: models.Transformer(len(BPE), **SMALL),
        lambda model, **more: view.translate(model, BPE, "the cat sat", max_new_tokens=4, **more),
    ),
    "patch": (gpt, lambda model, **more: view.patch(model, LETTERS, "abcd", "abed", **more)),
}


def check_studio(device, name, kernel):
    """It opens with the same state, text and heads, and exports the same program."""
    build, open_studio = STUDIOS[name]
    torch.manual_seed(0)
    model = build().eval()
    expected, found = (open_studio(each, kernel=kernel).document for each in (copy.deepcopy(model), model.to(device)))
    assert found == expected


CHECKS = {
    "the device": check_mixed_devices_raise,
    **{f"forward, {name}": partial(check_forward, name=name) for name in MODELS},
    **{f"capture, {name}": partial(check_capture, options=name) for name in CAPTURES},
    **{name: partial(assert_matches_cpu, build=gpt, call=call) for name, call in STUDIES.items()},
    "fit, sparse": partial(assert_matches_cpu, build=sparse, call=train, on_gpu=5e-3),  # Muon computes in TF32 there
    "beam search": check_beam_search,
    **{
        f"view.{name}{', in the kernel' if kernel else ''}": partial(check_studio, name=name, kernel=kernel)
        for name in STUDIOS
        for kernel in (False, True)
        if kernel or name != "classify_image"  # torch.export cannot follow a convolution there
    },
    "GPT-2, eager": partial(check_hugging_face, attention="eager"),
    "GPT-2, sdpa": partial(check_hugging_face, attention="sdpa"),
}
DEVICES = [NAME, "cuda"] if torch.cuda.is_available() else [NAME]


@pytest.fixture(scope="module", params=DEVICES)
def results(request):
    command = [sys.executable, "-W", "ignore", __file__, request.param]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("check", CHECKS)
def test_other_device_matches_cpu(results, check):
    assert results[check] == "", results[check]


def print_failures(checks):
    """Print, for the process that reads it, name -> the traceback of a check that failed, or nothing."""
    failures = {}
    for name, check in checks.items():
        try:
            check()
            failures[name] = ""
        except Exception:
            failures[name] = traceback.format_exc()
    print(json.dumps(failures))


def main(device):
    with installed() if device == NAME else nullcontext():
        print_failures({name: partial(check, device) for name, check in CHECKS.items()})


if __name__ == "__main__":
    main(sys.argv[1])

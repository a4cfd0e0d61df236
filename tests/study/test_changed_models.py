"""Every analysis of a model whose blocks are changed by a hook or an open edit, as of one that computes the change."""

from contextlib import contextmanager, nullcontext

import pytest
import torch
from study_models import IDS, OTHER, VOCAB_SIZE, build, call, config
from torch.nn.modules.module import register_module_forward_hook

from tfviz import look, models, study

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
METRIC = study.logit_difference(5, 6)


LAYERS, HEADS, DIM = 3, 4, 24


def gpt2():
    return "GPT2LMHeadModel", lambda: config(
        "GPT2", n_positions=8, n_embd=DIM, n_layer=LAYERS, n_head=HEADS, n_inner=10
    )


FAMILIES = {  # how it is built, its blocks, the attention in each
    "own": (lambda: models.GPT(VOCAB_SIZE, layers=LAYERS, heads=HEADS, dim=DIM), None, "blocks", "attention"),
    "GPT-2": (*gpt2(), "transformer.h", "attn"),
}


def made(name):
    kind, settings, blocks, attention = FAMILIES[name]
    return build(kind, settings), blocks, attention


VECTOR = torch.randn(DIM, generator=torch.Generator().manual_seed(5))


def first(output):
    return output[0] if isinstance(output, tuple) else output


def with_first(output, tensor):
    return (tensor, *output[1:]) if isinstance(output, tuple) else tensor


CHANGES = {
    "add": lambda tensor: tensor + VECTOR,
    "scale": lambda tensor: tensor * 0.5,
    "square": lambda tensor: tensor + 0.1 * tensor**2,
}


@contextmanager
def in_forward(model, path, change, at):
    """The change as part of the module's own forward: the reference."""
    module = model.get_submodule(path)
    forward = module.forward

    def changed(stream, *args, **kwargs):
        if at == "input":
            return forward(change(stream), *args, **kwargs)
        output = forward(stream, *args, **kwargs)
        return with_first(output, change(first(output)))

    module.forward = changed
    yield
    del module.forward


@contextmanager
def by_hook(model, path, change, at):
    module = model.get_submodule(path)
    if at == "input":
        handle = module.register_forward_pre_hook(lambda _, args: (change(args[0]), *args[1:]))
    else:
        handle = module.register_forward_hook(lambda _, __, output: with_first(output, change(first(output))))
    yield
    handle.remove()


@contextmanager
def by_global_hook(model, path, change, at):
    target = model.get_submodule(path)

    def hook(module, _, output):
        return with_first(output, change(first(output))) if module is target else None

    handle = register_module_forward_hook(hook)
    yield
    handle.remove()


@contextmanager
def by_edit(model, path, change, at):
    with look.capture(model, [], edit={f"{path}.input" if at == "input" else path: change}):
        yield


WAYS = {"hook": by_hook, "global hook": by_global_hook, "edit": by_edit}
ANALYSES = {
    **{
        f"patch heads, {by}": lambda m, b, a, by=by: study.patch(m, IDS, OTHER, metric=METRIC, source=by)
        for by in ("clean", "corrupt", "zero", "mean", "resample", "gradient")
    },
    "patch blocks": lambda m, b, a: study.patch(m, IDS, OTHER, metric=METRIC, sites=f"{b}.?"),
    "patch inputs": lambda m, b, a: study.patch(m, IDS, OTHER, metric=METRIC, sites=f"{b}.?.input"),
    "patch attention": lambda m, b, a: study.patch(m, IDS, OTHER, metric=METRIC, sites=f"{b}.*.{a}"),
    "path to the logits": lambda m, b, a: study.patch_path(m, IDS, OTHER, metric=METRIC),
    "path to queries": lambda m, b, a: study.patch_path(
        m, IDS, OTHER, metric=METRIC, receivers={f"{b}.2.{a}.query": 1}
    ),
    "lens": lambda m, b, a: study.logit_lens(m, IDS),
    "attribute": lambda m, b, a: study.logit_attribution(m, IDS, target=METRIC),
    "attribute by head": lambda m, b, a: study.logit_attribution(m, IDS, target=METRIC, each="head"),
    "means": lambda m, b, a: study.mean_activations(m, [IDS]),
    "heads": lambda m, b, a: study.mean_head_scores(m, [IDS], ["previous"])["previous"].means,
}


def numbers(result):
    if isinstance(result, dict):
        return torch.cat([mean.flatten() for mean in result.values()])
    return result if isinstance(result, torch.Tensor) else result.values


CASES = [  # the family, the block, where, the change, and the ways
    ("own", "0", "output", "scale", WAYS),
    ("own", "2", "output", "square", ["edit"]),
    ("own", "1", "input", "square", ["hook", "edit"]),
    ("GPT-2", "1", "output", "add", ["hook"]),
    ("GPT-2", "0", "input", "scale", ["edit"]),
]


@pytest.mark.parametrize(("name", "block", "at", "kind", "ways"), CASES)
def test_analyses_see_a_change_once(name, block, at, kind, ways):
    model, blocks, attention = made(name)
    where = model, f"{blocks}.{block}", CHANGES[kind], at
    for analysis, run in ANALYSES.items():
        if analysis == "attribute by head" and at == "input":
            continue  # refused: the change stands between heads and stream
        with in_forward(*where):
            expected = numbers(run(model, blocks, attention))
        expected = expected.sum() if analysis == "attribute" else expected  # other parts, the same sum
        for way in ways:
            with WAYS[way](*where):
                found = numbers(run(model, blocks, attention))
            found = found.sum() if analysis == "attribute" else found
            message = f"{analysis}, {way}: {(found - expected).abs().max():.2g} of {expected.abs().max():.2g}"
            assert torch.allclose(found, expected, atol=5e-4 * max(1, expected.abs().max()), equal_nan=True), message


@pytest.mark.parametrize("name", FAMILIES)
def test_patching_a_changed_model_with_itself_changes_nothing(name):
    model, blocks, _ = made(name)
    edits = (nullcontext(), look.capture(model, [], edit={f"{blocks}.1": look.edits.add(VECTOR)}))
    for context in edits:
        with context:
            for sites in ("*.output_heads", f"{blocks}.?"):
                assert study.patch(model, IDS, IDS, metric=METRIC, sites=sites).values.abs().max() < 1e-5


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("edit", ["add", "zero", "paste", "lambda"])
def test_attribution_adds_up_under_an_edit(name, edit):
    model, blocks, _ = made(name)
    edits = {
        "add": look.edits.add(VECTOR, positions=[0, -1]),
        "zero": look.edits.zero(positions=-1),
        "paste": look.edits.paste(VECTOR),
        "lambda": lambda tensor: tensor.clone().index_fill_(1, torch.tensor(-1 % IDS.shape[1]), 0.5),
    }
    for path in (f"{blocks}.0", f"{blocks}.2"):
        with look.capture(model, [], edit={path: edits[edit]}):
            table = study.logit_attribution(model, IDS, target=METRIC)
            target = METRIC(call(model, IDS))
        assert table.values.sum() == pytest.approx(target.item(), abs=1e-4)
        assert path in table.axes["part"]

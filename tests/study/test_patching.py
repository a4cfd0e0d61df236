"""Activation patching compared with a loop of plain PyTorch hooks, one run for each patch."""

import itertools
from collections import OrderedDict
from functools import partial

import pytest
import torch
from combinations import one_at_a_time
from study_models import (
    FAMILIES,
    IDS,
    MASK,
    OTHER,
    SMALL,
    TEXTS,
    VOCAB_SIZE,
    build,
    call,
    config,
    cut,
    family,
    prompts,
    recorded,
    residual_model,
    run,
    score,
)
from torch import nn

from tfviz import look, study
from tfviz.study import block_replay, patch

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
SITES = [(name, sites) for name, family in FAMILIES.items() for sites in family.sites]
BY = ("clean", "corrupt", "zero", "mean", "resample", "gradient")


def reference(model, clean, corrupt, modules, heads, by, each, at, seed=0):
    """The change of the score by each patch, one run a patch."""
    base = corrupt if by in ("clean", "gradient") else clean
    with torch.no_grad():
        unpatched = score(run(model, base))
    rows = []
    for module in modules:
        own = recorded(model, clean, module, at)
        source = {
            "clean": lambda own=own: own,
            "gradient": lambda own=own: own,
            "corrupt": lambda module=module: recorded(model, corrupt, module, at),
            "zero": lambda own=own: own * 0,
            "mean": lambda own=own, module=module: mean_of_words(own, clean, module),
            "resample": lambda own=own: own.roll(
                int(torch.randint(1, TEXTS, (), generator=torch.Generator().manual_seed(seed))), 0
            ),
        }[by]()
        targets = itertools.product(
            range(heads) if each != "position" else [None], range(own.shape[1]) if each != "head" else [None]
        )
        if by == "gradient":
            leaf = recorded(model, base, module, at).requires_grad_()
            (slope,) = torch.autograd.grad(score(run(model, base, module, lambda _, leaf=leaf: leaf * 1, at)), leaf)
            product = (source - leaf.detach()) * slope
            rows.append(torch.stack([cut(product, heads, *target).float().sum() for target in targets]))
            continue
        found = []
        for target in targets:

            def change(tensor, target=target, source=source):
                tensor = tensor.clone()
                cut(tensor, heads, *target)[:] = cut(source, heads, *target)
                return tensor

            with torch.no_grad():
                found.append(score(run(model, base, module, change, at)) - unpatched)
        rows.append(torch.stack(found))
    return torch.stack(rows)


def mean_of_words(own, prompt, module):
    """The mean at each position over the texts that have a word there; padding where none has."""
    mask = prompt.get("attention_mask") if isinstance(prompt, dict) and "decoder" not in module else None
    words = torch.ones(own.shape[:2]) if mask is None else mask.float()
    counts = words.sum(0)[None, :, None]
    mean = (own.float() * words[:, :, None]).sum(0, keepdim=True) / counts.clamp(min=1)
    return torch.where(counts > 0, mean, own.float()).to(own.dtype)


def assert_matches(table, expected, dtype=torch.float32):
    tolerance = 1e-4 if dtype == torch.float32 else 0.05 * max(1.0, expected.abs().max().item())
    torch.testing.assert_close(table.values.flatten(1), expected, rtol=1e-4, atol=tolerance)
    assert expected.abs().max() > 1e-3


@pytest.mark.parametrize(
    ("name", "glob", "by", "padded"),
    [
        *((*target, "clean", False) for target in SITES),
        *(("GPT-2", "*.output_heads", by, False) for by in BY[1:]),
        ("Llama", "*.output_heads", "mean", True),
        ("Llama", "*.output_heads", "resample", True),
        ("T5", "encoder.*.output_heads", "clean", True),
        ("T5", "decoder.*.EncDecAttention.output_heads", "gradient", True),
    ],
)
def test_patching_heads_matches_reference(name, glob, by, padded):
    model, kind = family(name)
    clean, corrupt = prompts(name, padded)
    modules = [kind.sites[glob].format(layer) for layer in range(2)]
    each = ("head", "position", "head and position")[(BY.index(by) + padded) % 3]
    if padded and by == "resample" and "decoder" not in glob:
        with pytest.raises(ValueError, match="source='resample' would put activations of padding"):
            patch(model, clean, corrupt, metric=score, sites=glob, source=by, progress=False)
        return
    table = patch(model, clean, corrupt, metric=score, sites=glob, source=by, each=each, progress=False)
    assert_matches(table, reference(model, clean, corrupt, modules, 4, by, each, "input"))
    with torch.no_grad():
        assert table.notes["clean"] == pytest.approx(score(call(model, clean)).item(), abs=1e-5)
        assert table.notes["corrupt"] == pytest.approx(score(call(model, corrupt)).item(), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "by", "each"),
    one_at_a_time(["ViT", "GPT-2"], ["clean", "resample", "gradient"], ["head and position", "head", "position"]),
)
def test_patching_by_head_or_position_matches_reference(name, by, each):
    model, kind = family(name)
    clean, corrupt = prompts(name)
    (glob, template), *_ = kind.sites.items()
    table = patch(model, clean, corrupt, metric=score, sites=glob, source=by, each=each, seed=5, progress=False)
    assert_matches(
        table, reference(model, clean, corrupt, [template.format(0), template.format(1)], 4, by, each, "input", 5)
    )
    assert list(table.axes) == ["layer", *each.split(" and ")]


@pytest.mark.parametrize(
    ("name", "by", "at"), one_at_a_time(FAMILIES, ["clean", "corrupt", "mean", "gradient"], ["output", "input"])
)
def test_patching_modules_matches_reference(name, by, at):
    model, kind = family(name)
    clean, corrupt = prompts(name)
    modules = [kind.module.replace("*", "{}").replace("?", "{}").format(layer) for layer in range(2)]
    glob = kind.module if at == "output" else f"{kind.module}.input"
    table = patch(model, clean, corrupt, metric=score, sites=glob, source=by, progress=False)
    assert_matches(table, reference(model, clean, corrupt, modules, None, by, "position", at))
    assert list(table.axes) == ["layer", "position"]


@pytest.mark.parametrize(("name", "by"), one_at_a_time(FAMILIES, ["clean", "mean", "gradient"]))
def test_patching_in_bfloat16_matches_reference(name, by):
    model, kind = family(name, torch.bfloat16)
    clean, corrupt = prompts(name, dtype=torch.bfloat16)
    (glob, template), *_ = kind.sites.items()
    modules = [template.format(layer) for layer in range(2)]
    table = patch(model, clean, corrupt, metric=score, sites=glob, source=by, progress=False)
    assert_matches(table, reference(model, clean, corrupt, modules, 4, by, "head", "input"), torch.bfloat16)


@pytest.mark.parametrize(("name", "glob"), SITES)
def test_block_replay_matches_full_runs(name, glob, monkeypatch):
    model, _ = family(name)
    clean, corrupt = prompts(name, padded=name not in ("ViT", "GPT"))
    blocks = look.blocks(model)

    def table(**more):
        given = {"metric": score, "sites": glob, "each": "head and position", "progress": False, **more}
        return patch(model, clean, corrupt, **given).values

    replayed = table()
    torch.testing.assert_close(table(batch_size=10**6), replayed, rtol=0, atol=1e-5)
    counts = []
    for path, module in model.named_modules():
        if any(path.startswith(f"{block}.") for block in blocks) and isinstance(module, nn.Linear | nn.LayerNorm):
            module.register_forward_hook(lambda *_: counts.append(1))
    torch.testing.assert_close(table(batch_size=1), replayed, rtol=0, atol=1e-5)
    few = len(counts)
    counts.clear()
    monkeypatch.setattr(block_replay.BlockReplay, "before", lambda *_: [])
    torch.testing.assert_close(table(batch_size=1), replayed, rtol=0, atol=1e-5)
    assert few < len(counts)


def test_patch_resumes_after_interruption(tmp_path):
    model, _ = family("GPT-2")
    clean, corrupt = prompts("GPT-2", padded=True)
    runs, limit = [], 5

    def counted(logits):
        runs.append(1)
        if len(runs) > limit:
            raise KeyboardInterrupt
        return score(logits)

    def table(metric=counted, **more):
        return patch(model, clean, corrupt, metric=metric, batch_size=1, progress=False, **more)

    file = tmp_path / "sweep"
    whole = table(score)
    with pytest.raises(KeyboardInterrupt):
        table(resume=file)
    runs.clear()
    limit = 100
    found = table(resume=file)
    assert torch.equal(found.values, whole.values)
    assert len(runs) == 2 + 8 - 3  # the two runs without a patch, and what was missing
    runs.clear()
    assert torch.equal(table(resume=file).values, whole.values)
    assert len(runs) == 2
    for more in (
        {"source": "zero"},
        {"each": "position"},
        {"sites": "*.mlp"},
        {"metric": lambda logits: logits[0, 0, 0]},
    ):
        with pytest.raises(ValueError, match=r"sweep holds results of another"):
            table(resume=file, **more)
    with pytest.raises(ValueError, match="holds results of another"):
        patch(model, corrupt, clean, metric=score, progress=False, resume=file)
    with torch.no_grad():
        model.lm_head.weight += 0.1
    with pytest.raises(ValueError, match="holds results of another model"):
        table(resume=file)


def test_resume_rejects_unrelated_files(tmp_path):
    model, _ = family("GPT-2")
    file = study.Table(torch.ones(2), {"a": ["x", "y"]}).save(tmp_path / "table")
    with pytest.raises(ValueError, match="holds no results of an interrupted analysis"):
        patch(model, IDS, OTHER, metric=score, progress=False, resume=file)


@pytest.mark.parametrize(("by", "frozen"), one_at_a_time(["gradient", "clean", "corrupt", "mean"], [True, False]))
def test_patching_in_place_streams_matches_reference(by, frozen):
    model = residual_model("into parts").requires_grad_(not frozen)
    for part in ("", ".attention", ".mlp"):
        table = patch(model, IDS, OTHER, metric=score, sites=f"blocks.?{part}", source=by, progress=False)
        modules = [f"blocks.{layer}{part}" for layer in range(2)]
        assert_matches(table, reference(model, IDS, OTHER, modules, None, by, "position", "output"))
    table = patch(model, IDS, OTHER, metric=score, source=by, progress=False)
    assert table.values.shape == (2, 3)


@pytest.mark.parametrize("by", ["clean", "gradient"])
def test_patch_leaves_gradients_and_requires_grad_unchanged(by):
    for frozen in (True, False):
        model, kind = family("Llama")
        model.requires_grad_(not frozen)
        clean, corrupt = prompts("Llama")
        table = patch(model, clean, corrupt, metric=score, source=by, progress=False)
        modules = [kind.sites["*.output_heads"].format(layer) for layer in range(2)]
        assert_matches(table, reference(model, clean, corrupt, modules, 4, by, "head", "input"))
        assert all(parameter.grad is None for parameter in model.parameters())
        assert all(parameter.requires_grad is not frozen for parameter in model.parameters())


def test_patch_rejects_heads_of_shared_blocks():
    albert = build("AlbertForMaskedLM", partial(config, "Albert", embedding_size=8, max_position_embeddings=8, **SMALL))
    with pytest.raises(ValueError, match=r"output_heads is computed 2 times in one run"):
        patch(albert, IDS, OTHER, metric=score, progress=False)
    (whole,) = patch(albert, IDS, OTHER, metric=score, sites="albert.embeddings", progress=False).values
    with torch.no_grad():
        expected = reference(albert, {"input_ids": IDS}, {"input_ids": OTHER}, ["albert.embeddings"], None, "clean",
                             "position", "output")  # fmt: skip
    torch.testing.assert_close(whole[None], expected, rtol=0, atol=1e-4)


def encoder():
    """PyTorch's encoder between an embedding and a head."""
    tokens, head = nn.Embedding(VOCAB_SIZE, 12), nn.Linear(12, VOCAB_SIZE)
    layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 4, 10, batch_first=True), 2)
    return nn.Sequential(OrderedDict(tokens=tokens, encoder=layers, head=head))


def test_patching_mixtral_and_torch_encoder_matches_reference():
    mixtral = build(
        "MixtralForCausalLM",
        partial(
            config, "Mixtral", num_local_experts=3, num_experts_per_tok=2, hidden_size=32, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, intermediate_size=16, max_position_embeddings=8,
        ),
    )  # fmt: skip
    for by in ("clean", "gradient"):
        table = patch(mixtral, IDS, OTHER, metric=score, source=by, progress=False)
        modules = [f"model.layers.{layer}.self_attn.o_proj" for layer in range(2)]
        prompts = {"input_ids": IDS}, {"input_ids": OTHER}
        assert_matches(table, reference(mixtral, *prompts, modules, 4, by, "head", "input"))
    model = build(encoder, None)
    for by in ("clean", "mean", "gradient"):
        table = patch(model, IDS, OTHER, metric=score, sites="encoder.layers.?", source=by, progress=False)
        modules = [f"encoder.layers.{layer}" for layer in range(2)]
        assert_matches(table, reference(model, IDS, OTHER, modules, None, by, "position", "output"))
        heads = patch(model, IDS, OTHER, metric=score, source=by, progress=False)
        assert heads.values.shape == (2, 4)
    all_heads = patch(model, IDS, OTHER, metric=score, sites="*.self_attn", progress=False)
    assert all_heads.values.abs().max() > 1e-3


def test_patching_compiled_model_matches_eager():
    model = build(encoder, None)
    expected = patch(model, IDS, OTHER, metric=score, progress=False).values
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(IDS)
    assert torch.equal(patch(compiled, IDS, OTHER, metric=score, progress=False).values, expected)


def hook_state(model):
    """What a study might leave behind in a model."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_forward_hooks_with_kwargs")
    return [
        (path, [len(getattr(module, kind)) for kind in hooks], module.__dict__.get("forward"), module.training)
        for path, module in model.named_modules()
    ]


def accelerate_like(model):
    """Instance forwards around the classes' own, as accelerate's hooks have them."""
    for module in model.modules():
        own = module.forward
        module.forward = lambda *args, own=own, **kwargs: own(*args, **kwargs)


@pytest.mark.parametrize("wrapped", [False, True])
def test_patch_restores_the_model(wrapped):
    model, _ = family("GPT-2")
    plain = patch(model, IDS, OTHER, metric=score, progress=False).values
    if wrapped:
        accelerate_like(model)
    model.train()
    before = hook_state(model)
    assert torch.equal(patch(model, IDS, OTHER, metric=score, progress=False).values, plain)
    assert hook_state(model) == before
    runs = []

    def fails(logits):
        runs.append(1)
        if len(runs) == 4:
            raise RuntimeError("in the middle")
        return score(logits)

    for by, batch_size in (("clean", 1), ("gradient", None)):
        runs.clear()
        runs += [1] * (by == "gradient")  # it runs the model only once more
        with pytest.raises(RuntimeError, match="in the middle"):
            patch(model, IDS, OTHER, metric=fails, source=by, batch_size=batch_size, progress=False)
        assert hook_state(model) == before


@pytest.mark.parametrize("each", ["head", "position", "head and position"])
def test_patched_pattern_multiplies_unpatched_values(each):
    model, _ = family("GPT-2")
    clean, corrupt = prompts("GPT-2")
    sites = [f"transformer.h.{layer}.attn" for layer in range(2)]
    with torch.no_grad(), look.capture(model, ["*.pattern", "*.value", "*.output_heads"]) as base:
        unpatched = score(call(model, corrupt))
    with torch.no_grad(), look.capture(model) as other:
        call(model, clean)
    table = patch(model, clean, corrupt, metric=score, sites="*.pattern", each=each, progress=False)
    heads, positions = range(4) if each != "position" else [None], range(6) if each != "head" else [None]
    expected = []
    for site, head, position in itertools.product(sites, heads, positions):
        weights = base[f"{site}.pattern"].clone()
        index = slice(None), slice(None) if head is None else head, slice(None) if position is None else position
        weights[index] = other[f"{site}.pattern"][index]
        outputs = weights @ base[f"{site}.value"]
        with torch.no_grad(), look.capture(model, [], edit={f"{site}.output_heads": lambda _, new=outputs: new}):
            expected.append(score(call(model, corrupt)) - unpatched)
    torch.testing.assert_close(table.values.flatten(), torch.stack(expected), rtol=1e-5, atol=1e-5)
    assert table.values.abs().max() > 1e-3
    assert table.axes["layer"] == ["0", "1"]


@pytest.mark.parametrize(("name", "by"), one_at_a_time(["GPT-2", "Llama", "GPT"], BY))
def test_patched_patterns_equal_patterns_pasted_by_hand(name, by):
    """Of each `by`, to 1e-6, by a function of one's own and by `edits.paste`."""
    model, _ = family(name, torch.float64)
    clean, corrupt = prompts(name)
    table = patch(model, clean, corrupt, metric=score, sites="*.pattern", source=by, progress=False)
    runs = {}
    for run_of, prompt in (("clean", clean), ("corrupt", corrupt)):
        with torch.no_grad(), look.capture(model) as runs[run_of]:
            call(model, prompt)
    base = corrupt if by in ("clean", "gradient") else clean
    site = list(runs["clean"])[1]
    own = runs["clean"][site]
    shift = int(torch.randint(1, TEXTS, (), generator=torch.Generator().manual_seed(0)))
    means = own.mean(0, keepdim=True).expand_as(own)
    source = {"corrupt": runs["corrupt"][site], "zero": own * 0, "mean": means, "resample": own.roll(shift, 0)}
    pasted = source.get(by, own)

    def by_hand(weights):
        weights = weights.clone()
        weights[:, 2] = pasted[:, 2].to(weights)
        return weights

    with torch.no_grad():
        unpatched = score(call(model, base))
        changes = []
        for edit in (by_hand, look.edits.paste(pasted, head=2)):
            with look.capture(model, [], edit={site: edit}):
                changes.append((score(call(model, base)) - unpatched).item())
    assert changes[0] == pytest.approx(changes[1], abs=1e-6)
    assert by == "gradient" or table["1", "2"] == pytest.approx(changes[0], rel=1e-5, abs=1e-6)
    assert abs(changes[0]) > 1e-4


def test_path_to_pattern_matches_path_to_query_and_key():
    """As it does at the query and the key from which the pattern is computed."""
    model, _ = family("GPT-2")
    given = {"metric": score, "progress": False}
    site = "transformer.h.1.attn"
    whole = study.patch_path(
        model, *prompts("GPT-2"), receivers={f"{site}.{part}": 2 for part in ("query", "key")}, **given
    )
    found = study.patch_path(model, *prompts("GPT-2"), receivers={f"{site}.pattern": 2}, **given)
    torch.testing.assert_close(found.values, whole.values, rtol=1e-4, atol=1e-5)
    assert found.values.abs().max() > 1e-3


def joined_heads(model, batch):
    """What the first layer's output projection takes, [text, position, head * dim]."""
    return recorded(model, batch, "model.layers.0.self_attn.o_proj", "input")


def test_mean_excludes_padding():
    model, batch = build(*FAMILIES["Llama"][:2]), {"input_ids": IDS, "attention_mask": MASK}
    metric = study.logit_difference(5, 6, position=MASK.sum(-1) - 1)
    found = patch(model, batch, source="mean", metric=metric, progress=False).values[0]
    heads, words = joined_heads(model, batch), MASK[:, :, None]
    mean = (heads * words).sum(0) / words.sum(0)

    def without(head):
        def change(tensor):
            changed = tensor.clone().unflatten(-1, (4, -1))
            changed[:, :, head] = mean.unflatten(-1, (4, -1))[:, head]
            return changed.flatten(-2)

        return metric(run(model, batch, "model.layers.0.self_attn.o_proj", change))

    expected = torch.stack([without(head) for head in range(4)]) - metric(call(model, batch))
    assert torch.allclose(found, expected, atol=1e-5)


def test_mean_keeps_positions_of_padding_alone():
    model, mask = build(*FAMILIES["Llama"][:2]), MASK.clone()
    mask[:, 5] = 0
    batch = {"input_ids": IDS, "attention_mask": mask}
    table = patch(model, batch, source="mean", metric=lambda logits: logits[:, 5, 3].sum(), each="head and position",
                  progress=False)  # fmt: skip
    assert table.values[..., 5].abs().max() < 1e-5


def test_resampling_padded_texts_raises():
    model = build(*FAMILIES["Llama"][:2])
    with pytest.raises(ValueError, match="source='resample' would put activations of padding"):
        patch(model, {"input_ids": IDS, "attention_mask": MASK}, source="resample", metric=study.logit(3, position=0))
    whole = {"input_ids": IDS, "attention_mask": torch.ones_like(MASK)}
    assert patch(model, whole, source="resample", metric=study.logit(3), progress=False).values.abs().max() > 0


@pytest.mark.parametrize(
    ("by", "each"), one_at_a_time(["clean", "corrupt", "zero", "resample", "gradient"], ["head", "head and position"])
)
def test_subset_of_heads_matches_full_sweep(by, each):
    model = build(*FAMILIES["GPT-2"][:2])
    call = {"metric": score, "source": by, "each": each, "progress": False}
    whole = study.patch(model, IDS, OTHER, **call)
    chosen = {"transformer.h.1.*output_heads": [3, 1], "transformer.h.0.*output_heads": [1]}
    some = study.patch(model, IDS, OTHER, sites=chosen, **call)
    assert some.axes["head"] == ["1", "3"]
    torch.testing.assert_close(some.values[:, 0], whole.values[:, 1], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(some.values[1, 1], whole.values[1, 3], rtol=1e-4, atol=1e-6)
    assert some.values[0, 1].isnan().all()


@pytest.mark.parametrize("by", ["clean", "zero", "mean", "gradient"])
def test_subset_of_positions_matches_full_sweep(by):
    model, words = build(*FAMILIES["Llama"][:2]), list("abcdef")
    call = {"metric": score, "source": by, "progress": False}
    for sites, each, size in (("model.layers.?", "position", 6), (None, "head and position", 6)):
        whole = study.patch(model, IDS, OTHER, sites=sites, each=each, tokens=words, **call)
        for names in (words, ["f", "b"]):
            some = study.patch(model, IDS, OTHER, sites=sites, each=each, positions=[-1, 1], tokens=names, **call)
            assert some.axes["position"] == ["f", "b"]
            torch.testing.assert_close(some.values, whole.values[..., [size - 1, 1]], rtol=1e-4, atol=1e-6)
    for positions in ([5], [-1], [-1, 5]):  # without words, the number from the beginning; each position once
        plain = study.patch(model, IDS, OTHER, each="head and position", positions=positions, **call)
        assert plain.axes["position"] == ["5"]


def test_chosen_positions_are_patched_together():
    model = build(*FAMILIES["GPT-2"][:2])
    site, positions = "transformer.h.0.attn.output_heads", [4, 2]
    with look.capture(model, site) as seen, torch.no_grad():
        model(IDS)
    source = seen[site]
    with torch.no_grad():
        unpatched = score(model(OTHER).logits)
        with look.capture(model, [], edit={site: look.edits.paste(source, 2, positions)}):
            expected = score(model(OTHER).logits) - unpatched
    call = {"metric": score, "positions": positions, "progress": False}
    found = study.patch(model, IDS, OTHER, **call)
    assert list(found.axes) == ["layer", "head"]
    assert found["0", "2"] == pytest.approx(expected.item(), rel=1e-4, abs=1e-6)
    everything = study.patch(model, IDS, OTHER, **call | {"positions": range(6)})
    torch.testing.assert_close(everything.values, study.patch(model, IDS, OTHER, metric=score, progress=False).values)


def test_resume_rejects_other_heads_or_positions(tmp_path):
    model, file = build(*FAMILIES["GPT-2"][:2]), tmp_path / "sweep.safetensors"
    call = {"metric": score, "progress": False, "resume": file}
    study.patch(model, IDS, OTHER, sites={"*.output_heads": [0, 1]}, positions=[1], **call)
    for heads, position in (([1, 2], 1), ([0, 1], 2)):
        with pytest.raises(ValueError, match="holds results of another"):
            study.patch(model, IDS, OTHER, sites={"*.output_heads": heads}, positions=[position], **call)

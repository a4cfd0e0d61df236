"""Path patching compared with a reference of plain hooks that freezes all heads and changes one."""

import pytest
import torch
from small_transformers import small_model

from tfviz import study

LAYERS, HEADS, DIM = 3, 4, 6


@pytest.fixture(scope="module")
def gpt2():
    model = small_model("GPT2LMHeadModel", vocab_size=50, std=0.7, seed=1, n_layer=LAYERS)
    return model.double()  # what goes by a single path is small


CLEAN = torch.randint(3, 50, (2, 7), generator=torch.Generator().manual_seed(1))
CORRUPT = torch.where(torch.arange(7) == 2, (CLEAN + 5) % 50, CLEAN)
METRIC = study.logit_difference([3, 4], [5, 6])


def run(model, ids, outputs=None, part=None, layer=2):
    """Logits, the joined outputs of heads by layer, and q, k, v of a layer; `outputs` and `part` replace them."""
    seen, hooks = {}, []

    def before_projection(number):
        def hook(_, args):
            seen[number] = args[0].clone()
            return None if outputs is None else (outputs[number],)

        return hook

    def after_qkv(_, args, qkv):
        seen["qkv"] = qkv.clone()
        if part is None:
            return None
        columns, values = part
        edited = qkv.clone()
        edited[..., columns] = values
        return edited

    for number, block in enumerate(model.transformer.h):
        hooks.append(block.attn.c_proj.register_forward_pre_hook(before_projection(number)))
    hooks.append(model.transformer.h[layer].attn.c_attn.register_forward_hook(after_qkv))
    with torch.no_grad():
        logits = model(ids).logits
    for hook in hooks:
        hook.remove()
    return logits, seen


def reference(model, base, other, layer=2, part=None, head=1):
    """Layer x head: the change of the metric through q, k or v of a head, or straight to the logits."""
    plain, kept = run(model, base, layer=layer)
    source = run(model, other, layer=layer)[1]
    changes = torch.zeros(LAYERS, HEADS)
    for number in range(LAYERS):
        for sender in range(HEADS):
            outputs = {other: kept[other].clone() for other in range(LAYERS)}
            columns = slice(sender * DIM, (sender + 1) * DIM)
            outputs[number][..., columns] = source[number][..., columns]
            logits, seen = run(model, base, outputs, layer=layer)
            if part is not None:
                features = {"query": 0, "key": 1, "value": 2}[part] * HEADS * DIM + head * DIM
                features = slice(features, features + DIM)
                logits, _ = run(model, base, None, (features, seen["qkv"][..., features]), layer)
            changes[number, sender] = METRIC(logits) - METRIC(plain)
    return changes


@pytest.mark.parametrize("by", ["clean", "corrupt"])
@pytest.mark.parametrize("part", [None, "query", "key", "value"])
def test_patch_path_matches_reference(gpt2, by, part):
    base, other = (CORRUPT, CLEAN) if by == "clean" else (CLEAN, CORRUPT)
    expected = reference(gpt2, base, other, part=part)
    receivers = None if part is None else {f"transformer.h.2.attn.{part}": 1}
    table = study.patch_path(gpt2, CLEAN, CORRUPT, metric=METRIC, receivers=receivers, source=by, progress=False)
    assert expected.abs().max() > 1e-4
    torch.testing.assert_close(table.values, expected, rtol=1e-3, atol=1e-7)
    assert list(table.axes) == ["layer", "head"]


def test_only_earlier_layers_reach_a_receiver(gpt2):
    expected = reference(gpt2, CLEAN, CORRUPT, layer=1, part="value", head=3)
    for batch_size in (None, 2):
        table = study.patch_path(
            gpt2, CLEAN, CORRUPT, metric=METRIC, receivers={"transformer.h.1.attn.value": 3}, progress=False,
            batch_size=batch_size,
        )  # fmt: skip
        torch.testing.assert_close(table.values, expected, rtol=1e-3, atol=1e-7)
    assert not table.values[1:].any()
    assert table.values[0].abs().max() > 1e-4


@pytest.mark.parametrize("receivers", [None, "transformer.h.2.attn.query"])
def test_patch_path_runs_each_prompt_once(gpt2, receivers):
    runs = []
    handle = gpt2.register_forward_pre_hook(lambda *_: runs.append(1))
    call = {"metric": METRIC, "receivers": receivers, "progress": False}
    study.patch_path(gpt2, CLEAN, CORRUPT, **call)
    handle.remove()
    patches = LAYERS if receivers is None else 2 * (LAYERS - 1)  # one run for the heads of a layer, or two
    assert len(runs) == 2 + patches


def test_only_frozen_modules_are_held_fixed(gpt2):
    """Only the heads are held, so that what a network changes in the next network arrives, too."""
    call = {"metric": METRIC, "senders": "transformer.h.?.mlp", "progress": False}
    free = study.patch_path(gpt2, CLEAN, CORRUPT, **call).values
    held = study.patch_path(gpt2, CLEAN, CORRUPT, frozen=["*.output_heads", "*.mlp"], **call).values
    torch.testing.assert_close(free[-1], held[-1])
    assert not torch.allclose(free[:-1], held[:-1], atol=1e-3)


def test_several_receivers_combine_their_effects(gpt2):
    query, value = ({f"transformer.h.2.attn.{part}": 1} for part in ("query", "value"))
    tables = [
        study.patch_path(gpt2, CLEAN, CORRUPT, metric=METRIC, receivers=receivers, progress=False).values
        for receivers in (query, value, query | value)
    ]
    assert not torch.allclose(tables[2], tables[0])
    assert not torch.allclose(tables[2], tables[1])


def test_receiver_that_also_sends_stays_unfrozen(gpt2):
    _, kept = run(gpt2, CLEAN)
    plain, source = METRIC(run(gpt2, CLEAN)[0]), run(gpt2, CORRUPT)[1]
    own = slice(DIM, 2 * DIM)  # head 1 of layer 2
    expected = torch.zeros(LAYERS, HEADS)
    for number in range(LAYERS - 1):
        for sender in range(HEADS):
            outputs = {other: kept[other].clone() for other in range(LAYERS)}
            columns = slice(sender * DIM, (sender + 1) * DIM)
            outputs[number][..., columns] = source[number][..., columns]
            arrived = run(gpt2, CLEAN, outputs)[1][2]  # before it is replaced
            last = kept[2].clone()
            last[..., own] = arrived[..., own]
            expected[number, sender] = METRIC(run(gpt2, CLEAN, {0: kept[0], 1: kept[1], 2: last})[0]) - plain
    call = {"metric": METRIC, "receivers": {"transformer.h.2.attn.output_heads": 1}, "progress": False}
    found = study.patch_path(gpt2, CLEAN, CORRUPT, **call).values
    assert expected.abs().max() > 1e-4
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-7)
    earlier = study.patch_path(gpt2, CLEAN, CORRUPT, senders="transformer.h.[01].attn.output_heads", **call).values
    torch.testing.assert_close(earlier, found[:2])


@pytest.mark.parametrize("frozen", ["*.output_heads", ["*.output_heads", "*.mlp"]])
def test_mlp_receives_from_earlier_mlps_only(gpt2, frozen):
    call = {"metric": METRIC, "receivers": "transformer.h.2.mlp", "frozen": frozen, "progress": False}
    found = study.patch_path(gpt2, CLEAN, CORRUPT, senders="*.mlp", **call).values
    earlier = study.patch_path(gpt2, CLEAN, CORRUPT, senders="transformer.h.[01].mlp", **call).values
    assert earlier.abs().amax(1).min() > 1e-4
    torch.testing.assert_close(found[:2], earlier)
    assert not found[2].any()


def test_other_heads_of_a_receiver_stay_frozen(gpt2):
    """What they would pass on to a later receiver is another path."""
    first, last = {"transformer.h.1.attn.output_heads": 0}, {"transformer.h.2.attn.query": 1}
    call = {"metric": METRIC, "senders": "transformer.h.0.attn.output_heads", "progress": False}
    alone = study.patch_path(gpt2, CLEAN, CORRUPT, receivers=first, **call).values
    both = study.patch_path(gpt2, CLEAN, CORRUPT, receivers=first | last, **call).values
    _, kept = run(gpt2, CLEAN)
    plain, source = METRIC(run(gpt2, CLEAN)[0]), run(gpt2, CORRUPT)[1]
    expected = torch.zeros(1, HEADS)
    features = slice(DIM, 2 * DIM)  # the queries of head 1
    for sender in range(HEADS):
        columns = slice(sender * DIM, (sender + 1) * DIM)
        outputs = {number: kept[number].clone() for number in range(LAYERS)}
        outputs[0][..., columns] = source[0][..., columns]
        outputs[1][..., :DIM] = run(gpt2, CLEAN, outputs)[1][1][..., :DIM]
        query = run(gpt2, CLEAN, outputs)[1]["qkv"][..., features]
        received = {number: kept[number] for number in (0, 1)} | {1: outputs[1]}
        hook_free = run(gpt2, CLEAN, received | {2: _free(gpt2, received, features, query)}, (features, query))[0]
        expected[0, sender] = METRIC(hook_free) - plain
    torch.testing.assert_close(both, expected, rtol=1e-3, atol=1e-7)
    assert not torch.allclose(both, alone)


def _free(model, received, features, query):
    """The outputs of the heads of layer 2 as they come of these."""
    _, kept = run(model, CLEAN)
    return run(model, CLEAN, received | {2: kept[2]}, (features, query))[1][2]


def test_frozen_mlps_give_the_direct_effect(gpt2):
    """Straight to the logits with networks frozen, too: the direct effect through the last norm."""
    table = study.patch_path(gpt2, CLEAN, CORRUPT, metric=METRIC, frozen=["*.output_heads", "*.mlp"], progress=False)
    open_table = study.patch_path(gpt2, CLEAN, CORRUPT, metric=METRIC, progress=False)
    assert not torch.allclose(table.values[0], open_table.values[0], atol=1e-3)
    _, kept = run(gpt2, CLEAN)
    _, source = run(gpt2, CORRUPT)
    with torch.no_grad():
        streams = gpt2(CLEAN, output_hidden_states=True)
        seen = []
        handle = gpt2.transformer.ln_f.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
        gpt2(CLEAN)
        handle.remove()
        (stream,) = seen
        for layer, block in enumerate(gpt2.transformer.h):
            for head in range(HEADS):
                columns = slice(head * DIM, (head + 1) * DIM)
                change = (source[layer] - kept[layer])[..., columns] @ block.attn.c_proj.weight[columns]
                logits = gpt2.lm_head(gpt2.transformer.ln_f(stream + change))
                expected = METRIC(logits) - METRIC(streams.logits)
                torch.testing.assert_close(table.values[layer, head].double(), expected, rtol=1e-4, atol=1e-6)


RECEIVER = {"transformer.h.2.attn.query": [1, 3]}


@pytest.mark.parametrize("each", [None, "head and position"])
@pytest.mark.parametrize("receivers", [None, RECEIVER])
def test_subset_of_senders_matches_full_sweep(gpt2, receivers, each):
    call = {"metric": METRIC, "receivers": receivers, "each": each, "progress": False}
    whole = study.patch_path(gpt2, CLEAN, CORRUPT, **call)
    senders = {"transformer.h.0.attn.output_heads": [3, 1], "transformer.h.1.attn.output_heads": 2}
    some = study.patch_path(gpt2, CLEAN, CORRUPT, senders=senders, **call)
    assert some.axes["layer"] == ["0", "1"]
    assert some.axes["head"] == ["1", "2", "3"]
    for layer, head, is_sender in [(0, 1, 1), (0, 2, 0), (0, 3, 1), (1, 1, 0), (1, 2, 1), (1, 3, 0)]:
        found = torch.as_tensor(some[str(layer), str(head)])
        expected = torch.as_tensor(whole[str(layer), str(head)]) if is_sender else torch.full_like(found, torch.nan)
        torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-4, atol=1e-7)
    globbed = study.patch_path(gpt2, CLEAN, CORRUPT, senders={"*.output_heads": {1}}, **call)
    torch.testing.assert_close(globbed.values[:, 0], whole.values[:, 1], rtol=1e-4, atol=1e-7)


def test_path_table_names_senders_and_receivers(gpt2):
    call = {"metric": METRIC, "progress": False}
    found = study.patch_path(gpt2, CLEAN, CORRUPT, receivers=RECEIVER, **call)
    assert found.title == (
        "Change when the corrupt run's activations are put into the clean run by way of transformer.h.2.attn.query "
        "(heads 1, 3)"
    )
    assert found.notes["receivers"] == RECEIVER
    assert found.notes["senders"] == {f"transformer.h.{layer}.attn.output_heads": None for layer in range(3)}
    senders = {"transformer.h.1.attn.output_heads": 2}
    found = study.patch_path(gpt2, CLEAN, CORRUPT, senders=senders, **call)
    assert found.title == (
        "Change when the corrupt run's activations of transformer.h.1.attn.output_heads (head 2) are put into the "
        "clean run, on the direct path"
    )
    assert found.notes["receivers"] is None
    assert found.notes["senders"] == {"transformer.h.1.attn.output_heads": [2]}

"""The page's engine matches torch: outputs, attention maps and edits of our models and of Hugging Face's."""

from contextlib import suppress
from functools import partial

import pytest
import small_models
import torch

from tfviz import look, models, portable
from tfviz.layers import masks, positions

pytest_plugins = ["node", "engine"]
SMALL = {"layers": 2, "heads": 3, "dim": 12}
gpt = partial(small_models.gpt, std=None, dim=12, context=16)
NEAR = {"float32": 1e-4, "float16": 2e-2}


def ids(*shape, vocab_size=11):
    return torch.randint(1, vocab_size, shape, generator=torch.Generator().manual_seed(3))


WORDS = {"ids": {1: "words"}}
SYSTEMS = {  # name -> what makes it, an example, which lengths may change, other inputs of other lengths
    "self-attention": (
        lambda: models.SelfAttention(),
        [torch.randn(2, 5, 7)],
        {"x": {1: "words"}},
        [torch.randn(2, 3, 7)],
    ),
    "gpt": (gpt, [ids(2, 7)], WORDS, [ids(2, 12)]),
    "gpt, rotary": (lambda: gpt(positions=positions.Rotary), [ids(2, 7)], WORDS, [ids(2, 11)]),
    "gpt, alibi": (lambda: gpt(positions=positions.ALiBi), [ids(2, 7)], WORDS, [ids(2, 11)]),
    "gpt, window": (lambda: gpt(mask=masks.window(3) & masks.causal), [ids(2, 7)], WORDS, [ids(2, 9)]),
    "sparse": (lambda: models.SparseTransformer(11, stride=4, context=16, **SMALL), [ids(2, 8)], WORDS, [ids(2, 13)]),
    "classifier": (lambda: models.Classifier(11, 4, context=16, **SMALL), [ids(2, 7)], WORDS, [ids(2, 5)]),
    "bert": (lambda: models.BERT(11, context=16, **SMALL), [ids(2, 7)], WORDS, [ids(2, 9)]),
    "transformer": (
        lambda: models.Transformer(11, 13, context=16, **SMALL),
        [ids(2, 7), ids(2, 5)],
        {"source": {1: "source"}, "target": {1: "target"}},
        [ids(2, 4), ids(2, 6)],
    ),
    "transformer-xl": (lambda: models.TransformerXL(11, **SMALL), [ids(2, 7)], {}, []),
    "convolution": (lambda: models.ConvLM(11, layers=2, dim=12), [ids(2, 7)], {}, []),
    "rnn": (lambda: models.RecurrentLM(11, hidden=6), [ids(2, 5)], {}, []),
    "seq2seq": (lambda: models.Seq2Seq(11, 13, hidden=6), [ids(2, 5), ids(2, 4)], {}, []),
    "recommender": (
        lambda: models.Recommender(9, 8, dim=5),
        [ids(6, vocab_size=9), ids(6, vocab_size=8)],
        {"users": {0: "ratings"}, "movies": {0: "ratings"}},
        [ids(3, vocab_size=9), ids(3, vocab_size=8)],
    ),
    "pytorch's encoder": (
        lambda: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(12, 2, 20, batch_first=True), 2),
        [torch.randn(2, 5, 12)],
        {},
        [],
    ),
    "lstm": (lambda: torch.nn.LSTM(5, 7, 2, bidirectional=True), [torch.randn(4, 2, 5)], {}, []),
}


def assert_near(given, wanted, limit):
    wanted = wanted.detach().float()
    torch.testing.assert_close(given.float(), wanted, atol=limit, rtol=limit, equal_nan=True)


def tensors(made):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(made) if isinstance(leaf, torch.Tensor)]


def check(page_engine, model, example, lengths, others, kind="float32"):
    model.eval()
    program = portable.export(model, *example, lengths=lengths, dtype=kind)
    page_engine.load(model=program)
    for inputs in filter(None, (example, others)):
        with torch.no_grad(), suppress(LookupError), look.capture(model, "*") as seen:
            wanted = model(*inputs)
        outputs, maps = page_engine.run("model", dict(zip(program.inputs, inputs)), capture=True)
        for given, one in zip(outputs.values(), tensors(wanted), strict=True):
            assert_near(given, one, NEAR[kind])
        known = [site for site in seen if site.endswith("pattern")]
        assert sorted(maps) == sorted(known)
        for site in known:
            assert_near(
                torch.cat(maps[site]).reshape(-1), torch.cat(list(seen.over_time(site))).reshape(-1), NEAR[kind]
            )
        reference = program(*inputs)
        for given, one in zip(reference.values(), tensors(wanted), strict=True):
            assert_near(given, one, NEAR[kind])


@pytest.mark.parametrize("system", SYSTEMS)
def test_engine_matches_torch(system, page_engine):
    make, *rest = SYSTEMS[system]
    torch.manual_seed(5)
    check(page_engine, make(), *rest)


def test_float16_weights_match_torch_approximately(page_engine):
    check(page_engine, gpt(), [ids(2, 7)], WORDS, [ids(2, 12)], "float16")


@pytest.fixture(scope="module")
def small():
    return gpt()


@pytest.fixture(scope="module")
def program(small):
    return portable.export(small, ids(1, 5), lengths=WORDS)


def test_int8_weights_match_the_program_in_python(small, page_engine):
    program = portable.export(small, ids(1, 5), lengths=WORDS, dtype="int8")
    kinds = {name: tensor.dtype for name, tensor in program.tensors.items()}
    assert kinds["blocks.0.feed_forward.0.weight"] == torch.int8
    page_engine.load(model=program)
    for text in (ids(1, 7), ids(1, 12)):
        outputs, _ = page_engine.run("model", {"ids": text})
        assert_near(outputs["output"], program(text)["output"], 1e-4)
        assert not torch.allclose(outputs["output"], small(text), atol=1e-4)


EDITS = {  # what the page is told, and the same in Python
    "a head gives nothing": ({"kind": "zero", "head": 1}, look.edits.zero(1)),
    "all heads look evenly": ({"kind": "uniform"}, look.edits.uniform()),
    "a head looks evenly": ({"kind": "uniform", "head": 2}, look.edits.uniform(2)),
    "a cell is hidden": ({"kind": "hide", "head": 0, "cells": [[4, 1]]}, look.edits.hide([(4, 1)], 0)),
    "a key is hidden": ({"kind": "hide", "cells": [[None, 1]]}, look.edits.hide([(None, 1)])),
    "all a query may see is hidden": (
        {"kind": "hide", "cells": [[0, 0], [3, None]]},
        look.edits.hide([(0, 0), (3, None)]),
    ),
    "a forbidden cell is pinned": ({"kind": "pin", "cells": [[2, 4]], "weight": 0.25}, look.edits.pin([(2, 4)], 0.25)),
    "all of a row is pinned": (
        {"kind": "pin", "cells": [[2, None], [2, 1]], "weight": 1 / 7},
        look.edits.pin([(2, None)], 1 / 7),
    ),
    "a weight is pinned": (
        {"kind": "pin", "head": 1, "cells": [[5, 2]], "weight": 0.7},
        look.edits.pin([(5, 2)], 0.7, 1),
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits_match_capture(edit, small, program, page_engine):
    told, change = EDITS[edit]
    text, site = ids(1, 7), "blocks.1.attention.pattern"
    page_engine.load(model=program)
    with torch.no_grad(), look.capture(small, "*.pattern", edit={site: change}) as seen:
        wanted = small(text)
    outputs, maps = page_engine.run("model", {"ids": text}, capture=True, edits=[{"site": site, **told}])
    assert_near(outputs["output"], wanted, 1e-4)
    assert_near(maps[site][0], seen[site], 1e-4)
    assert_near(program(text, edit={site: change})["output"], wanted, 1e-4)
    plain, _ = page_engine.run("model", {"ids": text})
    assert not torch.allclose(plain["output"], wanted, atol=1e-3)


@pytest.mark.parametrize(
    ("cells", "weight", "says"),
    [([[5, 1], [5, 2]], 0.7, "more than 1"), ([[None, 0]], 0.5, "no other"), ([[4, None]], 0.1, "no other")],
)
def test_invalid_pin_raises_in_engine_and_capture(cells, weight, says, small, program, page_engine):
    site = "blocks.1.attention.pattern"
    page_engine.load(model=program)
    with pytest.raises(RuntimeError, match=says):
        page_engine.run(
            "model", {"ids": ids(1, 7)}, edits=[{"site": site, "kind": "pin", "cells": cells, "weight": weight}]
        )
    change = look.edits.pin([tuple(cell) for cell in cells], weight)
    with torch.no_grad(), pytest.raises(ValueError, match=says), look.capture(small, [], edit={site: change}):
        small(ids(1, 7))


def test_run_returns_only_watched_patterns(program, page_engine):
    page_engine.load(model=program)
    assert page_engine.run("model", {"ids": ids(1, 6)})[1] == {}
    one = "blocks.0.attention.pattern"
    assert list(page_engine.run("model", {"ids": ids(1, 6)}, capture=[one])[1]) == [one]


def test_repeated_runs_of_changing_lengths_match_torch(small, program, page_engine):
    page_engine.load(model=program)
    for length in (3, 9, 16, 1, 9, 3):
        assert_near(page_engine.run("model", {"ids": ids(1, length)})[0]["output"], small(ids(1, length)), 1e-4)


def test_invalid_runs_raise(program, page_engine):
    page_engine.load(model=program)
    for inputs, said in [
        ({"ids": ids(1, 17)}, "there are 17 words; this model takes 1 to 16 words"),
        ({"ids": ids(2, 3)}, r"ids has the shape \[2,3\]; this program was made for \[1,words\]"),
        ({}, "the input ids is missing"),
    ]:
        with pytest.raises(RuntimeError, match=said):
            page_engine.run("model", inputs)
    with pytest.raises(RuntimeError, match=r"there is no attention at blocks.9.attention.pattern; there is blocks.0"):
        page_engine.run("model", {"ids": ids(1, 3)}, edits=[{"site": "blocks.9.attention.pattern", "kind": "zero"}])
    with pytest.raises(RuntimeError, match="there is no program other; there are model"):
        page_engine.run("other", {})
    assert page_engine.run("model", {"ids": ids(1, 3)})[0]["output"].shape == (1, 3, 11)  # it still answers


OTHERS = {  # name -> class, what makes a function of the model, an example, which lengths may change, other inputs
    "gpt2": (
        "GPT2LMHeadModel", lambda model: lambda ids: model(ids, use_cache=False).logits,
        [ids(1, 7)], WORDS, [ids(1, 12)],
    ),
    "llama": (
        "LlamaForCausalLM", lambda model: lambda ids: model(ids, use_cache=False).logits,
        [ids(1, 7)], WORDS, [ids(1, 12)],
    ),
    "bert": ("BertModel", lambda model: lambda ids: model(ids).last_hidden_state, [ids(1, 7)], WORDS, [ids(1, 4)]),
    "t5": (
        "T5ForConditionalGeneration",
        lambda model: lambda source, target: model(
            input_ids=source, decoder_input_ids=target, use_cache=False
        ).logits,
        [ids(1, 7), ids(1, 5)], {"source": {1: "source"}, "target": {1: "target"}}, [ids(1, 4), ids(1, 6)],
    ),
    "vit": (
        "ViTModel", lambda model: lambda pixels: model(pixels).last_hidden_state, [torch.randn(1, 3, 8, 8)], {}, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_hugging_face_model_matches_torch(name, page_engine):
    from small_transformers import small_model

    kind, make, example, lengths, more = OTHERS[name]
    model = small_model(kind)
    function = make(model)
    program = portable.export(function, *example, lengths=lengths)
    page_engine.load(model=program)
    for inputs in filter(None, (example, more)):
        with torch.no_grad(), look.capture(model, "*.pattern") as seen:
            wanted = function(*inputs)
        outputs, maps = page_engine.run("model", dict(zip(program.inputs, inputs)), capture=True)
        assert_near(outputs["output"], wanted, 1e-4)
        assert sorted(maps) == sorted(seen)
        for site in seen:
            assert_near(torch.cat(maps[site]), seen[site], 1e-4)

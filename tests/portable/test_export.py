"""`portable.export`: program specs, files, quantization, and models that cannot be exported."""

import json
import sys
from functools import partial

import pytest
import small_models
import torch
from torch import nn

from tfviz import files, models, portable
from tfviz.layers import masks, positions
from tfviz.portable.language_model import export_language_model
from tfviz.portable.program import quantize, serialize_programs
from tfviz.portable.symbolic_sizes import bind_dims, encode_size, evaluate_size

POSITIONS = {"ids": {1: "positions"}}


def ids(*shape, vocab_size=11):
    return torch.randint(1, vocab_size, shape, generator=torch.Generator().manual_seed(3))


gpt = partial(small_models.gpt, std=None, dim=12, context=16)


@pytest.fixture(scope="module")
def program():
    return portable.export(gpt(), ids(1, 5), lengths=POSITIONS)


def test_program_spec_describes_inputs_outputs_and_sites(program):
    assert program.name == "GPT"
    assert program.inputs == ["ids"]
    assert program.outputs == ["output"]
    assert program.spec["inputs"] == [{"name": "ids", "shape": [1, "positions"], "dtype": "int64"}]
    assert program.spec["lengths"] == {"positions": [1, 16]}
    assert program.sites == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
    assert set(program.operations) <= portable.SUPPORTED_OPERATORS
    assert "linear" in program.operations
    assert "scaled_dot_product_attention" in program.operations
    assert json.loads(json.dumps(program.spec)) == program.spec
    assert program.spec["nodes"][-1]["out"] == [[1, "positions", 11]]


def test_weights_keep_names_and_tied_weights_are_stored_once(program):
    names = dict(gpt().named_parameters())
    assert set(program.tensors) == set(names)
    assert program.nbytes == 4 * sum(one.numel() for one in names.values())


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_non_finite_constants_round_trip(value, tmp_path):
    x = torch.tensor([-1.0, 2.0])
    made = portable.export(lambda x: x.masked_fill(x > 0, value), x)
    json.loads(json.dumps(made.spec, allow_nan=False))
    opened = portable.Program.load(made.save(tmp_path / "fill.safetensors"))
    torch.testing.assert_close(opened(x)["output"], torch.tensor([-1.0, value]), equal_nan=True)


def test_export_is_deterministic(program, tmp_path):
    again = portable.export(gpt(), ids(1, 5), lengths=POSITIONS)
    one, other = program.save(tmp_path / "one.safetensors"), again.save(tmp_path / "other.safetensors")
    assert one.read_bytes() == other.read_bytes()


def test_saved_program_round_trips(program, tmp_path):
    opened = portable.Program.load(program.save(tmp_path / "gpt.safetensors"))
    assert opened.spec == program.spec
    assert torch.equal(opened(ids(1, 9))["output"], program(ids(1, 9))["output"])


def test_load_rejects_other_files(tmp_path):
    files.save_tensors(tmp_path / "x", {"a": torch.ones(2)})
    with pytest.raises(ValueError, match="holds no program"):
        portable.Program.load(tmp_path / "x")
    files.save_tensors(tmp_path / "y", {}, {"program": json.dumps({"format": "tfviz/program/9"})})
    with pytest.raises(ValueError, match="format 'tfviz/program/9'; this tfviz reads 'tfviz/program/1'"):
        portable.Program.load(tmp_path / "y")


def test_export_leaves_model_unchanged():
    model = gpt(dropout=0.5).train()
    model.blocks[1].eval()
    before = {name: one.clone() for name, one in model.state_dict().items()}
    portable.export(model, ids(1, 5))
    assert model.training
    assert model.blocks[0].training
    assert not model.blocks[1].training
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_function_is_exported_with_its_enclosed_model():
    inner = gpt()
    program = portable.export(lambda ids: inner(ids).softmax(-1), ids(1, 5), lengths=POSITIONS)
    assert program.sites[:2] == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
    assert torch.allclose(program(ids(1, 8))["output"], inner(ids(1, 8)).softmax(-1), atol=1e-6)


def test_methods_and_multiple_outputs_are_exported():
    model = models.Transformer(11, 13, context=16, layers=1, heads=2, dim=8).eval()
    program = portable.export(model.encode, ids(1, 5), lengths={"source": {1: "source"}})
    assert program.outputs == ["states", "attention_mask"]
    wanted = model.encode(ids(1, 7))
    made = program(ids(1, 7))
    assert torch.allclose(made["states"], wanted.states, atol=1e-6)
    assert torch.equal(made["attention_mask"], wanted.attention_mask)
    both = portable.export(lambda x: {"sum": x.sum(), "parts": [x + 1, x.neg()]}, torch.ones(2, 3))
    assert both.outputs == ["sum", "parts.0", "parts.1"]


@pytest.mark.parametrize(("kind", "most"), [("float16", 2e-3), ("int8", 0.1)])
def test_reduced_precision_weights_match_approximately(program, kind, most):
    small = portable.export(gpt(), ids(1, 5), lengths=POSITIONS, dtype=kind)
    assert small.nbytes < program.nbytes * {"float16": 0.65, "int8": 0.55}[kind]
    assert (small(ids(1, 9))["output"] - program(ids(1, 9))["output"]).abs().max() < most


def test_quantize_int8_scales_each_row():
    rows = torch.tensor([[1.27, -0.64] * 64, [254.0, 0.0] * 64, [0.0, 0.0] * 64])
    kept, scale = quantize(rows, torch.int8)
    assert kept[:, 0].tolist() == [127, 127, 0]
    assert kept[0, 1] == -64
    assert torch.allclose(scale[:2, 0], torch.tensor([0.01, 2.0]))
    assert torch.allclose(kept * scale, rows, atol=1e-6)


def test_quantize_keeps_float32_beyond_float16_range():
    assert quantize(torch.full((30, 20), 1e6), torch.float16)[0].dtype == torch.float32
    assert quantize(torch.full((30, 20), -torch.inf), torch.float16)[0].dtype == torch.float16


def test_pack_stores_shared_weights_once():
    programs = export_language_model(gpt(), "float32")
    spec, data = serialize_programs(programs)
    assert set(spec) == {"read", "step"}
    assert len(data) < 1.05 * programs["read"].nbytes
    assert all(one["byte_range"][0] % 4 == 0 for program in spec.values() for one in program["weights"])


@pytest.mark.parametrize(
    "parts",
    [{}, {"positions": positions.Rotary}, {"positions": positions.ALiBi}, {"mask": masks.strided(3)}],
    ids=["learned", "rotary", "ALiBi", "strided"],
)
def test_step_program_continues_from_read_program(parts):
    model = gpt(**parts)
    programs, text = export_language_model(model, "float32"), ids(1, 9)
    assert [one.spec["lengths"] for one in programs.values()] == [{"positions": [1, 16]}, {"before": [1, 15]}]
    made = programs["read"](text[:, :6])
    for index in range(6, 9):
        kept = [made[name] for name in programs["step"].inputs[1:]]
        made = programs["step"](text[:, index : index + 1], *kept)
        assert torch.allclose(made["logits"], model(text)[:, index : index + 1], atol=1e-5)
    assert made["keys.0"].shape == (1, 3, 9, 4)


def data_dependent(x):
    return x * 2 if x.sum() > 0 else x


def loops_over_length(x):
    return sum(x[:, i] for i in range(x.shape[1]))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x + self.count


@pytest.mark.parametrize(
    ("error", "said", "give"),
    [
        (ValueError, "depends on the values of its input", lambda: portable.export(data_dependent, torch.ones(2, 3))),
        (ValueError, "depends on the values", lambda: portable.export(lambda x: x.nonzero(), torch.ones(3))),
        (ValueError, "depends on the values", lambda: portable.export(lambda x: x[: int(x[0])], torch.ones(3))),
        (ValueError, "'rows' cannot change",
         lambda: portable.export(loops_over_length, torch.ones(2, 3), lengths={"x": {1: "rows"}})),
        (ValueError, r"lacks 2 of the operations.*svd.*erfinv|lacks 2 .*erfinv.*svd",
         lambda: portable.export(lambda x: torch.linalg.svd(x)[1] + x[0].erfinv(), torch.rand(3, 3))),
        (ValueError, "depends on the values",
         lambda: portable.export(lambda x: torch.tensor(x[0].item()), torch.ones(3))),
        (ValueError, "the integer 2654435761 cannot be exported",
         lambda: portable.export(lambda x: x * 2654435761 % 64, torch.ones(3).long())),
        (ValueError, "the integer 1099511627776 cannot",
         lambda: portable.export(lambda x: x + torch.tensor([2**40]), torch.ones(1).long())),
        (ValueError, "changes a buffer", lambda: portable.export(Counter(), torch.ones(2))),
        (ValueError, "returns no tensor", lambda: portable.export(lambda x: None, torch.ones(2))),
        (ValueError, "complex numbers cannot be exported", lambda: portable.export(torch.fft.fft, torch.ones(4))),
        (TypeError, "scripted, traced or exported",
         lambda: portable.export(torch.jit.script(nn.Linear(2, 3)), torch.ones(2))),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_export_rejects_unsupported_models(error, said, give):
    with pytest.raises(error, match=said):
        give()


def test_program_rejects_invalid_lengths_and_sites(program):
    with pytest.raises(ValueError, match="'positions' is 17; this program takes 1 to 16"):
        program(ids(1, 17))
    with pytest.raises(LookupError, match="no site 'x' to edit; this program has blocks"):
        program(ids(1, 3), edit={"x": torch.zeros_like})


def test_length_specialized_at_one_starts_at_two():
    def alone(x):
        return x.neg() if x.shape[0] == 1 else x.sum(0, keepdim=True)

    program = portable.export(alone, torch.ones(3, 4), lengths={"x": {0: "rows"}})
    assert program.spec["lengths"] == {"rows": [2, None]}
    with pytest.raises(ValueError, match="'rows' is 1; this program takes 2 to any number"):
        program(torch.ones(1, 4))


def test_symbolic_sizes_encode_evaluate_and_bind():
    import sympy
    from torch.utils._sympy.functions import FloorDiv

    n, m = sympy.symbols("s0 s1", integer=True)
    names = {"s0": "positions", "s1": "rows"}
    made = encode_size(FloorDiv(n**2 + 3 * m, 2), names)
    assert evaluate_size(made, {"positions": 5, "rows": 4}) == (25 + 12) // 2
    assert evaluate_size(encode_size(sympy.Max(n, 7) - m, names), {"positions": 5, "rows": 4}) == 3
    with pytest.raises(NotImplementedError):
        encode_size(sympy.sin(n), names)
    with pytest.raises(LookupError):
        encode_size(sympy.Symbol("u0"), names)
    lengths = {}
    bind_dims((2, "positions", "positions"), (2, 5, 5), lengths, "x")
    assert lengths == {"positions": 5}
    with pytest.raises(ValueError, match=r"x has the shape \[2, 5, 6\]"):
        bind_dims((2, "positions", "positions"), (2, 5, 6), {}, "x")


def test_only_softmax_over_last_axis_is_a_site():
    scores = torch.randn(2, 3, 4, 5)
    assert portable.export(lambda x: x.softmax(-1) + x.softmax(3), scores).sites == ["pattern", "pattern"]
    assert portable.export(lambda x: x.softmax(1) + x[0, 0].softmax(-1), scores).sites == []


def test_in_place_operations_match_torch():
    """A sum in place is seen through a view that was taken before; such a graph is written anew."""

    def function(x):
        y = x * 2
        first = y[0]
        y.add_(1)
        y[:, 1] = 0.0
        return first + y.sum(0)

    x = torch.randn(3, 4)
    program = portable.export(function, x, lengths={"x": {0: "rows"}})
    assert not any(name.endswith("_") or "_." in name for name in program.operations)
    longer = torch.randn(5, 4)
    torch.testing.assert_close(program(longer)["output"], function(longer))


def test_active_dropout_raises_and_inactive_dropout_is_removed():
    with pytest.raises(ValueError, match="the page's engine lacks"):
        portable.export(lambda x: nn.functional.dropout(x, 0.5), torch.ones(2, 3))
    kept = portable.export(lambda x: nn.functional.dropout(x, 0.5, training=False) + 1, torch.ones(2, 3))
    assert kept.operations == ["add.Tensor"]


def test_unused_operations_are_removed():
    def function(x):
        x.exp().sum()
        return x.to(torch.float32) + 1

    assert portable.export(function, torch.ones(2, 3)).operations == ["add.Tensor"]


def test_batch_norm_without_running_statistics_raises():
    mean, variance, x = torch.zeros(3), torch.ones(3), torch.randn(5, 3)
    kept = portable.export(lambda x: nn.functional.batch_norm(x, mean, variance), x)
    torch.testing.assert_close(kept(x)["output"], nn.functional.batch_norm(x, mean, variance))
    with pytest.raises(ValueError, match="the page's engine lacks"):
        portable.export(lambda x: nn.functional.batch_norm(x, None, None, training=True), x)


def test_custom_operation_raises_with_its_name():
    @torch.library.custom_op("tfviz_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    twice.register_fake(torch.empty_like)
    with pytest.raises(ValueError, match=r"lacks 1 of the operations it needs: tfviz_tests\.twice\.default \(in the"):
        portable.export(lambda x: twice(x) + 1, torch.ones(2, 3))


@pytest.mark.parametrize(("limit", "shown"), [(1, True), (10**9, False)])
def test_export_of_large_model_shows_progress_bar(monkeypatch, capsys, limit, shown):
    monkeypatch.setattr(sys.modules["tfviz.portable.export"], "PROGRESS_BAR_MIN_WEIGHTS", limit)
    portable.export(nn.Linear(3, 2), torch.randn(4, 3), lengths={"input": {0: "rows"}})
    bar = capsys.readouterr().err
    assert ("exporting Linear: done: 100%" in bar) == shown
    assert shown or not bar

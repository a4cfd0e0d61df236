"""Untrusted program files: only listed operations run, and invalid specs raise a ValueError that names the fault."""

import copy
import json
import random
from contextlib import nullcontext

import pytest
import torch
from fuzzing import fuzzed, outcome, programs
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tfviz import files, models, portable
from tfviz.checks import total_memory
from tfviz.portable.limits import CostLimit
from tfviz.portable.operators import REPLACED_OPS, call_operator, operator
from tfviz.portable.program import serialize_programs

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(scope="module")
def linear():
    torch.manual_seed(2)
    return portable.export(nn.Sequential(nn.Linear(3, 5), nn.ReLU()), X, lengths={"input": {0: "rows"}})


def steps(*nodes, inputs=("float32",), outputs=None, shape=(2, 3)):
    """A program of these steps, each (operation, arguments, shape, dtype), which takes such inputs."""
    count = len(inputs)
    return {
        "format": "tfviz/program/1",
        "name": "test",
        "lengths": {},
        "inputs": [{"name": f"x{i}", "shape": list(shape), "dtype": kind} for i, kind in enumerate(inputs)],
        "weights": [],
        "nodes": [
            {"op": op, "args": args, "module": "", "out": [list(out)], "dtype": [kind]} for op, args, out, kind in nodes
        ],
        "outputs": [{"name": "y", "value": count + len(nodes) - 1}],
    }


def test_unlisted_operations_are_rejected(linear, tmp_path):
    """The one that reads, makes and writes over files; those that change what they are given; any other."""
    secret = tmp_path / "secret.txt"
    secret.write_text("x" * 64, encoding="utf-8")
    first = linear.spec["nodes"][0]
    count = len(linear.spec["inputs"]) + len(linear.spec["weights"])
    others = ["from_file", "zero_", "relu_", "add_.Tensor", "set_.source_Tensor", "resize_", "rand", "bernoulli", "add"]
    others += ["add.out", "relu.default", "nonzero", "aten.relu", "relu.", "", "__class__", "save", "item"]
    for name in others:
        nodes = [{**first, "op": name, "args": [str(secret), True, 16, None]}]
        changed = {**linear.spec, "nodes": nodes, "outputs": [{"name": "y", "value": count}]}
        with pytest.raises(ValueError, match=r"program\.nodes\[0\]\.op: .* is not an operation of a program"):
            portable.Program(changed, linear.tensors)
        files.save_tensors(tmp_path / "evil", linear.tensors, {"program": json.dumps(changed)})
        with pytest.raises(ValueError, match=r"evil: program\.nodes\[0\]\.op"):
            portable.Program.load(tmp_path / "evil")
    assert secret.read_text(encoding="utf-8") == "x" * 64
    assert {path.name for path in tmp_path.iterdir()} == {"secret.txt", "evil"}


def test_program_modified_after_creation_is_rejected(linear):
    program = portable.Program(copy.deepcopy(linear.spec), linear.tensors)
    program.spec["nodes"][0]["op"] = "from_file"
    with pytest.raises(ValueError, match="is not an operation"):
        program(X)
    with pytest.raises(ValueError, match=r"nodes\[0\]\.op"):
        serialize_programs({"p": program})


def test_no_allowed_operation_mutates_its_inputs():
    for name in portable.SUPPORTED_OPERATORS:
        schema = operator(name).overload._schema
        assert not schema.is_mutable, name
        assert schema.name == f"aten::{REPLACED_OPS.get(name, name).partition('.')[0]}"


TRAINS = {
    "batch_norm": [{"value": 0}, None, None, {"value": 1}, {"value": 1}, True, 0.1, 1e-5, False],
    "instance_norm": [{"value": 0}, None, None, {"value": 1}, {"value": 1}, True, 0.1, 1e-5, False],
    "dropout": [{"value": 0}, 0.5, True],
}


@pytest.mark.parametrize("op", TRAINS)
def test_training_mode_operations_are_rejected(op):
    with pytest.raises(ValueError, match=f"{op} has (training|train|use_input_stats), which is for training"):
        portable.Program(steps((op, TRAINS[op], (2, 3), "float32"), inputs=("float32",) * 2))


def test_attention_dropout_is_ignored():
    args = [{"value": 0}, {"value": 0}, {"value": 0}, None, 0.9, False, None, False]
    program = portable.Program(steps(("scaled_dot_product_attention", args, (2, 3), "float32")))
    before = torch.get_rng_state()
    expected = (X @ X.T / 3**0.5).softmax(-1) @ X
    torch.testing.assert_close(program(X)["y"], expected)
    assert torch.equal(torch.get_rng_state(), before)


def test_empty_tensors_are_filled_with_zeros():
    for op, args in {
        "empty.memory_format": [[50, 70], "float32"],
        "empty_like": [{"value": 0}, None],
    }.items():
        out = (2, 3) if op == "empty_like" else (50, 70)
        torch.full((5, 70, 50), 7.0)  # what may lie there
        assert not portable.Program(steps((op, args, out, "float32")))(X)["y"].any()


def test_minimum_integer_divided_by_minus_one_does_not_crash():
    for op, other in (("div.Tensor_mode", {"value": 0}), ("div.Scalar_mode", -1)):
        program = portable.Program(steps((op, [{"value": 0}, other, "trunc"], (2, 3), "int64"), inputs=("int64",)))
        given = torch.tensor([[-(2**63), 7, -7], [1, 3, -1]])
        made = program(given)["y"]
        assert made[0, 1:].tolist() == ([1, 1] if op == "div.Tensor_mode" else [-7, 7])
    program = portable.Program(
        steps(("div.Scalar_mode", [{"value": 0}, -2, "trunc"], (2, 3), "int64"), inputs=("int64",))
    )
    assert program(torch.tensor([[5, -5, 4], [1, 0, 3]]))["y"].tolist() == [[-2, 2, -2], [0, 0, -1]]
    assert call_operator("div.Tensor_mode", [torch.tensor([7.5]), torch.tensor([-1.0]), "trunc"], "cpu").tolist() == [
        -7.0
    ]


class Allocations(TorchDispatchMode):
    """Counts PyTorch's operations, and how large the largest memory is that one returns, beside those on meta."""

    def __init__(self):
        super().__init__()
        self.operations = self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made, self.operations = function(*args, **(kwargs or {})), self.operations + 1
        tensors = (one for one in tree_leaves(made) if isinstance(one, torch.Tensor) and not one.is_meta)
        self.bytes = max([self.bytes, *(one.untyped_storage().nbytes() for one in tensors)])
        return made


HUGE = 2**31 - 1
BOMBS = {
    "full": [("full", [[HUGE, 100], 1.0, "float32"], (HUGE, 100), "float32")],
    "small steps": [("arange.start_step", [0, 1.0, 1e-12, "float32"], (10,), "float32")],
    "repeat": [("repeat", [{"value": 0}, [50_000, 50_000]], (2, 3), "float32")],
    "pad": [("constant_pad_nd", [{"value": 0}, [HUGE, HUGE], 0], (2, 3), "float32")],
    "outer": [
        ("expand", [{"value": 0}, [1_000_000, 2, 3], False], (1_000_000, 2, 3), "float32"),
        ("flatten.using_ints", [{"value": 1}, 0, -1], (6_000_000,), "float32"),
        ("unsqueeze", [{"value": 2}, 1], (6_000_000, 1), "float32"),
        ("mul.Tensor", [{"value": 2}, {"value": 3}], (6_000_000, 6_000_000), "float32"),
    ],
    "a sum over what takes no memory": [
        ("expand", [{"value": 0}, [HUGE, HUGE, 2, 3], False], (HUGE, HUGE, 2, 3), "float32"),
        ("sum", [{"value": 1}, None], (), "float32"),
    ],
    "work": [
        ("expand", [{"value": 0}, [5000, 5000, 2, 3], False], (5000, 5000, 2, 3), "float32"),
        ("reshape", [{"value": 1}, [10_000, 15_000]], (10_000, 15_000), "float32"),
        ("t", [{"value": 2}], (15_000, 10_000), "float32"),
        ("matmul", [{"value": 2}, {"value": 3}], (10_000, 10_000), "float32"),
    ],
    "pieces": [
        ("expand", [{"value": 0}, [10**9, 2, 3], False], (10**9, 2, 3), "float32"),
        ("unbind.int", [{"value": 1}, 0], (2, 3), "float32"),
    ],
    "a pool as large as its picture": [
        ("expand", [{"value": 0}, [10**7, 2, 3], False], (10**7, 2, 3), "float32"),
        ("reshape", [{"value": 1}, [1, 6000, 10_000]], (1, 6000, 10_000), "float32"),
        ("max_pool2d", [{"value": 2}, [3000, 5000], [1, 1], [0, 0], [1, 1], False], (1, 3001, 5001), "float32"),
    ],
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_oversized_programs_are_rejected_before_allocation(bomb):
    made = Allocations()
    with pytest.raises(ValueError, match=r"program\.nodes\[\d\]: \w+.* (cannot be computed|makes)"), made:
        portable.Program(steps(*BOMBS[bomb]))(X)
    assert made.bytes < 100_000_000
    assert made.operations < 100


def test_program_exceeding_memory_is_rejected_before_allocation():
    rows = total_memory() // 4000 + 1  # of a thousand floats
    program = portable.Program(steps(("full", [[rows, 1000], 1.0, "float32"], (rows, 1000), "float32")))
    with pytest.raises(ValueError, match=r"it takes more than the [\d,]+ GB of memory"):
        program(X)


def test_full_context_is_not_rejected_as_oversized():
    torch.manual_seed(1)
    model, ids = models.GPT(300, context=512, layers=2, heads=4, dim=32), torch.ones(1, 5, dtype=torch.long)
    program = portable.export(model, ids, lengths={"ids": {1: "positions"}})
    assert program(torch.ones(1, 512, dtype=torch.long))["output"].shape == (1, 512, 300)


def remove_key(key):
    return lambda d, t: d.pop(key)


def set_value(way, value):
    """Put a value where a way leads in the description."""

    def change(spec, tensors):
        *before, last = way
        for key in before:
            spec = spec[key]
        spec[last] = value

    return change


def tensor(name, make):
    return lambda d, t: t.update({name: make(t.get(name))})


WRONG = {  # what is changed, what is said
    "no name": (remove_key("name"), "program has no 'name'; it must have format, name, lengths"),
    "a key too many": (set_value(["more"], 1), "program has the key 'more', which is not known"),
    "lengths": (set_value(["lengths"], {"rows": [1]}), r"program\.lengths\.rows has 1 members; it must have 2"),
    "no range": (set_value(["lengths"], {"rows": [3, 2]}), r"lengths\['rows'\] is \[3, 2\]; it must be the least"),
    "an unused length": (set_value(["lengths", "more"], [1, None]), "'more' must be in both"),
    "an unknown length": (set_value(["lengths"], {}), "'rows' must be in both"),
    "a shape": (set_value(["inputs", 0, "shape"], ["rows", -1]), r"inputs\[0\]\.shape\[1\] is -1; it must be a size"),
    "a dtype": (
        set_value(["inputs", 0, "dtype"], "float64"),
        r"inputs\[0\]\.dtype is 'float64'; it must be 'float32' or",
    ),
    "a weight's shape": (
        set_value(["weights", 0, "shape"], [5, 2]),
        r"says \[5, 2\], and the tensor '0.weight' is \[5, 3\]",
    ),
    "a weight's dtype": (set_value(["weights", 0, "dtype"], "int64"), r"is int64, and its tensor torch\.float32"),
    "a tensor too many": (tensor("more", lambda _: X), "there is a tensor 'more' that weights does not name"),
    "another tensor": (tensor("0.bias", lambda one: one[:1]), r"says \[5\], and the tensor '0.bias' is \[1\]"),
    "int8 without scale": (tensor("0.weight", lambda one: one.to(torch.int8)), "has no tensor '0.weight:scale'"),
    "an argument too few": (
        lambda d, t: d["nodes"][0]["args"].pop(),
        r"args has 2 members; linear takes input, weight, b",
    ),
    "a later value": (
        set_value(["nodes", 0, "args", 0], {"value": 3}),
        r"nodes\[0\]\.args\[0\]\.value is 3; .* from 0 to 2",
    ),
    "a text for a tensor": (
        set_value(["nodes", 0, "args", 0], "x"),
        r'args\[0\] is \'x\'; it must be a value {"value": number}',
    ),
    "a size of nothing": (
        set_value(["nodes", 0, "out", 0, 0], "cols"),
        "is 'cols', which is not a length; there are rows",
    ),
    "an operator": (
        set_value(["nodes", 0, "out", 0, 0], ["**", "rows", 9]),
        r"has the operator '\*\*'; there are \+, \*",
    ),
    "no result": (lambda d, t: d["nodes"][0].update(out=[], dtype=[]), "out has 0 members"),
    "a site that is none": (
        set_value(["nodes", 0, "site"], "a.pattern"),
        "site is at linear, which gives no attention",
    ),
    "no outputs": (set_value(["outputs"], []), r"program\.outputs has 0 members; it must have 1 to"),
    "an output of nothing": (
        set_value(["outputs", 0, "value"], 5),
        r"outputs\[0\]\.value is 5; it must be .* from 0 to 4",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_inconsistent_spec_is_rejected(wrong, linear, tmp_path):
    change, says = WRONG[wrong]
    spec, tensors = copy.deepcopy(linear.spec), dict(linear.tensors)
    change(spec, tensors)
    with pytest.raises(ValueError, match=says):
        portable.Program(spec, tensors)
    if all(one.device.type == "cpu" for one in tensors.values()):
        files.save_tensors(tmp_path / "p", tensors, {"program": json.dumps(spec)})
        with pytest.raises(ValueError, match=f"{tmp_path / 'p'}: .*{says}"):
            portable.Program.load(tmp_path / "p")


def test_malformed_size_expressions_are_rejected(linear):
    deep = "rows"
    for _ in range(50_000):
        deep = ["+", deep, 1]
    endless = ["+", 1]
    endless.append(endless)
    for one in (deep, endless, ["+", *[1] * 5000], ["*", *["rows"] * 3, {}], ["//", "rows"], [], [["+"], 1]):
        spec = copy.deepcopy(linear.spec)
        spec["nodes"][0]["out"][0][0] = one
        with pytest.raises(ValueError, match=r"nodes\[0\]\.out\[0\]\[0\]"):
            portable.Program(spec, linear.tensors)


@pytest.mark.parametrize("text", ["", "{}", "{", "[" * 100_000, '{"name": NaN}', '{"name": 1e999}'])
def test_file_with_invalid_json_is_rejected(text, tmp_path):
    files.save_tensors(tmp_path / "p", {"x": X}, {"program": text})
    with pytest.raises(ValueError, match=f"{tmp_path / 'p'}: program"):
        portable.Program.load(tmp_path / "p")


def test_wrong_declared_shape_or_dtype_raises_at_run(linear):
    for change, says in (
        (set_value(["nodes", 1, "out", 0], ["rows", 4]), r"nodes\[1\]: relu makes .*\[2, 5\].*; out says .*\[2, 4\]"),
        (set_value(["nodes", 0, "dtype", 0], "int64"), r"nodes\[0\]: linear makes .*float32.*; dtype says .*int64"),
        (set_value(["nodes", 0, "out", 0, 0], ["//", "rows", ["-", "rows", "rows"]]), r"divides by 0"),
    ):
        spec = copy.deepcopy(linear.spec)
        change(spec, None)
        with pytest.raises(ValueError, match=says):
            portable.Program(spec, linear.tensors)(X)


def test_mutated_programs_are_rejected_or_compute():
    made, draw = programs(), random.Random(3)
    found = set()
    for _ in range(500):
        program, inputs = draw.choice(made)
        found.add(outcome(fuzzed(program.spec, draw), program, inputs))
    assert found <= {"refused", "stopped", "computed"}
    assert len(found) == 3


INPUTS = {
    "no numbers": ([X.to("meta")], ValueError, "input is a tensor on the meta device"),
    "sparse": ([X.to_sparse()], ValueError, "whose numbers cannot be read"),
    "nested": (
        [torch.nested.nested_tensor([X[0], X[1, :2]], layout=torch.jagged)],
        ValueError,
        "input is a nested tensor",
    ),
    "none at all": ([X[:0]], ValueError, "'rows' is 0; this program takes 1 to any number"),
}


@pytest.mark.parametrize("given", INPUTS)
def test_unusable_inputs_raise(given, linear):
    inputs, error, says = INPUTS[given]
    with pytest.raises(error, match=says):
        linear(*inputs)


def test_integer_inputs_are_converted_to_float(linear):
    assert torch.equal(linear(X.int())["output"], linear(X)["output"])


EDITS = {
    "another batch": (
        lambda w: w[:1],
        r"the edit of blocks\.0\.attention\.pattern returned shape \[1, 2, 3, 3\]; it must",
    ),
    "a number": (lambda w: 0.0, r"returned float; it must return a tensor of shape \[2, 2, 3, 3\]"),
    "another dtype": (lambda w: w > 0, r"returned torch\.bool; it must return a tensor of torch\.float32"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edit_returning_wrong_shape_or_dtype_raises(edit):
    change, says = EDITS[edit]
    ids = torch.ones(2, 3, dtype=torch.long)
    program = portable.export(models.GPT(11, context=7, layers=1, heads=2, dim=4), ids)
    (site,) = program.sites
    with pytest.raises(ValueError, match=says):
        program(ids, edit={site: change})


def test_duplicate_output_names_raise():
    with pytest.raises(ValueError, match=r"outputs has two of the name 'a\.b'; each must have its own"):
        portable.export(lambda x: {"a": {"b": x + 1}, "a.b": x * 2}, X)


def test_dependent_lengths_raise():
    with pytest.raises(ValueError, match="'b' cannot change by itself"):
        portable.export(
            lambda x, y: torch.cat([x, x]) + y,
            torch.randn(3),
            torch.randn(6),
            lengths={"x": {0: "a"}, "y": {0: "b"}},
        )


def test_batch_norm_with_in_place_change_matches_torch():
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(6)

        def forward(self, x):
            made = self.norm(x)
            made[:, 0] = 0  # written anew by torch.export, which takes the norm apart
            return made

    x = torch.randn(4, 6, 5)
    model = Norm().eval()
    torch.testing.assert_close(portable.export(model, x)(x)["output"], model(x))


@pytest.mark.parametrize(
    ("split", "fits"),
    [
        (lambda x: x.unbind(1), False),
        (lambda x: x.unbind(-1), False),
        (lambda x: x.unbind(0), True),
        (lambda x: x.split(1, 1), False),
        (lambda x: x.split(2, 1), False),
        (lambda x: x.split(3, 1), True),
        (lambda x: x.split(1), True),
        (lambda x: x.split([1, 2]), True),
    ],
)
def test_operators_that_split_make_a_limited_number_of_tensors(split, fits):
    wide = torch.empty(3, 200_002)
    with nullcontext() if fits else pytest.raises(ValueError, match="more than 100,000 tensors"), CostLimit():
        split(wide)

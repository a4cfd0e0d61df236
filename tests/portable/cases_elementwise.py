"""Cases of elementwise operations."""

import torch
from case_strategies import SHAPES, each, tensors, two, with_number
from hypothesis import strategies as st
from operation_cases import Case

MIXED = [("float", "float"), ("float", "int"), ("int", "int"), ("bool", "float"), ("int", "bool"), ("bool", "bool")]
NUMERIC = [pair for pair in MIXED if pair != ("bool", "bool")]
ANY = ("float", "int", "bool")
ANGLES = "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh asinh acosh"
SMOOTH = f"{ANGLES} atanh erf sigmoid tanh isnan isinf logical_not".split()
STEADY = ["abs", "neg", "sign", "floor", "ceil", "trunc", "square", "relu"]
CURVES = ["silu", "hardtanh", "leaky_relu", "elu", "gelu"]
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]


def functions():
    for op in SMOOTH:
        yield each(op, ANY)
    for op in STEADY:
        yield each(op, ("float", "int"))
    for op in CURVES:
        yield each(op)
    yield each("leaky_relu", arguments=[st.just(0.3)])
    yield each("elu", arguments=[st.just(0.5), st.just(2.0), st.just(3.0)])
    yield each("round", ("eighths", "int"))
    yield each("round.decimals", ("eighths",)).map(lambda case: case._replace(kwargs={"decimals": 1}))
    yield each("gelu").map(lambda case: case._replace(kwargs={"approximate": "tanh"}))
    yield each("bitwise_not", ("int", "bool"))
    for op in ("_to_copy", "to.dtype"):
        for kind in (torch.float32, torch.int64, torch.bool):
            given = {"dtype": kind}
            yield each(op, ANY, odd=False).map(lambda case, given=given: case._replace(kwargs=given))
    yield two("type_as", MIXED)


def pairs():
    for op in ("add.Tensor", "mul.Tensor", "div.Tensor", "maximum", "minimum"):
        yield two(op, MIXED, odd=True)
    for op in [f"{name}.Tensor" for name in COMPARE] + ["logical_and", "logical_or", "logical_xor"]:
        yield two(op, MIXED, odd=True)
    whole = st.sampled_from([1, 2, -3])
    yield two("add.Tensor", NUMERIC, keywords={"alpha": whole})
    yield two("sub.Tensor", [("float", "float"), ("int", "float"), ("int", "int")], odd=True, keywords={"alpha": whole})
    for op in ("remainder.Tensor", "fmod.Tensor"):
        yield two(op, [("float", "float"), ("float", "int")])
        yield two(op, [("int", "int")], low=1).map(lambda case: case._replace(args=(4 - case.args[0], case.args[1])))
    yield two("div.Tensor_mode", NUMERIC[:2], keywords={"rounding_mode": st.sampled_from(["floor", "trunc", None])})
    yield two("pow.Tensor_Tensor", [("float", "float"), ("float", "int")], odd=True)
    yield two("pow.Tensor_Tensor", [("int", "int")], low=0)
    yield two("atan2", [("float", "float"), ("int", "int"), ("int", "float")], odd=True)
    yield two("hypot", odd=True)
    yield two("xlogy.Tensor", [("float", "float"), ("int", "int")], odd=True)
    for op in ("and", "or", "xor"):
        for name in (f"bitwise_{op}.Tensor", *([f"__{op}__.Tensor"] if op != "xor" else [])):
            yield two(name, [("int", "int"), ("bool", "bool"), ("bool", "int")])
    for op in ("bitwise_right_shift", "bitwise_left_shift", "__rshift__", "__lshift__"):
        yield two(f"{op}.Tensor", [("int", "int")], low=0)
    yield two("clamp.Tensor", [("float", "float", "float"), ("int", "float", "int")], shapes=3)
    yield two("where.self", [("bool", "float", "int"), ("bool", "bool", "bool"), ("bool", "int", "int")], shapes=3)


def numbers():
    for op in ("add", "sub", "rsub", "mul", "div", "remainder"):
        yield with_number(f"{op}.Scalar")
    yield two("rsub.Scalar").map(lambda case: case._replace(args=(case.args[0], 2), kwargs={"alpha": 3}))
    compared = [f"{op}.Scalar" for op in COMPARE]
    for op in ("fmod.Scalar", "pow.Tensor_Scalar", "add.Tensor", "mul.Tensor", *compared):
        yield with_number(op, numbers=(2, 3, 0.5, 2.0, 0.1))
    yield with_number("mul.Tensor", ("bool",))
    yield with_number("pow.Tensor_Scalar", ("float",), (-1, -2, 0.5, 3))
    yield with_number("div.Scalar_mode", ("float", "int")).map(
        lambda case: case._replace(kwargs={"rounding_mode": "floor"})
    )
    yield tensors(SHAPES, "int", low=0).map(lambda x: Case("pow.Scalar", (3, x)))
    yield tensors(SHAPES, odd=True).map(lambda x: Case("pow.Scalar", (2.5, x)))
    for op in ("bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__"):
        yield with_number(f"{op}.Scalar", ("int", "bool"), (6, 1))
    for op in (
        "bitwise_right_shift.Tensor_Scalar",
        "bitwise_left_shift.Tensor_Scalar",
        "__rshift__.Scalar",
        "__lshift__.Scalar",
    ):
        yield with_number(op, ("int",), (1, 3))
    yield with_number("xlogy.Scalar_Other", ("float", "int"), (2, 0.5))
    for low, high in ((0, None), (None, 1.5), (-1, 2), (2, -1)):
        yield each("clamp", ("float", "int"), arguments=[st.just(low), st.just(high)])
    yield two("where.ScalarOther", [("bool", "float"), ("bool", "int")]).map(
        lambda case: case._replace(args=(*case.args, 0.1))
    )
    yield two("where.ScalarSelf", [("bool", "float"), ("bool", "int")]).map(
        lambda case: case._replace(args=(case.args[0], 3, case.args[1]))
    )
    yield tensors(SHAPES, "bool").map(lambda x: Case("where.Scalar", (x, 1.5, -2.5)))
    yield two("masked_fill.Scalar", [("float", "bool")]).map(stretched).map(lambda case: with_last(case, -torch.inf))
    yield two("masked_fill.Scalar", [("int", "bool")]).map(stretched).map(lambda case: with_last(case, 7))
    yield (
        two("masked_fill.Tensor", [("float", "bool")])
        .map(stretched)
        .map(lambda case: with_last(case, torch.tensor(3.5)))
    )


def stretched(case):
    return case._replace(args=tuple(part.clone() for part in torch.broadcast_tensors(*case.args)))


def with_last(case, value):
    return case._replace(args=(*case.args, value))


FAMILIES = {"functions": functions, "pairs": pairs, "numbers": numbers}

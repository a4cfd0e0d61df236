"""Cases of reductions and of operations along one axis."""

from itertools import product

import torch
from case_strategies import FULL, SHAPES, along, reductions
from hypothesis import strategies as st
from operation_cases import Case

ANY = ("float", "int", "bool")


def reducing():
    for op in ("sum", "mean", "prod", "max", "min", "any", "all", "median"):
        kinds = ANY if op in ("sum", "prod", "any", "all") else ("float",)
        yield reductions(
            op, kinds, "all", FULL if op in ("max", "min", "median") else SHAPES, odd=op in ("max", "min", "median")
        )
    yield reductions("sum.dim_IntList", ANY)
    yield reductions("mean.dim")
    yield reductions("mean.dim", ("int",)).map(lambda case: case._replace(kwargs={"dtype": torch.float32}))
    yield reductions("prod.dim_int", ANY, "axis")
    for op in ("amax", "amin"):
        yield reductions(op, shapes=FULL, odd=True)
    for op, correction in product(("var", "var_mean"), (0.5, 0, 1, 2, None)):
        yield reductions(f"{op}.correction", shapes=FULL, keep=False).map(
            lambda case, correction=correction: case._replace(kwargs={"correction": correction, "keepdim": True})
        )
    yield reductions("var.correction", keep=False)
    for op in ("max.dim", "min.dim", "argmax", "argmin"):
        yield reductions(op, ("float", "int"), "axis", FULL, odd=True)
    yield reductions("argmax", ("float", "int"), "all", FULL, odd=True)
    for op in ("any", "all"):
        yield reductions(f"{op}.dim", ANY, "axis")
    yield reductions("any.dims", ANY)
    orders = st.sampled_from([0, 1, 2, 3, torch.inf, -torch.inf])
    yield reductions("linalg_vector_norm", shapes=FULL, extra=[orders])


def scanning():
    yield st.just(Case("softmax.int", (torch.tensor([1e30, 1e30, -1e30]), 0)))
    yield st.just(Case("log_softmax.int", (torch.tensor([0.0, 200.0]), 0)))
    yield st.just(Case("cummax", (torch.tensor([1, 3, 3, 2, torch.nan]), 0)))  # of equal ones the last
    for op in ("cumsum", "cumprod"):
        yield along(op, ANY)
    yield along("logcumsumexp")
    for op in ("cummax", "cummin"):
        yield along(op, ("float", "int"), FULL, odd=True)
    for op in ("softmax.int", "log_softmax.int"):
        yield along(op, odd=op == "softmax.int")
        yield along(op, ("int",), keywords={"dtype": torch.float32})
    yield along("sort", ("distinct",), extra=[st.booleans()])
    yield along("sort.stable", ("int", "bool", "float"), odd=True).map(
        lambda case: case._replace(args=case.args[:1], kwargs={"stable": True, "dim": case.args[1], "descending": True})
    )
    for largest in (True, False):
        yield along("topk", ("distinct",), FULL).map(
            lambda case, largest=largest: case._replace(
                args=(case.args[0], (case.args[0].shape[case.args[1]] + 1) // 2, case.args[1], largest)
            )
        )


FAMILIES = {"reducing": reducing, "scanning": scanning}

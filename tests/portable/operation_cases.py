"""Compare operations of the page's engine, run in Node, with torch."""

import base64
import math
from typing import Any, NamedTuple

import numpy
import torch
from hypothesis import HealthCheck, Phase, given, settings
from torch.utils._pytree import tree_leaves

KINDS = {torch.float32: "float32", torch.int64: "int64", torch.bool: "bool"}
ARRAYS = {"float32": numpy.float32, "int64": numpy.int32, "bool": numpy.uint8}
DRAWN = 20  # examples of a strategy; most of the first ones are empty
DROPPED = {"memory_format", "layout", "device", "pin_memory", "generator", "out"}
SETTINGS = settings(
    derandomize=True, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
PAGE = """
const arrays = { float32: Float32Array, int64: Int32Array, bool: Uint8Array };
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const textOf = ({ buffer, byteOffset, byteLength }) => {
    let letters = ""; // in pieces: a call takes only so many arguments
    for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) letters += String.fromCharCode(byte);
    return btoa(letters); };
const read = (value) => {
    if (Array.isArray(value)) return value.map(read);
    if (value === null || typeof value !== "object") return value;
    if ("float" in value) return { inf: Infinity, "-inf": -Infinity, nan: NaN }[value.float];
    return { ...value, data: new arrays[value.dtype](bytesOf(value.data).buffer) }; };
const write = (value) => {
    if (Array.isArray(value)) return value.map(write);
    if (!value || !value.data) return value;
    if (!(value.data instanceof arrays[value.dtype])) throw new Error("the numbers are not of their kind");
    return { ...value, data: textOf(value.data) }; };
async function evaluated(cases) {
    const matmulKernel = await MatmulKernel.make(), seen = [];
    const empty = (shape, dtype = "float32") => {
        const data = new arrays[dtype](shape.reduce((size, length) => size * length, 1)).fill(7);
        return { shape, dtype, data }; };
    const applyHooks = (weights, allowed = null) => { seen.push([weights, allowed]); return weights; };
    const storedWeight = ({ data, shape }) => matmulKernel.store(data, ...shape);
    const recycle = () => {};
    return cases.map(({ op, args, node }) => {
        const given = read(args), before = JSON.stringify(write(given));
        const interpreter = { matmulKernel, storedWeight, empty, recycle, applyHooks, node };
        seen.length = 0;
        try {
            const made = [].concat(SUPPORTED_OPERATORS[op](interpreter, ...given));
            if (JSON.stringify(write(given)) !== before) throw new Error("an argument has changed");
            return { made: write(made), seen: write(seen) };
        } catch (error) { return { error: error.message }; } }); }
"""


class Case(NamedTuple):
    """`args` and `kwargs` as torch takes them. `told`: the engine is told the result's kind, as by a program."""

    op: str
    args: tuple = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012
    told: bool = False
    close: float = 1e-6

    @property
    def torch(self):
        name, _, overload = self.op.partition(".")
        return getattr(getattr(torch.ops.aten, name), overload or "default")

    def expected(self):
        made = self.torch(*self.args, **self.kwargs)
        return list(made) if isinstance(made, tuple | list) else [made]

    def sent(self):
        schema = self.torch._schema.arguments
        given = dict(zip([argument.name for argument in schema], self.args)) | self.kwargs
        named = [argument for argument in schema if argument.name not in DROPPED]
        values = [given.get(argument.name, argument.default_value) for argument in named]
        node = {"dtype": [KINDS[made.dtype] for made in self.expected()]} if self.told else None
        return {"op": self.op, "args": [written(value) for value in values], "node": node}


def written(value):
    if isinstance(value, torch.Tensor):
        kind = KINDS[value.dtype]
        data = base64.b64encode(value.numpy().astype(ARRAYS[kind]).tobytes()).decode()
        return {"shape": list(value.shape), "dtype": kind, "data": data}
    if isinstance(value, list | tuple):
        return [written(one) for one in value]
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return value if not isinstance(value, float) or math.isfinite(value) else {"float": str(value)}


def readable(told):
    if told is None:
        return None
    data = numpy.frombuffer(base64.b64decode(told["data"]), dtype=ARRAYS[told["dtype"]])
    kind = next(torch_kind for torch_kind, name in KINDS.items() if name == told["dtype"])
    return torch.tensor(data.copy()).to(kind).reshape(told["shape"])


def prepared(node):
    node.load("engine/operations", "engine/products")
    node.run(PAGE)
    return node


def answers(page, cases):
    return page.evaluate("cases => evaluated(cases)", [case.sent() for case in cases])


def compare(page, cases):
    """Each case gives in the page what it gives in torch: whole numbers and truths exactly."""
    for case, told in zip(cases, answers(page, cases), strict=True):
        said = f"{case.op} of {case.args} {case.kwargs}"
        assert "error" not in told, f"{said}: {told['error']}"
        expected = case.expected()
        assert len(told["made"]) == len(expected), said
        for made, wanted in zip(map(readable, told["made"]), expected):
            torch.testing.assert_close(
                made,
                wanted.contiguous(),
                rtol=1e-5,
                atol=case.close,
                equal_nan=True,
                msg=lambda text, said=said: f"{said}: {text}",
            )


def collected(strategy, count):
    """So many examples of a strategy, always the same ones, from the smallest to the largest of those drawn."""
    found = []

    @settings(SETTINGS, max_examples=DRAWN)
    @given(strategy)
    def gather(case):
        found.append(case)

    gather()
    found.sort(key=_work)
    indices = [round(index * (len(found) - 1) / (count - 1)) for index in range(count)]
    return [found[index] for index in dict.fromkeys(indices)]


def _work(case):
    """How much an operation has to do: what is given, times what is made; often nothing, since sizes may be 0."""
    given = sum(value.numel() for value in tree_leaves(case.args) if isinstance(value, torch.Tensor))
    return given * sum(made.numel() for made in case.expected())

"""`Program`: an exported graph as plain data and tensors, which can be saved, loaded, run and packed for a page."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz import files, schema
from tfviz.portable.interpret import run
from tfviz.portable.validate import validate
from tfviz.schema import describe


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """An exported model or function, which runs in a page without Python.

    A program can name only the operations of `SUPPORTED_OPERATORS`, and its parts are validated when it is constructed.
    So it is safe to run a program from an untrusted source: it only computes with its tensors.

    Attributes:
        spec: the specification, plain values. `lengths`: the minimum and maximum of each dynamic length, None for no
            maximum. `inputs` and `weights`: name, shape, dtype. `nodes`: operation, arguments, path of the module,
            site of the attention that it computes, if any, shapes and dtypes of the results. `outputs`: name, number of
            the value. Values are numbered in the order of inputs, weights, results of the nodes. An argument is a plain
            value, `{"value": number of a value}`, `{"size": size}` or `{"float": "inf"}`. A size is a number, the name
            of a length, or `[operator, size, ...]`.
        tensors: the weights by name, in their storage format. An int8 weight has a float32 scale for each row, named
            `NAME:scale`.

    Raises:
        ValueError: `spec` and `tensors` do not form a program; the message names the key.
    """

    spec: dict[str, Any]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    _affordable_lengths: set[tuple[int, ...]] | None = field(
        default_factory=set, init=False
    )  # lengths checked by CostLimit; None: no check

    def __post_init__(self) -> None:
        validate(self.spec, self.tensors)

    @classmethod
    def _of_model(cls, spec: dict[str, Any], tensors: dict[str, Tensor]) -> Program:
        """Return a program of a local model, which is trusted and runs without a limit on memory and work."""
        program = cls(spec, tensors)
        object.__setattr__(program, "_affordable_lengths", None)
        return program

    @property
    def name(self) -> str:
        return self.spec["name"]

    @property
    def operations(self) -> list[str]:
        """The names of the program's distinct operations, sorted."""
        return sorted({node["op"] for node in self.spec["nodes"]})

    @property
    def sites(self) -> list[str]:
        """The sites of attention patterns, which can be edited, named as by `look.capture`."""
        return [node["site"] for node in self.spec["nodes"] if "site" in node]

    @property
    def inputs(self) -> list[str]:
        return [declared["name"] for declared in self.spec["inputs"]]

    @property
    def outputs(self) -> list[str]:
        return [output["name"] for output in self.spec["outputs"]]

    @property
    def nbytes(self) -> int:
        """The size of the stored weights, in bytes."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def weight(self, name: str) -> Tensor:
        """Return a weight in the dtype of the computation: float32, int64 or bool.

        Raises:
            LookupError: no weight has this name.
        """
        if name not in self.tensors:
            raise LookupError(f"no weight is called {name!r}; there are: {', '.join(self.tensors)}")
        stored = self.tensors[name]
        if stored.dtype == torch.int8:
            return stored.float() * self.tensors[f"{name}:scale"]
        return stored.float() if stored.is_floating_point() else stored

    def __call__(
        self, *inputs: Tensor, edit: Mapping[str, Callable[[Tensor], Tensor]] | None = None
    ) -> dict[str, Tensor]:
        """Return the outputs by name, computed in Python: the reference for the page's engine.

        Args:
            *inputs: the inputs, in the order of the program.
            edit: site -> function of its attention weights that returns others, as for `look.capture`.

        Raises:
            TypeError: an input is not a tensor; `edit` is not a mapping of functions.
            ValueError: an input has another shape or dtype; a length is out of range; an edit returns another shape or
                dtype; a node cannot be computed, or would take too much memory or work.
            LookupError: `edit` names a site that does not exist.
        """
        if not isinstance(edit, Mapping | None):
            raise TypeError(f"edit is {describe(edit)}; give {{site: function}}")
        weights = [self.weight(weight["name"]) for weight in self.spec["weights"]]
        return run(self.spec, weights, inputs, dict(edit or {}), self._affordable_lengths)

    def save(self, path: str | Path) -> Path:
        """Write the program as one safetensors file; return its path."""
        path = files.expand_user(path)
        with files.atomic(path) as draft:
            files.save_tensors(draft, self.tensors, {"program": json.dumps(self.spec, sort_keys=True)})
        return path

    @classmethod
    def load(cls, path: str | Path) -> Program:
        """Return a program that `save` wrote, without unpickling.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or does not hold a program.
        """
        path = files.expand_user(path)
        tensors, metadata = files.load_tensors(path)
        if metadata.keys() != {"program"}:
            raise ValueError(f"{path} holds no program; it is a file of something else")
        with schema.prefix_errors(path):
            return cls(schema.parse(metadata["program"], "program"), tensors)

    def __repr__(self) -> str:
        many = len(self.spec["nodes"])
        return f"Program {self.name}: {many} steps of {len(self.operations)} operations, {self.nbytes:,} bytes"


def serialize_programs(programs: Mapping[str, Program]) -> tuple[dict[str, dict[str, Any]], bytes]:
    """Return programs in the form for a page: plain values by name, and the bytes of all weights, without duplicates.

    The entry of a weight has `at`, the offset and length of its bytes, and `stored`, its storage format.

    Raises:
        TypeError: a value is not a `Program`.
        ValueError: a program was modified after its construction, and is no longer valid.
    """
    for name, program in programs.items():
        if not isinstance(program, Program):
            raise TypeError(f"{name} is {describe(program)}; give a portable.Program")
        validate(program.spec, program.tensors)
    pieces: list[bytes] = []
    locations: dict[str, list[int]] = {}

    def store(tensor: Tensor) -> list[int]:
        piece = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        key = hashlib.sha256(piece).hexdigest()
        if key not in locations:
            locations[key] = [sum(map(len, pieces)), len(piece)]
            pieces.extend([piece, bytes(-len(piece) % 4)])
        return locations[key]

    specs = {}
    for name, program in programs.items():
        weights = []
        for weight in program.spec["weights"]:
            stored = program.tensors[weight["name"]]
            if stored.dtype == torch.int64:
                stored = stored.int()
            stored_at = {"byte_range": store(stored), "stored": str(stored.dtype).removeprefix("torch.")}
            if stored.dtype == torch.int8:
                stored_at["scale"] = store(program.tensors[f"{weight['name']}:scale"])
            weights.append({**weight, **stored_at})
        specs[name] = {**program.spec, "weights": weights}
    return specs, b"".join(pieces)


def quantize(tensor: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Return a weight in its storage format, and for int8 the scale of each row, else None.

    Weights that int8 does not suit (vectors, or with infinity) are stored as float16; small weights (below 256 numbers)
    and those out of float16's range as float32.
    """
    tensor = tensor.detach().cpu()
    if not tensor.is_floating_point():
        return (tensor if tensor.dtype == torch.bool else tensor.long()).contiguous(), None
    tensor = tensor.float().contiguous()
    if dtype == torch.int8 and tensor.dim() >= 2 and tensor.numel() >= 256 and bool(tensor.isfinite().all()):
        scale = tensor.abs().amax(-1, keepdim=True).clamp_min(math.ldexp(1, -100)) / 127
        return (tensor / scale).round().to(torch.int8), scale
    half = dtype != torch.float32 and tensor.numel() >= 256
    small = tensor.half() if half else tensor
    return (tensor if half and bool((small.isinf() & tensor.isfinite()).any()) else small), None

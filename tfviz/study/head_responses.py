"""`HeadResponses`: the linear maps into and out of attention heads, measured by runs on basis vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.look.capture import capture
from tfviz.look.module_stack import first_tensor_argument
from tfviz.look.recorder import matches
from tfviz.shapes import Float
from tfviz.study.block_replay import hooked
from tfviz.study.inputs import Inputs
from tfviz.study.sites import module_path, single_invocations

BASIS_LENGTH = 1024.0  # a power of two, large enough that adding a bias does not round small weights away
PROBE_SCALE = 128.0  # standard deviation of a random vector's numbers
BATCH_SIZE = 256  # basis vectors in one run
PROJECTED = ("query", "key", "value")
TOLERANCES = {torch.bfloat16: 6e-2, torch.float16: 2e-2}  # relative to the largest result of a linear map
TOLERANCE = 1e-3  # for other dtypes


class HeadResponses:
    """The responses of a model's attentions to vectors that replace their inputs or the outputs of their heads.

    In a run, the inputs of all attentions are replaced at once, so no attention depends on an earlier one. A vector of
    zeros gives the biases. A random vector for each attention tests that its map is linear and depends on nothing else.

    Args:
        model: the model.
        inputs: the arguments of a call with one text; vectors replace all of its positions, and the first is read.
        sites: globs of the `.output_heads` of the attentions.

    Attributes:
        paths: the paths of the attentions, in the order in which they run.

    Raises:
        LookupError: there is no attention, or no site matches.
        ValueError: an attention does not use a fused kernel; attentions differ in size.
    """

    def __init__(self, model: nn.Module, inputs: Inputs, sites: Sequence[str]) -> None:
        self.model, self.inputs, self.modules = model, inputs, dict(model.named_modules())
        with capture(model, ["*.pattern", "*", "*.input"], edit={"*.output_heads": _noise}) as captured:
            inputs.run(model)
        found = [site for site in captured if site.rpartition(".")[2] == "output_heads"]
        chosen = [site for site in found if any(matches(site, glob) for glob in sites)]
        if not chosen:
            raise LookupError(f"no site matches {', '.join(sites) or 'no glob'}; this model has {', '.join(found[:6])}")
        self.paths = list(map(module_path, chosen))
        self._check_fused(captured)
        widths = [captured[f"{path}.input".removeprefix(".")].shape[-1] for path in self.paths]
        sizes = {(width, *captured[site].shape[1::2]) for width, site in zip(widths, chosen)}
        if len(sizes) > 1:
            listed = "; ".join(f"{heads} heads of {size} for {width} numbers" for width, heads, size in sorted(sizes))
            raise ValueError(f"attentions differ in size ({listed}): choose attentions of equal size with sites=")
        ((self._dim, self._heads, self._head_dim),) = sizes
        self._projections = [self._projection(site, captured) for site in chosen]

    def input_maps(self) -> list[list[Float[Tensor, "dim head head_dim"]]]:
        """Return three lists, for queries, keys and values: the map from the input of each attention to them.

        Raises:
            ValueError: a map is not linear, or does not depend on the input, as in attention to another text.
        """
        maps = self._maps([self._site(path, name) for name in PROJECTED for path in self.paths], in_heads=False)
        count = len(self.paths)
        return [maps[start : start + count] for start in range(0, len(maps), count)]

    def head_maps(self) -> list[Float[Tensor, "head head_dim dim"]]:
        """Return, for each attention, the map from the outputs of its heads to the output of its projection.

        Raises:
            ValueError: the map is not linear, or depends on more than the outputs of the heads.
        """
        return [rows.unflatten(0, (self._heads, -1)) for rows in self._maps(self._projections, in_heads=True)]

    def _check_fused(self, captured: Mapping[str, Tensor]) -> None:
        for path in self.paths:
            if self._site(path, "query") not in captured:
                raise ValueError(
                    f"there is no {self._site(path, 'query')}: queries, keys and values are captured from the "
                    f"arguments of a fused kernel, which this attention does not call; load a Hugging Face model with "
                    "attn_implementation='sdpa', or call nn.MultiheadAttention with need_weights=False"
                )

    def _site(self, path: str, name: str) -> str:
        """Return the site of queries, keys or values: `.query`, or `.query_heads` if a module is called `query`."""
        site = f"{path}.{name}".removeprefix(".")
        return f"{site}_heads" if site in self.modules else site

    def _projection(self, site: str, captured: Mapping[str, Tensor]) -> str:
        """Return the path of the output projection: the first later module whose output is not the heads' own.

        Raises:
            ValueError: no module projects the outputs of the heads.
        """
        order, joined = list(captured), captured[site].transpose(1, 2).flatten()
        for later in order[order.index(site) + 1 :]:
            is_same = captured[later].numel() == len(joined) and torch.equal(captured[later].flatten(), joined)
            if later in self.modules and not is_same:
                return later
        raise ValueError(f"no module projects {site}: make the attention a part of another module")

    def _maps(self, sites: list[str], in_heads: bool) -> list[Tensor]:
        """Return the map to each site, [width, ...], from inputs or from outputs of heads, as float32.

        Args:
            sites: one site of each attention, in the order of `paths`, or several such lists in a row.
            in_heads: whether the maps are from the outputs of heads; else from the inputs.

        Raises:
            ValueError: a map is not linear.
        """
        inputs = self._probes(self._dim)
        heads = self._probes(self._heads * self._head_dim) if in_heads else None
        starts, ends = zip(*self._run(sites, inputs, heads))
        probes = inputs if heads is None else heads
        parts: list[list[Tensor]] = [[] for _ in sites]
        for chunk in (BASIS_LENGTH * torch.eye(probes.shape[-1], device="cpu", dtype=torch.float32)).split(BATCH_SIZE):
            rows, zeros = chunk.expand(len(self.paths), -1, -1), inputs[:, :1].expand(-1, len(chunk), -1)
            results = self._run(sites, zeros, rows) if in_heads else self._run(sites, rows)
            for kept, start, result in zip(parts, starts, results):
                kept.append((result.float() - start.float()) / BASIS_LENGTH)
        maps = []
        for at, (site, kept, start, end) in enumerate(zip(sites, parts, starts, ends)):
            index = at % len(self.paths)
            maps.append(torch.cat(kept))
            kept.clear()  # so that no weights are in memory twice
            if not _is_linear(start, end, torch.tensordot(probes[index, 1], maps[-1], 1), in_heads):
                raise ValueError(self._reason(site, index, in_heads))
        return maps

    def _reason(self, site: str, index: int, in_heads: bool) -> str:
        """Return the error message for a site whose activation is not a linear function of its attention's input."""
        if in_heads:
            return f"{site} is not linear in the outputs of the heads alone, so its weights depend on the text"
        name = f"the input of {self.paths[index] or 'the model'}"
        inputs = self._probes(self._dim)
        inputs[:index], inputs[index + 1 :] = 0, 0
        if _is_constant(*self._run([site], inputs)[0]):
            return (
                f"{site} does not come from {name}, as in attention to another text: name others by sites=, such as "
                "sites='encoder.*.output_heads'"
            )
        return (
            f"{site} is not linear in {name} alone, as after a norm of queries and keys, so its weights depend on "
            f"the text"
        )

    def _probes(self, width: int) -> Float[Tensor, "attention 2 width"]:
        """Return a zero vector and a random vector for each attention, the same in each call."""
        drawn = _drawn(len(self.paths), width)
        return torch.stack([torch.zeros_like(drawn), PROBE_SCALE * drawn], 1)

    def _run(
        self,
        sites: list[str],
        inputs: Float[Tensor, "attention vector dim"],
        heads: Float[Tensor, "attention vector joined"] | None = None,
    ) -> list[Tensor]:
        """Run the model; return the activation at the first position of each site, [vector, ...], on the CPU.

        Args:
            sites: the sites to return.
            inputs: vectors that replace the input of each attention, as a batch.
            heads: vectors that replace the outputs of all heads of each attention; None: they are not replaced.
        """
        size = inputs.shape[1]
        vectors = dict(zip(self.paths, inputs))
        rows = {} if heads is None else dict(zip(self.paths, heads))
        edit = {f"{path}.output_heads".removeprefix("."): partial(_in_heads, row) for path, row in rows.items()}
        with (
            hooked(((path, self.modules[path]) for path in self.paths), before=partial(_replaced_inputs, vectors)),
            capture(self.model, sites, edit=edit, device="cpu") as captured,
        ):
            self.inputs.repeat(size).run(self.model)
        activations = single_invocations(captured)
        return [_first_position(site, activations[site], size) for site in sites]


def _drawn(*shape: int) -> Tensor:
    """Return standard normal numbers, the same in each call."""
    return torch.randn(shape, generator=torch.Generator("cpu").manual_seed(0), device="cpu", dtype=torch.float32)


def _noise(tensor: Tensor) -> Tensor:
    """Return random outputs of heads, so that no other module returns equal numbers."""
    return _drawn(*tensor.shape).to(tensor)


def _in_heads(vectors: Float[Tensor, "vector joined"], tensor: Tensor) -> Tensor:
    """Return vectors split into heads, [vector, head, position, head_dim], the same at each position."""
    _, heads, _, _ = tensor.shape
    return vectors.to(tensor).unflatten(-1, (heads, 1, -1)).expand(tensor.shape).contiguous()


def _replaced_inputs(
    vectors: Mapping[str, Tensor], path: str, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return an attention's arguments with its first tensor, wherever it is passed, replaced by vectors."""
    rows, (_, first) = vectors[path], first_tensor_argument(args, kwargs)
    assert first is not None  # its input was captured
    shape = [1] * (first.dim() - 1)
    shape[_batch_axis(f"{path}.input", first, len(rows))] = len(rows)
    rows = rows.to(first).reshape(*shape, -1).expand(first.shape).clone(memory_format=torch.contiguous_format)
    args = tuple(rows if value is first else value for value in args)
    return args, {name: rows if value is first else value for name, value in kwargs.items()}


def _batch_axis(site: str, tensor: Tensor, size: int) -> int:
    """Return the batch axis: 0, or 1 if positions are first."""
    if size in tensor.shape[: min(2, tensor.dim() - 1)]:
        return tensor.shape.index(size)
    raise ValueError(f"{site} is {list(tensor.shape)} for {size} texts, with no axis of them")


def _first_position(site: str, tensor: Tensor, size: int) -> Tensor:
    """Return the first position of [text, head, position, dim] or [text, position, dim], as [text, (head,) dim]."""
    tensor = tensor.movedim(_batch_axis(site, tensor, size), 0)
    return tensor if tensor.dim() == 2 else tensor[..., 0, :].clone()


def _is_linear(start: Tensor, end: Tensor, expected: Tensor, in_heads: bool) -> bool:
    """Return whether f(v) - f(0) equals the linear map of v, for a random vector v.

    Args:
        start: f(0), the output for zeros.
        end: f(v), the output for the random vector.
        expected: the linear map of v.
        in_heads: whether the vector replaced outputs of heads, whose projection may be zero.
    """
    if not in_heads and _is_constant(start, end):
        return False
    error = (end.float() - start.float() - expected).abs().max()
    return bool(error <= TOLERANCES.get(end.dtype, TOLERANCE) * expected.abs().max())


def _is_constant(start: Tensor, end: Tensor) -> bool:
    """Return whether f(v) equals a nonzero f(0), that is, the output does not depend on the input."""
    change = (end.float() - start.float()).abs().max()
    return bool(start.any() and change <= TOLERANCES.get(end.dtype, TOLERANCE) * start.float().abs().max())

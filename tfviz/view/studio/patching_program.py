"""Export a language model as a program whose activations can be replaced by those of another run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode, model_device
from tfviz.look.capture import capture
from tfviz.portable.export import export
from tfviz.portable.program import Program
from tfviz.shapes import Float, Int
from tfviz.study.block_replay import BlockReplay, hooked
from tfviz.study.inputs import Inputs
from tfviz.study.sites import site_axis

EXAMPLE_LENGTH = 5  # tokens of the text with which a model is traced
HEADS = ".output_heads"
TABLES = ("residual", "heads")  # kinds of targets: the residual stream before a block, the output of a head
EQUAL_INPUT_TOLERANCE = 1e-5  # relative, to identify the input of the output projection as the heads' outputs
Replace = Callable[[Tensor], Tensor]


class PatchSites(NamedTuple):
    """The modules at which a model can be patched, and the sizes of their activations.

    Attributes:
        blocks: paths of the blocks of its stack, whose input is the residual stream.
        dim: width of the residual stream.
        attentions: paths of the attention modules.
        projections: for each attention, the path of its output projection, which takes the concatenated head outputs.
        heads: number of heads of each attention.
        size: width of a head's output.
    """

    blocks: list[str]
    dim: int
    attentions: list[str]
    projections: list[str]
    heads: int
    size: int

    @property
    def block_labels(self) -> list[str]:
        """A label for each block: its number, if that is unique."""
        return site_axis([f"{path}.input" for path in self.blocks])[1]

    @property
    def attention_labels(self) -> list[str]:
        """A label for each attention: its number, if that is unique."""
        return site_axis([f"{path}{HEADS}" for path in self.attentions])[1]


def find_sites(model: nn.Module) -> PatchSites:
    """Return the modules at which a model can be patched, found by running it once.

    Raises:
        ValueError: there is no stack of blocks, or no attention whose heads' outputs pass through one projection; sizes
            differ from layer to layer.
    """
    ids = _example_ids(model)
    name, inputs = type(model).__name__, Inputs.from_prompt("ids", ids, model)
    replay, taken = BlockReplay(model, inputs), dict[str, list[Tensor]]()
    leaves = [(path, module) for path, module in model.named_modules() if not list(module.children())]

    def keep(path: str, _: nn.Module, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        if args and isinstance(args[0], Tensor):
            taken.setdefault(path, []).append(args[0])

    try:
        with eval_mode(model), replay.observe(), hooked(leaves, keep), capture(model, f"*{HEADS}") as captured:
            inputs.run(model)
        blocks = replay.stack()
    except LookupError as error:
        raise ValueError(f"{name} cannot be patched in a page: {error}") from error
    residual = {path: replay.block_inputs[path] for path in blocks}
    outputs = {site.removesuffix(HEADS): captured[site] for site in captured if len(captured.stored(site)) == 1}
    found = {path: _projection_of(taken, path, heads) for path, heads in outputs.items()}
    missing = [path for path, projection in found.items() if projection is None]
    if missing or not outputs:
        raise ValueError(
            f"{name} cannot be patched in a page: the outputs of the heads of {(missing or ['its attention'])[0]} do "
            "not pass, one after another, through a projection that is a module; use study.patch instead"
        )
    sizes = {(one.shape[1], one.shape[3]) for one in outputs.values()}
    if len(sizes) > 1 or len({tensor.shape[2] for tensor in residual.values()}) > 1:
        raise ValueError(
            f"{name} cannot be patched in a page: its layers differ in the number or size of their heads; use "
            "study.patch instead, for the layers of each size"
        )
    projections = [str(projection) for projection in found.values()]
    _, heads, _, size = next(iter(outputs.values())).shape
    return PatchSites(blocks, residual[blocks[0]].shape[2], list(outputs), projections, heads, size)


def _projection_of(taken: Mapping[str, list[Tensor]], attention: str, heads: Tensor) -> str | None:
    """Return the path of an attention's output projection; None if no module takes the concatenated head outputs.

    Args:
        taken: path of each module without submodules -> the input of each of its calls.
        attention: path of the attention.
        heads: outputs of its heads, [batch, head, position, dim].
    """
    joined = heads.transpose(1, 2).flatten(2)
    tolerance = EQUAL_INPUT_TOLERANCE * float(joined.abs().max())
    for path, inputs in taken.items():
        is_inside = path.startswith(f"{attention}.") and len(inputs) == 1 and inputs[0].shape == joined.shape
        if is_inside and float((inputs[0] - joined).abs().max()) <= tolerance:
            return path
    return None


def export_patching(model: nn.Module, sites: PatchSites, dtype: str) -> Program:
    """Export a model as a program whose activations can be replaced at chosen targets.

    The program takes ids [1, position], `residual_at` [layer, position], `residual` [layer, position, dim], `heads_at`
    [layer, head, position] and `heads` [layer, position, head, dim]. Where `residual_at` is True, `residual` replaces
    the activations of the model, and likewise for heads. The program returns the logits after the last token, [vocab],
    and the `residual` and `heads` of this run, before replacement.

    Args:
        model: returns logits, or an object that has them as `.logits`, for ids [batch, position].
        sites: where the model can be patched.
        dtype: storage format of the weights; see `export`.

    Raises:
        ValueError: the model cannot be exported.
    """
    ids = _example_ids(model)
    count, layers = ids.shape[1], (len(sites.blocks), len(sites.projections))

    def read(ids: Tensor, residual_at: Tensor, residual: Tensor, heads_at: Tensor, heads: Tensor) -> dict[str, Any]:
        own: dict[str, list[Tensor]] = {"residual": [], "heads": []}

        def read_residual(layer: int, tensor: Tensor) -> Tensor:
            own["residual"].append(tensor[0])
            return torch.where(residual_at[layer][None, :, None], residual[layer][None], tensor)

        def read_heads(layer: int, tensor: Tensor) -> Tensor:
            apart = tensor.unflatten(-1, (sites.heads, sites.size))
            own["heads"].append(apart[0])
            return torch.where(heads_at[layer].mT[None, :, :, None], heads[layer][None], apart).flatten(2)

        hooks = {**_numbered(sites.blocks, read_residual), **_numbered(sites.projections, read_heads)}
        with _replacing_inputs(model, hooks):
            logits = Inputs.from_prompt("ids", ids, model).with_last_logits(model).logits(model)
        return {"logits": logits[0, -1], **{name: torch.stack(tensors) for name, tensors in own.items()}}

    example = (
        ids,
        torch.zeros(layers[0], count, dtype=torch.bool, device=ids.device),
        torch.zeros(layers[0], count, sites.dim, device=ids.device),
        torch.zeros(layers[1], sites.heads, count, dtype=torch.bool, device=ids.device),
        torch.zeros(layers[1], count, sites.heads, sites.size, device=ids.device),
    )
    lengths = {"ids": 1, "residual_at": 1, "residual": 1, "heads_at": 2, "heads": 1}
    return export(read, *example, lengths={name: {axis: "positions"} for name, axis in lengths.items()}, dtype=dtype)


def patched_logits(
    model: nn.Module, sites: PatchSites, texts: Int[Tensor, "2 position"], target: tuple[str, int, int]
) -> Float[Tensor, "vocab"]:
    """Return the logits after the last token of the second text, with one activation of the first text's run.

    Both texts are run as one batch, in which the activation is copied from the first to the second.

    Args:
        model: as for `export_patching`.
        sites: where the model can be patched.
        texts: the ids of both texts.
        target: ("residual", layer, position) or ("heads", layer, head).

    Raises:
        ValueError: the layer, position or head does not exist.
    """
    table, layer, at = target
    paths, count = (sites.blocks, texts.shape[1]) if table == "residual" else (sites.projections, sites.heads)
    if not (0 <= layer < len(paths) and 0 <= at < count):
        raise ValueError(f"there is no {list(target)}; layers go from 0 to {len(paths) - 1}, places to {count - 1}")

    def copied(tensor: Tensor) -> Tensor:
        changed = tensor.clone()
        parts = (
            changed.transpose(0, 1) if table == "residual" else changed.unflatten(-1, (sites.heads, -1)).movedim(2, 0)
        )
        first, second = parts[at].unbind(0)
        second.copy_(first)
        return changed

    with _replacing_inputs(model, {paths[layer]: copied}):
        logits = Inputs.from_prompt("texts", texts, model).with_last_logits(model).logits(model)
    return logits[1, -1]


def _numbered(paths: Sequence[str], replace: Callable[[int, Tensor], Tensor]) -> dict[str, Replace]:
    return {path: partial(replace, layer) for layer, path in enumerate(paths)}


def _replacing_inputs(model: nn.Module, replace: Mapping[str, Replace]) -> AbstractContextManager[None]:
    """Return a context in which functions, by path of a module, replace the first tensor that the module takes."""

    def before(path: str, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args:
            return (replace[path](args[0]), *args[1:]), kwargs
        name = next(name for name, value in kwargs.items() if isinstance(value, Tensor))
        return args, {**kwargs, name: replace[path](kwargs[name])}

    return hooked([(path, model.get_submodule(path)) for path in replace], before)


def _example_ids(model: nn.Module) -> Tensor:
    return torch.arange(EXAMPLE_LENGTH, device=model_device(model))[None] % 2

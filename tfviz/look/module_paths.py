"""Dotted paths: whether one lies inside another, and the paths of a model's blocks, such as `transformer.h.0`."""

from __future__ import annotations

from torch import nn

from tfviz.compiled import uncompiled


def is_within(path: str, outer: str) -> bool:
    """Return whether a path equals `outer` or lies inside it; all paths lie inside the model, "".

    >>> is_within("layers.1.pattern", "layers.1"), is_within("layers.10.pattern", "layers.1")
    (True, False)
    """
    return not outer or path == outer or path.startswith(f"{outer}.")


def blocks(model: nn.Module) -> list[str]:
    """Return the paths of a model's blocks, in order, from which exact site names can be built.

    Blocks are the members of an `nn.ModuleList`, or of an `nn.Sequential` whose members are all of one class and have
    submodules. Lists inside a block are ignored. For an encoder-decoder, the blocks of both stacks are returned.

    A glob's `*` also matches dots: `"*.input"` matches the inputs of all modules, including those inside blocks.
    `sites=[f"{block}.input" for block in blocks(model)]` matches only the residual stream before each block.

    >>> from tfviz import models
    >>> blocks(models.GPT(11, layers=3, heads=2, dim=4))
    ['blocks.0', 'blocks.1', 'blocks.2']
    """
    found: list[str] = []
    for path, module in uncompiled(model).named_modules():
        is_inside = any(is_within(path, block) for block in found)
        if _is_stack(module) and not is_inside:
            found += [f"{path}.{name}".removeprefix(".") for name, _ in module.named_children()]
    return found


def _is_stack(module: nn.Module) -> bool:
    members = list(module.children())
    if isinstance(module, nn.Sequential):
        return len({type(member) for member in members}) == 1 and all(
            any(True for _ in member.children()) for member in members
        )
    return isinstance(module, nn.ModuleList)

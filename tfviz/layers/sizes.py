"""What tensors that meet in a layer must be like, told before PyTorch's kernels tell it in their own words.

Nothing is looked at while a model is compiled or exported: sizes may be symbols there.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.doors import what


def batch(dim: int, like: object = None, **given: object) -> None:
    """Each is a batch of texts, batch position dim.

    Args:
        like: a module with weights; if those are float32, they must be, too.

    >>> batch(8, x=torch.zeros(5, 8))
    Traceback (most recent call last):
    ValueError: x is [5, 8]; it must be batch position dim, with dim 8: of one text x[None]
    """
    if torch.compiler.is_compiling():
        return
    for name, one in given.items():
        if not isinstance(one, Tensor):
            raise TypeError(f"{name} is {what(one)}; give a tensor, batch position dim")
        if one.dim() != 3 or one.shape[-1] != dim:
            single = f": of one text {name}[None]" if one.dim() == 2 and one.shape[-1] == dim else ""
            raise ValueError(f"{name} is {list(one.shape)}; it must be batch position dim, with dim {dim}{single}")
        if not one.is_floating_point():
            raise ValueError(f"{name} is {one.dtype}; give floats: {name}.float()")
        if one.dtype is not torch.float32:
            _like(like, **{name: one})


def _like(module: object, **given: Tensor) -> None:
    """Each is float32, if the weights of a module are; others may be cast on the way."""
    wide = getattr(getattr(module, "weight", None), "dtype", None) == torch.float32
    for name, one in given.items():
        if wide and one.dtype != torch.float32 and not torch.is_autocast_enabled(one.device.type):
            raise ValueError(f"{name} is {one.dtype}, the weights are torch.float32; give {name}.float()")


def words(of: nn.Linear, hidden: int, x: object, state: object, parts: int) -> None:
    """A cell's word, batch dim, that this layer takes, and its state: so many tensors, batch hidden."""
    if torch.compiler.is_compiling():
        return
    dim = of.in_features
    if not isinstance(x, Tensor) or x.dim() != 2 or x.shape[-1] != dim or not x.is_floating_point():
        said = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else what(x)
        raise ValueError(f"x is {said}; it must be one word of each text, floats, batch dim, with dim {dim}")
    if x.dtype is not torch.float32:
        _like(of, x=x)
    if (
        not isinstance(state, tuple | list)
        or [getattr(one, "shape", None) for one in state] != [(len(x), hidden)] * parts
    ):
        raise ValueError(f"state must be a tuple of {parts}, each batch hidden, [{len(x)}, {hidden}]: cell.start(x)")


def parts(**given: tuple[object, str, str]) -> None:
    """Each is an instance that has a method.

    >>> parts(cache=(None, "extend", "KeyValues()"))
    Traceback (most recent call last):
    TypeError: cache is None; give an instance, such as KeyValues(), or leave it out
    """
    for name, (one, method, such) in given.items():
        if isinstance(one, type | list) or not hasattr(one, method):
            raise TypeError(f"{name} is {what(one)}; give an instance, such as {such}, or leave it out")


def embedded(dim: int, x: Tensor, start: int) -> None:
    """A batch to which positions of this width are added, from `start` on."""
    if not torch.compiler.is_compiling():
        batch(dim, x=x)
        if isinstance(start, bool) or not isinstance(start, int | torch.SymInt | Tensor):
            raise TypeError(f"start is {what(start)}; give a whole number")
        if isinstance(start, int) and start < 0:
            raise ValueError(f"start is {start}; it must be at least 0")


def heads(width: int | None, count: int | None, x: Tensor, name: str, start: int = 0) -> None:
    """Queries or keys have heads of the width and number that positions were built for; the first stands at `start`."""
    if torch.compiler.is_compiling():
        return
    if x.dim() != 4 or not x.is_floating_point():
        raise ValueError(f"heads are {x.dtype} {list(x.shape)}; give floats, batch head position dim")
    if isinstance(start, int) and start < 0:
        raise ValueError(f"the first of these stands at {start}; queries are the last of the positions of the keys")
    if (width is not None and x.shape[-1] != width) or (count is not None and x.shape[1] != count):
        built = ", ".join(said for one, said in ((count, f"{count} heads"), (width, f"width {width}")) if one)
        raise ValueError(f"heads are {list(x.shape)}, {name} positions were built for {built}; build them for these")


def attention(query: Tensor, key: Tensor, value: Tensor, mask: object, name: str = "mask") -> None:
    """Queries, keys and values of one width and number, batch head position dim, and a mask that fits them."""
    if torch.compiler.is_compiling():
        return
    if not (isinstance(query, Tensor) and isinstance(key, Tensor) and isinstance(value, Tensor)):
        given = ", ".join(what(one) for one in (query, key, value))
        raise TypeError(f"query, key and value are {given}; each must be a tensor, batch head position dim")
    alike = query.dtype == key.dtype == value.dtype and query.is_floating_point()
    if not alike and not torch.is_autocast_enabled(query.device.type):
        given = ", ".join(str(one.dtype).removeprefix("torch.") for one in (query, key, value))
        raise ValueError(f"query, key and value are {given}; they must be of one float type: x.float()")
    lead, queries, keys = query.shape[:-2], query.shape[-2:], key.shape[-2:]
    alike = lead == key.shape[:-2] == value.shape[:-2] and query.dim() > 1
    if not alike or queries[1] != keys[1] or keys[0] != value.shape[-2]:
        _unlike(query, key, value)
    if isinstance(mask, Tensor):
        if mask.dim() < 2:
            raise ValueError(f"{name} is {list(mask.shape)}; it must be batch head query key")
        cells = (*lead, queries[0], keys[0])
        if any(one not in (1, many) for one, many in zip(reversed(mask.shape), reversed(cells))):
            raise ValueError(
                f"{name} is {list(mask.shape)}, the scores are {list(cells)}; an axis must be of one size, or 1"
            )


def ids(**given: object) -> None:
    """Each holds whole numbers, a batch of texts."""
    for name, one in given.items():
        be = "are" if name.endswith("s") else "is"
        if not isinstance(one, Tensor):
            raise TypeError(f"{name} {be} {what(one)}; give a tensor of whole numbers, batch position")
        if one.dtype not in (torch.int64, torch.int32):
            kind = str(one.dtype).removeprefix("torch.")
            raise ValueError(f"{name} {be} {kind}; give whole numbers (int64): {name}.long()")
        if one.dim() != 2:
            single = f": of one text {name}[None]" if one.dim() == 1 else ""
            raise ValueError(f"{name} {be} {list(one.shape)}; give a batch of texts, batch position{single}")


def caches(cache: object, count: int, fits: Callable[[Any], bool], *, texts: int, new: bool = False) -> None:
    """What is kept of so many texts: for each of so many layers one that fits; or nothing.

    Args:
        new: a cache that is new is an empty list.
    """
    if torch.compiler.is_compiling() or (isinstance(cache, tuple | list) and not cache and (new or cache == ())):
        return
    kept = cache if isinstance(cache, list if new else list | tuple) else []
    if len(kept) != count or not all(fits(one) for one in kept):
        held = f"{len(kept)} x {what(kept[0])}" if kept else what(cache)
        parts = f"{count} part{'s' * (count != 1)} for {texts} text{'s' * (texts != 1)}"
        raise ValueError(f"cache holds {held}; it must be this model's own, of {parts}: model.new_cache()")


def some(x: Tensor) -> None:
    """A text of one position at least."""
    if not torch.compiler.is_compiling() and not x.shape[1]:
        raise ValueError("the text is empty; this model needs at least one position")


def by(name: str, part: Callable[..., Any], *given: Tensor) -> Any:
    """What a part of the user's makes of tensors; what it raises becomes a sentence with its name."""
    if torch.compiler.is_compiling():
        return part(*given)
    try:
        return part(*given)
    except torch.OutOfMemoryError:
        raise
    except (TypeError, RuntimeError) as error:
        shapes = ", ".join(f"{one.dtype} {list(one.shape)}" for one in given)
        raise TypeError(f"{name} is {what(part)}, which cannot take {shapes}: {error}") from error


def alike(one: object, other: Tensor, *axes: int) -> bool:
    """Whether it is a tensor of the same type and number of axes, and as long along these."""
    if not isinstance(one, Tensor) or one.dim() != other.dim() or one.dtype != other.dtype:
        return False
    return all(one.shape[axis] == other.shape[axis] for axis in axes)


def kept(before: Tensor, after: Any, name: str) -> Any:
    """What a part made of a tensor, which has its shape."""
    if not torch.compiler.is_compiling() and getattr(after, "shape", None) != before.shape:
        raise ValueError(f"{name} made {what(after)} of {list(before.shape)}; it must keep the shape")
    return after


def shared(texts: Tensor, sources: Tensor) -> None:
    """There is a source for each text, or one for so many texts that stand side by side."""
    if not torch.compiler.is_compiling() and (not len(sources) or len(texts) % len(sources)):
        raise ValueError(f"{len(texts)} texts cannot be shared out to {len(sources)} sources side by side")


def made(name: str, part: Callable[..., Any], such: str, *given: int, takes: int = 1) -> nn.Module:
    """The module that a part makes, of these sizes; its forward takes so many tensors.

    >>> made("norm", nn.LayerNorm(8), "nn.RMSNorm", 8)
    Traceback (most recent call last):
    TypeError: norm is a LayerNorm; give what makes a module, such as nn.RMSNorm
    """
    if not isinstance(part, nn.Module | Tensor):
        try:
            one = part(*given)
        except TypeError as error:
            raise TypeError(f"{name} is {what(part)}; give what makes a module, such as {such}") from error
        if isinstance(one, nn.Module):
            _check_forward(name, part, such, one, takes)
            return one
    raise TypeError(f"{name} is {what(part)}; give what makes a module, such as {such}")


def _check_forward(name: str, part: object, such: str, made: nn.Module, takes: int) -> None:
    try:
        signature(made.forward).bind(*takes * [None])
    except TypeError as error:
        tensors = "one tensor" if takes == 1 else f"{takes} tensors"
        raise TypeError(f"{name} is {what(part)}; its forward must take {tensors}, as {such}: {error}") from error


def _unlike(query: Tensor, key: Tensor, value: Tensor) -> None:
    """What is wrong with them, if it is not only that an axis of 1 is spread out."""
    said = f"query is {list(query.shape)}, key is {list(key.shape)}, value is {list(value.shape)}"
    if len({query.dim(), key.dim(), value.dim()}) != 1 or query.dim() < 2:
        raise ValueError(f"{said}; each must be batch head position dim")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"{said}; queries and keys must have one width")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"{said}; there must be as many values as keys")
    try:
        torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except RuntimeError as error:
        raise ValueError(f"{said}; their batches or heads do not fit together") from error

"""The process that compiles a language model's step of one token: `torch.export`, then AOTInductor.

    python -m tfviz.generate.building MODEL FILE FAILURE

PyTorch's compiler would call a library for every product, and these calls are what takes the time where one row meets
a small matrix. So products and attention are written here as sums, which become loops of one function.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from tfviz.files import atomic
from tfviz.shapes import Float, Int

EXAMPLE = 9  # positions that are kept while it is followed


class Kept:
    """Keys and values of one attention as the step is given them; stands for `layers.KeyValues`."""

    def __init__(self, kept: Float[Tensor, "two head position width"]):
        self.kept, self.length = kept, kept.shape[2]

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        self.new = torch.cat((key, value))[:, :, 0]
        return torch.cat((self.kept[:1], key), 2), torch.cat((self.kept[1:], value), 2)


class Step(nn.Module):
    """One token more: its logits, and the new key and value of each layer."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(
        self, ids: Int[Tensor, "1 1"], kept: Float[Tensor, "layer two head position width"]
    ) -> tuple[Float[Tensor, "vocab"], Float[Tensor, "layer two head width"]]:
        cache = [Kept(layer) for layer in kept.unbind(0)]
        with Sums():
            logits = self.model(ids, cache)[0, -1]
        return logits, torch.stack([one.new for one in cache])


class Sums(TorchFunctionMode):
    """`linear` and attention of a single row as sums of products.

    Each result is made real: else the compiler would compute a norm or an activation again in every term of the sum
    that it is a part of.
    """

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is functional.linear:
            return _linear(*args, **(kwargs or {}))
        if func is functional.scaled_dot_product_attention:
            return _attend(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _real(x: Tensor) -> Tensor:
    return torch.ops._inductor_test.realize(x)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    made = (weight * _real(x.reshape(1, -1))).sum(-1)
    return _real(made if bias is None else made + bias).reshape(*x.shape[:-1], -1)


def _attend(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0
) -> Tensor:
    scores = (query * key).sum(-1) * query.shape[-1] ** -0.5
    if attn_mask is not None:
        mask = attn_mask[:, :, 0]
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    scores = _real(scores)
    weights = _real((scores - scores.amax(-1, keepdim=True)).exp())
    return _real((weights.unsqueeze(-1) * value).sum(-2, keepdim=True) / weights.sum(-1)[..., None, None])


@torch.no_grad()
def compiled(model: Any, draft: Path) -> None:
    """Write the step of a model to a file."""
    import torch._inductor
    import torch._inductor.test_operators  # where `realize` is
    from torch._inductor.graph import GraphLowering

    # or else short vectors become this model's numbers, whatever the weights
    setattr(GraphLowering, "can_inline_constant", staticmethod(lambda _: False))  # noqa: B010
    cache, ids = model.eval().new_cache(), torch.zeros(1, EXAMPLE, dtype=torch.long)
    model(ids[:, : cache[0].capacity - 1], cache)
    kept = torch.stack([torch.cat((one.keys, one.values)) for one in cache])
    length = torch.export.Dim("length", min=2, max=kept.shape[3] - 1)
    given = ids[:, :1], kept[:, :, :, : cache[0].length]
    program = torch.export.export(Step(model), given, dynamic_shapes=({}, {3: length}))
    how = {"aot_inductor.package_constants_in_so": False, "cpp.threads": 1}
    torch._inductor.aoti_compile_and_package(program, package_path=str(draft), inductor_configs=how)


def main(source: str, target: str, failure: str) -> None:
    """Compile the model in one file into another; or write beside it why that was not possible."""
    with tempfile.TemporaryDirectory() as room:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = room
        try:
            model = torch.load(source, weights_only=False)  # which our own parent has just written
            with atomic(target) as draft:
                compiled(model, draft)
        except Exception:
            Path(failure).write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os.unlink(source)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(19)
    torch.set_num_threads(1)
    main(*sys.argv[1:])

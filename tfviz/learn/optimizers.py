"""Optimizers: AdamW; Muon, whose steps of matrices have singular values of about 1 (Jordan et al. 2024)."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw as adamw_step

from tfviz import bounds
from tfviz.learn import plan, shards
from tfviz.shapes import Float

# Each (a, b, c) is a polynomial of the singular values, a x + b x^3 + c x^5, that brings them closer to 1: the first
# four of those that Amsel et al. 2025 ("The Polar Express", section 3) find best for values from 0.001 on
POLYNOMIALS = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
)
LARGEST = 1.02  # by which the norm is taken larger than it is, so that rounding leads no value above 1
# Root mean square of a matrix's step, in rates. AdamW's is about 0.2, to which Liu et al. 2025 (section 2.2) bring
# Muon's; small models bear, and learn from, three times as much, and so share the rate that AdamW likes.
SIZE = 0.6
TINY = 1e-20
AT_ONCE = 2**24  # numbers of matrices that are moved together


def adamw(model: nn.Module, rate: float, decay: float = 0.1) -> torch.optim.Optimizer:
    """AdamW that decays matrices and leaves biases and norms alone (Loshchilov & Hutter 2019)."""
    _check(model, rate, decay)
    return torch.optim.AdamW(_groups(model.parameters(), decay), lr=rate, betas=(0.9, 0.95), fused=True)


def muon(model: nn.Module, rate: float, decay: float = 0.1) -> torch.optim.Optimizer:
    """Muon for the matrices of a model's blocks; AdamW for the rest: embeddings, norms, biases, what makes the logits.

    Blocks are the members of a `ModuleList`, in which nothing else should lie; embeddings there, and what is tied to
    one, are left to AdamW. The steps of both kinds have sizes that one rate suits. A step costs more than AdamW's, by a
    few products of each matrix with itself: a quarter of a small model's whole step, next to nothing of one with large
    batches.
    """
    _check(model, rate, decay)
    if any(weight.is_complex() for weight in model.parameters()):
        raise ValueError("model has complex weights, which Muon and a fused AdamW do not move; give another optimizer")
    inner = list(matrices(model))
    inside = set(inner)
    rest = _groups((weight for weight in model.parameters() if weight not in inside), decay)
    groups = [{"params": inner, "weight_decay": decay, "matrices": True}, *rest]
    return Muon([group for group in groups if group["params"]], lr=rate)


def _check(model: nn.Module, rate: float, decay: float) -> None:
    bounds.above(0, rate=rate)
    bounds.at_least(0, decay=decay)
    plan.check_trainable(model)


def _groups(weights: Iterable[nn.Parameter], decay: float) -> list[dict[str, Any]]:
    """What decays and what does not."""
    weights = list(weights)
    matrices, vectors = ([weight for weight in weights if (weight.dim() > 1) == wide] for wide in (True, False))
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def matrices(model: nn.Module) -> Iterator[nn.Parameter]:
    """The weights with two axes inside blocks, each once; none of an embedding, whoever shares it."""
    seen = {one.weight for one in model.modules() if isinstance(one, nn.Embedding | nn.EmbeddingBag)}
    for blocks in (module for module in model.modules() if isinstance(module, nn.ModuleList)):
        new = [weight for weight in blocks.parameters() if weight.dim() == 2 and weight not in seen]
        seen.update(new)
        yield from new


class Muon(torch.optim.Optimizer):
    """Moves groups with `matrices=True` by the orthogonal part of their momentum, the others as AdamW does."""

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float):
        usual = {"weight_decay": 0.1, "momentum": 0.9, "betas": (0.9, 0.95), "eps": 1e-8}
        usual |= {"matrices": False, "fused": True}  # fused: of AdamW, whose count of steps then moves to its device
        super().__init__(groups, {"lr": lr, **usual})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        """Move every weight that has a gradient."""
        with torch.enable_grad():
            loss = closure() if closure else None
        for group in self.param_groups:
            moved = [weight for weight in group["params"] if weight.grad is not None]
            (self._matrices if group["matrices"] else self._rest)(moved, group)
        return loss

    def _matrices(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        for same in _alike(weights):
            ahead = torch.stack([shards.whole(self._momentum(weight, group["momentum"])) for weight in same])
            steps = orthogonal(ahead.to(torch.promote_types(ahead.dtype, torch.float32))).to(ahead.dtype)
            size = group["lr"] * SIZE * max(ahead.shape[1:]) ** 0.5
            for weight, step in zip(same, steps):
                weight.mul_(1 - group["lr"] * group["weight_decay"]).add_(shards.cut(step, weight), alpha=-size)

    def _momentum(self, weight: Tensor, share: float) -> Tensor:
        """The mean of past gradients, looked at one step ahead (Nesterov)."""
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(weight.grad, 1 - share)
        return weight.grad.lerp(state["momentum"], share)  # type: ignore[union-attr]

    def _rest(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        for weight in weights:
            if not self.state[weight]:
                zeros = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
                self.state[weight] = {"step": torch.zeros((), dtype=torch.float32, device=weight.device), **zeros}
        means, squares, steps = ([self.state[w][name] for w in weights] for name in ("exp_avg", "exp_avg_sq", "step"))
        beta1, beta2 = group["betas"]
        how = {"lr": group["lr"], "weight_decay": group["weight_decay"], "eps": group["eps"], "maximize": False}
        how |= {"beta1": beta1, "beta2": beta2, "amsgrad": False, "fused": group["fused"]}
        adamw_step(weights, [w.grad for w in weights], means, squares, [], steps, **how)  # type: ignore[misc]


def _alike(weights: list[Tensor]) -> Iterator[list[Tensor]]:
    """Matrices of one shape, as many at a time as do not take much memory: each needs four times its own."""
    for shape, alike in groupby(sorted(weights, key=lambda one: tuple(one.shape)), key=lambda one: one.shape):
        same, many = list(alike), max(1, AT_ONCE // max(1, shape.numel()))
        for start in range(0, len(same), many):
            yield same[start : start + many]


def orthogonal(matrices: Float[Tensor, "batch row column"]) -> Float[Tensor, "batch row column"]:
    """U V^T of each matrix U S V^T, roughly: singular values from a thousandth of the norm on come to 0.42 to 1.58.

    All the polynomials are of the small product X X^T, so that only it is multiplied again and again: give float32,
    for bfloat16 is too coarse for it, and autocast is switched off.
    """
    with torch.autocast(matrices.device.type, enabled=False):
        return _orthogonal(matrices)


def _orthogonal(matrices: Tensor) -> Tensor:
    if matrices.shape[1] > matrices.shape[2]:
        return _orthogonal(matrices.mT).mT
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) * LARGEST + TINY)
    product, whole = x @ x.mT, None
    for place, (a, b, c) in enumerate(POLYNOMIALS, 1):
        factor = torch.baddbmm(product, product, product, beta=b, alpha=c)
        factor.diagonal(dim1=1, dim2=2).add_(a)
        whole = factor if whole is None else factor @ whole
        if place < len(POLYNOMIALS):
            product = factor @ product @ factor
    return whole @ x

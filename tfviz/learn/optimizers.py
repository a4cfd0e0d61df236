"""Optimizers: AdamW, and Muon, whose updates of matrices have singular values near 1 (Jordan et al. 2024)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.learn.batch_checks import check_trainable
from tfviz.learn.distributed import full_tensor, shard_like
from tfviz.shapes import Float

# Each (a, b, c) is a polynomial a x + b x^3 + c x^5 that brings the singular values x closer to 1: the first four
# optimal polynomials of Amsel et al. 2025 ("The Polar Express", section 3) for singular values from 0.001 on
POLYNOMIAL_COEFFICIENTS = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
)
NORM_MARGIN = 1.02  # factor of the norm, so that rounding does not raise a singular value above 1
# Root mean square of a matrix's update, in learning rates. Liu et al. 2025 (section 2.2) scale Muon's updates to 0.2,
# about that of AdamW. Small models learn faster with 0.6, and can use AdamW's learning rate.
UPDATE_RMS = 0.6
EPSILON = 1e-20
MAX_STACKED_NUMBERS = 2**24  # elements of the matrices that are orthogonalized in one batch


def adamw(model: nn.Module, lr: float, weight_decay: float = 0.1) -> torch.optim.Optimizer:
    """Return an AdamW optimizer that decays matrices, but not biases and norms (Loshchilov & Hutter 2019)."""
    _check_settings(model, lr, weight_decay)
    return torch.optim.AdamW(_decay_groups(model.parameters(), weight_decay), lr=lr, betas=(0.9, 0.95), fused=True)


def muon(model: nn.Module, lr: float, weight_decay: float = 0.1) -> torch.optim.Optimizer:
    """Return a Muon optimizer for the matrices of a model's blocks, with AdamW for embeddings, norms, biases, logits.

    Blocks are the members of a `ModuleList`, which should contain nothing else. Embeddings in it, and weights tied to
    an embedding, are updated by AdamW. Both kinds of updates are scaled so that they share a learning rate. Compared
    with AdamW, a step computes a few additional products of each matrix with itself. They take a quarter of the step
    time of a small model, and a negligible part with large batches.

    Raises:
        ValueError: the model has complex weights.
    """
    _check_settings(model, lr, weight_decay)
    if any(weight.is_complex() for weight in model.parameters()):
        raise ValueError(
            "model has complex weights, which Muon and a fused AdamW do not support; give another optimizer"
        )
    hidden = list(hidden_matrices(model))
    in_hidden = set(hidden)
    rest = _decay_groups((weight for weight in model.parameters() if weight not in in_hidden), weight_decay)
    groups = [{"params": hidden, "weight_decay": weight_decay, "use_muon": True}, *rest]
    return Muon([group for group in groups if group["params"]], lr=lr)


def hidden_matrices(model: nn.Module) -> Iterator[nn.Parameter]:
    """Yield the weights with two axes inside blocks, each once, except those shared with an embedding."""
    seen = {module.weight for module in model.modules() if isinstance(module, nn.Embedding | nn.EmbeddingBag)}
    for blocks in (module for module in model.modules() if isinstance(module, nn.ModuleList)):
        new = [weight for weight in blocks.parameters() if weight.dim() == 2 and weight not in seen]
        seen.update(new)
        yield from new


class Muon(torch.optim.Optimizer):
    """An optimizer: Muon, with orthogonalized momentum, for groups with `use_muon=True`, and AdamW for the others."""

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float):
        defaults = {"lr": lr, "weight_decay": 0.1, "momentum": 0.9, "betas": (0.9, 0.95), "eps": 1e-8}
        defaults |= {"use_muon": False, "fused": True}  # fused AdamW keeps its step counts on the device
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        """Update every weight that has a gradient; return the result of `closure`."""
        with torch.enable_grad():
            loss = closure() if closure else None
        for group in self.param_groups:
            if group["use_muon"]:
                self._muon_step([weight for weight in group["params"] if weight.grad is not None], group)
        if rest := [{**group} for group in self.param_groups if not group["use_muon"]]:
            adamw = torch.optim.AdamW(rest)  # created anew: a copied or loaded optimizer has other groups and state
            adamw.state = self.state
            adamw.step()
        return loss

    def _muon_step(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        for same_shape in _stacks_by_shape(weights):
            momenta = torch.stack([full_tensor(self._momentum(weight, group["momentum"])) for weight in same_shape])
            updates = orthogonalize(momenta.to(torch.promote_types(momenta.dtype, torch.float32))).to(momenta.dtype)
            size = group["lr"] * UPDATE_RMS * max(momenta.shape[1:]) ** 0.5
            for weight, update in zip(same_shape, updates):
                weight.mul_(1 - group["lr"] * group["weight_decay"]).add_(shard_like(update, weight), alpha=-size)

    def _momentum(self, weight: Tensor, beta: float) -> Tensor:
        """Update the moving mean of the gradients; return it with one step of lookahead (Nesterov)."""
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(weight.grad, 1 - beta)
        return weight.grad.lerp(state["momentum"], beta)  # type: ignore[union-attr]


def orthogonalize(matrices: Float[Tensor, "batch row column"]) -> Float[Tensor, "batch row column"]:
    """Return approximately U V^T of each matrix U S V^T by Newton-Schulz.

    Singular values from 0.001 of the norm on become 0.408 to 1.576 (measured); smaller ones become up to 413 times as
    large. The polynomials are computed in the small product X X^T.
    Rounding to the 10 bits of a GPU's TF32 changes singular values by about 1%. The 7 bits of bfloat16 are too coarse,
    so autocast is disabled.
    """
    if matrices.shape[1] > matrices.shape[2]:
        return orthogonalize(matrices.mT).mT
    with torch.autocast(matrices.device.type, enabled=False), _tf32(matrices.device):
        x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) * NORM_MARGIN + EPSILON)
        product, polynomial = x @ x.mT, None
        for index, (a, b, c) in enumerate(POLYNOMIAL_COEFFICIENTS, 1):
            factor = torch.baddbmm(product, product, product, beta=b, alpha=c)
            factor.diagonal(dim1=1, dim2=2).add_(a)
            polynomial = factor if polynomial is None else factor @ polynomial
            if index < len(POLYNOMIAL_COEFFICIENTS):
                product = factor @ product @ factor
        return polynomial @ x


@contextmanager
def _tf32(device: torch.device) -> Iterator[None]:
    """Let a CUDA GPU multiply float32 matrices in TF32, on its matrix units; the setting is restored."""
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _check_settings(model: nn.Module, lr: float, weight_decay: float) -> None:
    checks.above(0, lr=lr)
    checks.at_least(0, weight_decay=weight_decay)
    check_trainable(model)


def _decay_groups(weights: Iterable[nn.Parameter], weight_decay: float) -> list[dict[str, Any]]:
    """Return a group of matrices, which decay, and a group of vectors, which do not."""
    weights = list(weights)
    matrices, vectors = ([weight for weight in weights if (weight.dim() > 1) == wide] for wide in (True, False))
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def _stacks_by_shape(weights: list[Tensor]) -> Iterator[list[Tensor]]:
    """Yield lists of matrices of one shape and device, each of at most `MAX_STACKED_NUMBERS` numbers."""
    for (shape, _), group in groupby(
        sorted(weights, key=lambda weight: (tuple(weight.shape), str(weight.device))),
        key=lambda weight: (weight.shape, weight.device),
    ):
        same_shape, count = list(group), max(1, MAX_STACKED_NUMBERS // max(1, shape.numel()))
        for start in range(0, len(same_shape), count):
            yield same_shape[start : start + count]

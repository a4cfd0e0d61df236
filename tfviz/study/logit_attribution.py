"""Direct logit attribution: the contribution of each part of a model to a logit (Elhage et al. 2021; Nanda 2022)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from tfviz.compiled import uncompiled
from tfviz.eval_mode import eval_mode
from tfviz.look.capture import capture
from tfviz.look.map_arguments import range_labels
from tfviz.shapes import Float
from tfviz.study.frozen_norm import FrozenNorm
from tfviz.study.inputs import Inputs, Prompt
from tfviz.study.metrics import (
    LOG_PROBABILITY_UNIT,
    Metric,
    evaluate_metric,
    evaluate_metric_with_gradient,
    text_axis,
    unit_of,
)
from tfviz.study.padding import check_position, warning_of_shifted_positions
from tfviz.study.residual_terms import ResidualTerms, Term
from tfviz.study.sites import site_axis
from tfviz.study.table import Table
from tfviz.validation import check_callable

NOT_LINEAR = (
    "not linear in the output of the last norm; give a logit, or a difference, of a model without a cap on logits"
)
FAR_LOGIT = 50.0  # logits are scaled up to this, where no probability is linear in them
LINEAR_MODULES = ("Linear", "Conv1D", "Dropout", "Identity", "NonDynamicallyQuantizableLinear")


def logit_attribution(
    model: nn.Module, ids: Prompt, *, target: Metric, each: Literal["part", "head"] = "part"
) -> Table:
    """Return the contribution of each part of a model, or of each head, to a logit or a difference of logits.

    The residual stream is the sum of the embeddings and the outputs of all attentions and feed-forward networks. If the
    scale of the last norm is frozen, logits are linear in this sum, so the contributions of its terms add up to the
    target. They are direct effects only; `patch` also measures effects through later parts. A norm between heads and
    residual stream (Gemma 2, OLMo 2) is frozen in the same way.

    Args:
        model: the model to explain.
        ids: token ids [batch, position], or a model's arguments by name.
        target: a linear function of the logits that returns one number, or one for each text (`reduction="none"`), such
            as `study.logit(token)` or `study.logit_difference(right, other)`.
        each: "part": the embeddings, each attention, each feed-forward network, and the biases of the last norm and of
            the output, which add up to the target; "head": each head through its attention's output projection.

    Returns:
        A table [part] or [layer, head] in the unit of the target. If the target is one number for each text, the first
        axis is the text. The notes hold the value of the `target`.

    Raises:
        TypeError: the target is neither one number nor one for each text.
        ValueError: the model has no norm after its blocks, or one that is neither a LayerNorm nor an RMSNorm; the
            target is not linear in the last norm's output, or reads padding; the path from heads to the residual stream
            is not linear.

    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=1, heads=3, dim=6), torch.tensor([[1, 2, 3]])
    >>> logit_attribution(gpt, ids, target=lambda logits: logits[0, -1, 5]).axes["part"]
    ['tokens', 'positions', 'blocks.0.attention', 'blocks.0.feed_forward']
    """
    check_callable("logits", target=target)
    if unit_of(target) == LOG_PROBABILITY_UNIT:
        raise ValueError(f"a log-probability is {NOT_LINEAR}")
    model = uncompiled(model)
    inputs = Inputs.from_prompt("ids", ids, model)
    with eval_mode(model):
        run = _AttributedRun(model, inputs, target, each == "head")
        values, axes = run.by_head() if each == "head" else run.by_part()
    notes = {"model": type(model).__name__, "target": run.value.tolist()}
    return Table(
        values, text_axis(run.value) | axes, unit_of(target), f"What each {each} of {type(model).__name__} adds", notes
    )


class _AttributedRun:
    """One run of the model: the terms of its residual stream, and the direction onto which they are projected.

    Attributes:
        value: the value of the target, [] or [text]; contributions have the same shape.
        terms: the terms of the residual stream before the last norm.
        direction: [batch, position, dim], the gradient of the target with respect to the residual stream; the
            contribution of a term is its dot product with the direction.
    """

    def __init__(self, model: nn.Module, inputs: Inputs, target: Metric, keeps_heads: bool) -> None:
        self.model = model
        self.trace = ResidualTerms(model, freezes_norms=keeps_heads)
        self.heads: dict[str, tuple[Tensor, int]] = {}  # site -> outputs of heads, and the time
        edit = {"*.output_heads": self._keep} if keeps_heads else {}
        with torch.enable_grad(), self.trace.observe(), capture(model, [], edit=edit):
            with warning_of_shifted_positions(model, inputs):
                logits = inputs.logits(model)
            value = evaluate_metric_with_gradient("target", target, logits)
            summed = value.sum()
        check_position(target, inputs, logits)
        self.value = value.detach().float()
        self.largest = logits.detach().abs().max().item()
        self.noise = 8 * torch.finfo(_dtype(model)).eps * self.largest  # rounding error
        norm, stream, normed = self.trace.last_norm()
        with torch.enable_grad():  # gradients flow through it to the heads
            self.norm, self.terms = norm, self.trace.terms(stream)
        (gradient,) = torch.autograd.grad(summed, normed, retain_graph=True, allow_unused=True)
        if gradient is None:
            raise ValueError(
                f"no gradient of the target reaches {norm}: the model computes something after it that has no "
                f"gradient (such as the quantized layers of quantize_dynamic)"
            )
        frozen = FrozenNorm.from_module(model.get_submodule(norm), stream, normed)
        if frozen is None:
            kind = type(model.get_submodule(norm)).__name__
            raise ValueError(f"{norm} ({kind}) is neither a LayerNorm nor an RMSNorm that is known")
        self.bias = self._contribution(gradient * frozen.bias)
        self.direction = frozen.input_gradient(gradient)
        self.rest = self.value - self._contribution(gradient * normed.detach())
        self._check_linear(inputs, target)

    def _contribution(self, products: Float[Tensor, "batch position dim"]) -> Tensor:
        """Sum products of positions to one contribution, [], or to one of each text, [text], as the target has it."""
        if self.value.dim() and len(products) != len(self.value):
            raise ValueError(f"the residual stream is {list(products.shape)}, with no axis of texts: take their mean")
        products = products.float()
        return products.flatten(1).sum(1) if self.value.dim() else products.sum()

    def _keep(self, tensor: Tensor, site: str) -> Tensor:
        if site in self.heads:
            raise ValueError(
                f"{site} is computed several times in one run, by a module that the model calls again: use each='part'"
            )
        kept = tensor * 1 if tensor.requires_grad else tensor.detach().requires_grad_()
        self.heads[site] = kept, self.trace.tick()
        return kept * 1  # a model may change it in place

    def _check_linear(self, inputs: Inputs, target: Metric) -> None:
        """Raise ValueError unless the target scales with the last norm's output.

        The factors are large, since a probability is nearly linear in small logits, and of both signs, since a maximum
        is linear in positive factors.
        """
        factor = min(max(8.0, FAR_LOGIT / max(self.largest, 1e-6)), 1000.0)
        tolerance = factor * (0.02 * (self.value - self.rest).abs() + self.noise)
        for times in (factor, -factor):
            with capture(self.model, [], edit={self.norm: lambda tensor, times=times: tensor * times}):
                value = evaluate_metric(target, inputs.logits(self.model)).float()
            if ((value - self.rest - (self.value - self.rest) * times).abs() > tolerance).any():
                raise ValueError(f"the target is {NOT_LINEAR}")

    def by_part(self) -> tuple[Tensor, dict[str, list[str]]]:
        """Return the contributions of terms and biases, which add up to the target, and their axis.

        Raises:
            ValueError: the contributions do not add up to the target.
        """
        shares: dict[str, Tensor] = {}
        for term in self.terms:
            share = self._contribution(self.direction * term.tensor.detach())
            shares[term.name] = shares[term.name] + share if term.name in shares else share
        biases = {f"{self.norm}.bias": self.bias, "output.bias": self.rest}
        total = torch.stack([*shares.values(), *biases.values()]).sum(0)
        largest = torch.stack([self.value, *shares.values()]).abs().amax(0)
        wrong = ((total - self.value).abs() > 0.01 * largest + self.noise).flatten()
        if wrong.any():
            summed, value = (numbers.flatten()[wrong][0].item() for numbers in (total, self.value))
            raise ValueError(
                f"the parts sum to {summed:.4g}, but the target is {value:.4g}: the model changes its residual "
                f"stream in a way that is not captured, so there are no shares"
            )
        least = 1e-6 * self.value.abs().clamp(min=1)
        shares |= {name: share for name, share in biases.items() if (share.abs() > least).any()}
        return torch.stack(list(shares.values()), -1).float().cpu(), {"part": list(shares)}

    def by_head(self) -> tuple[Float[Tensor, "*batch layer head"], dict[str, list[str]]]:
        """Return the contribution of each head, and the axes.

        Raises:
            ValueError: the path from heads to the residual stream is not linear; layers have different numbers of
                heads.
        """
        shares: dict[str, Tensor] = {}
        before = self.terms[0].time
        waiting = {site: time for site, (_, time) in self.heads.items() if time > before}  # not in encoders
        for term in self.terms:
            for site in [site for site, time in waiting.items() if time <= term.time]:
                self._check_linear_path(site, waiting.pop(site), term)
                shares[site] = self._head_share(site, term)
        name, labels = site_axis(list(shares))
        sizes = {share.shape[-1] for share in shares.values()}
        if len(sizes) != 1:
            raise ValueError(f"layers have {sorted(sizes)} heads; there is no table of layer x head: use each='part'")
        return torch.stack(list(shares.values()), -2), {name: labels, "head": range_labels(sizes.pop())}

    def _head_share(self, site: str, term: Term) -> Float[Tensor, "*batch head"]:
        """Return the contribution of each head to the target through a term that is linear in the head's output."""
        outputs, _ = self.heads[site]
        with torch.enable_grad():
            share = (term.tensor * self.direction).sum()
        (gradient,) = torch.autograd.grad(share, outputs, retain_graph=True, allow_unused=True)
        if gradient is None:
            raise ValueError(f"{site} does not reach {term.name}; use each='part'")
        of_texts = (gradient * outputs.detach()).sum((2, 3)).float().cpu()
        return of_texts if self.value.dim() else of_texts.sum(0)

    def _check_linear_path(self, site: str, start: int, term: Term) -> None:
        """Raise ValueError if a module other than linear maps and frozen norms lies between heads and a term."""
        for time, path in self.trace.leaves.items():
            if not start < time <= term.time or path in self.trace.frozen:
                continue
            kind = type(self.model.get_submodule(path))
            if kind.__name__ not in LINEAR_MODULES and not issubclass(kind, nn.Linear):
                raise ValueError(
                    f"{site} passes {path} ({kind.__name__}) before it is added to the stream, so heads have no shares "
                    "of their own: use each='part'"
                )


def _dtype(model: nn.Module) -> torch.dtype:
    return next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), torch.float32)

"""What training makes small: from a model and a batch to a sum over what is predicted, and how much that is.

The sum and the count, rather than their quotient, so that ragged batches, accumulated gradients and several
processes weigh every prediction alike.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import bounds
from tfviz.doors import what
from tfviz.learn.checks import check_labels, makes_no_other, parts

Loss = Callable[[nn.Module, Any], tuple[Tensor, int]]
PAD = 0  # nothing is predicted where the target is padding
NEVER = -(2**63)  # a label that nobody has, to be left out: PyTorch's own, -100, comes by mistake


def next_token(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Cross-entropy of the next token, in nats; the batch is (inputs, targets), both [batch position]."""
    inputs, targets = parts(batch, "inputs", "targets")
    return _everywhere(logits_of(model(inputs)), targets)


def translation(smoothing: float = 0.0) -> Loss:
    """Cross-entropy of each target token after those before it (teacher forcing), in nats.

    The batch is (source, target), padded with 0; the target has a token for the beginning and one for the end.

    Args:
        smoothing: share of the probability that is asked for all tokens alike (Szegedy et al. 2016, section 7).
    """
    _check_smoothing(smoothing)

    def loss(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        source, target = parts(batch, "source", "target")
        logits, wanted = model(source, target[:, :-1]), target[:, 1:]
        return _where_given(logits, wanted, smoothing)

    return loss


def label(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Cross-entropy of one label a row, in nats; the batch is (what the model takes ..., labels [batch]).

    Raises:
        ValueError: a label is no class of the model. On a GPU, which would have to be waited for, PyTorch's assertion
            stops the run instead; with `fit(device="cpu")` the label is named.
    """
    *inputs, labels = parts(batch, "what the model takes", "labels", more=True)
    return _everywhere(logits_of(model(*inputs)), labels, "label")


def masked(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Cross-entropy of the hidden tokens, in nats, and, where the batch has it, of whether sentences follow.

    The batch is (ids, targets) or (ids, targets, segments, follows). Of two losses the count is that of the tokens;
    the mean of the second is added to the mean of the first (Devlin et al. 2019, appendix A.2).
    """
    ids, targets, *pairs = parts(batch, "ids", "targets", more=True)
    if pairs:
        parts(batch, "ids", "targets", "segments", "follows")
    hidden = targets != PAD
    guess = model(ids, pairs[0] if pairs else None, hidden)
    total, count = _everywhere(guess.tokens, targets[hidden])
    if pairs:
        total = total + count * _everywhere(guess.follows, pairs[1], "label")[0] / len(pairs[1])
    return total, count


class Carried:
    """`next_token` for models with a memory: each stream of text goes on with what the segment before left behind.

    The batch is (inputs, targets, places), from `text.Streams`. A memory is of the segment before, in the same streams,
    or it is empty: where a stream begins, after a leap, for another number of streams. It lives here and not in a
    checkpoint: a run that was stopped goes on with an empty one. Take a new `Carried()` for each training and each
    evaluation; it cannot tell one text from another.
    """

    def __init__(self) -> None:
        self.memories: dict[tuple[tuple[int, ...], ...], list[Tensor]] = {}  # by the places they are for

    def __call__(self, model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        inputs, targets, places = parts(batch, "inputs", "targets", "places")
        if places.shape != (len(inputs), 2):
            raise ValueError(f"places are {list(places.shape)}; give [{len(inputs)}, 2], as text.Streams does")
        here = tuple((stream, segment) for stream, segment in places.tolist())
        memory = self.memories.pop(here, [])
        logits = model(inputs, memory)
        self.memories[tuple((stream, segment + 1) for stream, segment in here)] = memory
        return _everywhere(logits, targets)


def scheduled(share: float, smoothing: float = 0.0) -> Loss:
    """`translation`, but some of the target tokens that are fed back are the model's own guesses (exposure bias).

    A first pass, without gradients, guesses each token from the true ones before it; then each fed-back token is
    replaced by its guess with probability `share` (Bengio et al. 2015, in the two passes of Mihaylova & Martins 2019,
    which need no loop over steps).
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}; it must lie between 0 and 1")
    _check_smoothing(smoothing)

    def loss(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        source, target = parts(batch, "source", "target")
        given, wanted = target[:, :-1].clone(), target[:, 1:]
        with torch.no_grad():
            guesses = model(source, given).argmax(-1)[:, :-1]
        own = (torch.rand(guesses.shape, device=given.device) < share) & (given[:, 1:] != PAD)
        given[:, 1:] = torch.where(own, guesses, given[:, 1:])
        return _where_given(model(source, given), wanted, smoothing)

    return loss


def adversarial(loss: Loss = label, size: float = 0.02, embedding: str = "tokens") -> Loss:
    """A loss at the words and, as much, at words moved to where it is worse (Miyato et al. 2017, equation 4).

    In training each batch passes twice: as it is, and with the embeddings of each row moved along the gradient of the
    loss; the mean of the two is made small. A model whose answer must hold under small moves overfits later. A step
    takes about twice as long. In eval mode it is `loss` alone.

    Args:
        loss: of one pass; it may remember nothing, as `Carried` does.
        size: how far a row moves: this share of the length of its embeddings, all in one vector.
        embedding: the name of the module that turns ids into vectors; the first one that is called so.
    """
    bounds.above(0, size=size)
    makes_no_other(loss=loss)
    if isinstance(loss, Carried):
        raise ValueError("loss is a Carried, which remembers, and each batch would pass twice; give another")
    named = "embedding= names the module that turns ids into vectors"

    def both(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        if not (model.training and torch.is_grad_enabled()):
            return loss(model, batch)
        # by the end of its path: what wraps a model for several processes adds to the front
        modules = (module for path, module in model.named_modules() if path.split(".")[-1] == embedding)
        table = next(modules, None)
        if table is None:
            raise ValueError(f"{type(model).__name__} has no {embedding}: {named}")
        found: list[Tensor] = []
        again = torch.random.fork_rng([batch[0].device] if batch[0].is_cuda else [])  # the same dropout in both
        with again, table.register_forward_hook(lambda module, given, vectors: found.append(vectors)):
            total, count = loss(model, batch)
        asked = torch.autograd.grad(total, found, retain_graph=True, allow_unused=True) if found else ()
        slopes = [slope for slope in asked if slope is not None]
        if len(slopes) != max(1, len(found)):
            raise ValueError(f"{embedding} has no part in the loss, or the model is compiled: {named}")
        moves = [
            slope * (size * _lengths(vectors) / _lengths(slope).clamp(min=torch.finfo(slope.dtype).tiny))
            for vectors, slope in zip(found, slopes)
        ]
        with table.register_forward_hook(lambda module, given, vectors: vectors + moves.pop(0)):
            worse, _ = loss(model, batch)
        return (total + worse) / 2, count

    return both


def squared(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Squared error; the batch is (what the model takes ..., values, as many as the model gives)."""
    *inputs, values = parts(batch, "what the model takes", "values", more=True)
    guesses = logits_of(model(*inputs)).float()
    if guesses.shape != values.shape:
        raise ValueError(f"values are {list(values.shape)}, the model gives {list(guesses.shape)}; they must be alike")
    return (guesses - values).square().sum(), values.numel()


def logits_of(given: Any) -> Tensor:
    """What a model gives, or the logits in what a Hugging Face model gives.

    Raises:
        TypeError: there are none.
    """
    found = getattr(given, "logits", given)
    if not isinstance(found, Tensor):
        raise TypeError(
            f"the model gives {what(given)} without logits; give a model with a head, whose output is logits or has "
            "them as .logits"
        )
    return found


def _lengths(vectors: Tensor) -> Tensor:
    """Of each row, all its vectors in one."""
    return torch.linalg.vector_norm(vectors.detach(), dim=tuple(range(1, vectors.dim())), keepdim=True)


def _everywhere(logits: Tensor, targets: Tensor, kind: str = "target") -> tuple[Tensor, int]:
    check_labels(targets, logits.shape[:-1], logits.shape[-1], kind)
    flat = logits.reshape(-1, logits.shape[-1]).float()
    return functional.cross_entropy(flat, targets.flatten(), ignore_index=NEVER, reduction="sum"), targets.numel()


def _where_given(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, int]:
    check_labels(targets, logits.shape[:-1], logits.shape[-1], "target")
    total = functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )
    return total, int((targets != PAD).sum())


def _check_smoothing(smoothing: float) -> None:
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing is {smoothing}; it is a share, at least 0 and below 1, such as 0.1")

"""Losses: functions from a model and a batch to the sum over all predictions, and their number.

They return the sum and the count, rather than the mean, so that ragged batches, accumulated gradients and several
processes weigh every prediction equally.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.learn.checks import check_labels, unpack
from tfviz.logits import extract_logits

Loss = Callable[[nn.Module, Any], tuple[Tensor, int]]
PAD = 0  # nothing is predicted where the target is padding
IGNORE_NOTHING = -(2**63)  # PyTorch's own ignore_index, -100, may stand among labels by mistake


def next_token(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Compute the cross-entropy of the next token, in nats; the batch is (inputs, targets), `[batch, position]`."""
    inputs, targets = unpack(batch, "inputs", "targets")
    return _cross_entropy(extract_logits(model(inputs)), targets, "tokens")


def translation(label_smoothing: float = 0.0) -> Loss:
    """Compute the cross-entropy of each target token given those before it (teacher forcing), in nats.

    The batch is (source, target), padded with 0; the target has a token for the beginning and one for the end.

    Args:
        label_smoothing: share of the probability that is spread evenly over all tokens (Szegedy et al. 2016, section
            7).
    """
    checks.fraction(label_smoothing=label_smoothing)

    def loss(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        source, target = unpack(batch, "source", "target")
        return _padded_cross_entropy(model(source, target[:, :-1]), target[:, 1:], label_smoothing)

    return loss


def classification(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Compute the cross-entropy of one label per row, in nats; the batch is (model inputs ..., labels `[batch]`).

    Raises:
        ValueError: a label is not a class of the model. On a GPU, to avoid waiting for it, PyTorch's assertion
            stops the run instead; with `fit(device="cpu")` the label is named.
    """
    *inputs, labels = unpack(batch, "model inputs", "labels", variadic=True)
    return _cross_entropy(extract_logits(model(*inputs)), labels)


def masked_lm(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Compute the cross-entropy of the masked tokens, in nats, plus next-sentence prediction if the batch has it.

    The batch is (ids, targets) or (ids, targets, segments, follows). The count is the number of masked tokens; the mean
    of the second loss is added to the mean of the first (Devlin et al. 2019, appendix A.2).
    """
    ids, targets, *pairs = unpack(batch, "ids", "targets", variadic=True)
    if pairs:
        unpack(batch, "ids", "targets", "segments", "follows")
    masked = targets != PAD
    output = model(ids, pairs[0] if pairs else None, masked)
    total, count = _cross_entropy(output.tokens, targets[masked], "tokens")
    if pairs:
        total = total + count * _cross_entropy(output.follows, pairs[1])[0] / len(pairs[1])
    return total, count


class SegmentRecurrentLoss:
    """`next_token` for models with a memory (Transformer-XL): each text continues with the memory of its last segment.

    The batch is (inputs, targets, places), from `text.Streams`. The memory is that of the previous segment of the same
    streams; it is empty where a stream begins, after a skipped segment, and for another number of streams. It is not
    part of a checkpoint, so a resumed run starts with an empty one. Create a new `SegmentRecurrentLoss()` for each
    training and each evaluation, since it cannot distinguish texts.
    """

    def __init__(self) -> None:
        self.memories: dict[tuple[tuple[int, ...], ...], list[Tensor]] = {}  # by the places of their next segment

    def __call__(self, model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        inputs, targets, places = unpack(batch, "inputs", "targets", "places")
        if places.shape != (len(inputs), 2):
            raise ValueError(f"places are {list(places.shape)}; give [{len(inputs)}, 2], as text.Streams does")
        current = tuple((stream, segment) for stream, segment in places.tolist())
        memory = self.memories.pop(current, [])
        logits = model(inputs, memory)
        self.memories[tuple((stream, segment + 1) for stream, segment in current)] = memory
        return _cross_entropy(logits, targets, "tokens")


def adversarial(loss: Loss = classification, epsilon: float = 0.02, embedding: str = "tokens") -> Loss:
    """Return a loss averaged over clean and adversarially perturbed embeddings (Miyato et al. 2017, equation 4).

    In training, the loss of each batch is computed twice: on the clean embeddings, and with each row's embeddings moved
    along the gradient of the loss; the mean of both is returned. A model whose predictions must not change under small
    perturbations overfits later. A step takes about twice as long. In eval mode only `loss` is computed.

    Args:
        loss: the loss of one pass, without a state, unlike `SegmentRecurrentLoss`.
        epsilon: norm of a row's perturbation as a share of the norm of its embeddings, both taken as one vector.
        embedding: name of the module that maps ids to vectors; the first module with this name is used.

    Raises:
        ValueError: `loss` is a `SegmentRecurrentLoss`.
    """
    checks.above(0, epsilon=epsilon)
    if isinstance(loss, SegmentRecurrentLoss):
        raise ValueError("loss is a SegmentRecurrentLoss, which remembers, and each batch would pass twice")

    def adversarial_loss(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        if not (model.training and torch.is_grad_enabled()):
            return loss(model, batch)
        table = _find_embedding(model, embedding)
        outputs: list[Tensor] = []
        same_dropout = torch.random.fork_rng([batch[0].device] if batch[0].is_cuda else [])
        with same_dropout, table.register_forward_hook(lambda module, args, output: outputs.append(output)):
            total, count = loss(model, batch)
        moves = _adversarial_moves(total, outputs, epsilon, embedding)
        with table.register_forward_hook(lambda module, args, output: output + moves.pop(0)):
            moved_total, _ = loss(model, batch)
        return (total + moved_total) / 2, count

    return adversarial_loss


def squared_error(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Compute the squared error; the batch is (model inputs ..., values of the shape of the model's output).

    Raises:
        ValueError: the model's output and the values have different shapes.
    """
    *inputs, values = unpack(batch, "model inputs", "values", variadic=True)
    predicted = extract_logits(model(*inputs)).float()
    if predicted.shape != values.shape:
        raise ValueError(f"values are {list(values.shape)}, the model gives {list(predicted.shape)}; make them alike")
    return (predicted - values).square().sum(), values.numel()


def _find_embedding(model: nn.Module, name: str) -> nn.Module:
    """Find a module by the end of its path, since multi-process wrappers add a prefix."""
    for path, module in model.named_modules():
        if path.split(".")[-1] == name:
            return module
    raise ValueError(f"{type(model).__name__} has no {name}: embedding= names the module that turns ids into vectors")


def _adversarial_moves(total: Tensor, outputs: list[Tensor], epsilon: float, name: str) -> list[Tensor]:
    """Return, for each output of the embedding, its perturbation along the gradient of the loss."""
    gradients = torch.autograd.grad(total, outputs, retain_graph=True, allow_unused=True) if outputs else ()
    if not outputs or any(gradient is None for gradient in gradients):
        raise ValueError(f"{name} has no part in the loss, or the model is compiled: embedding= names the module that "
                         "turns ids into vectors")  # fmt: skip
    tiny = torch.finfo(total.dtype).tiny
    return [
        gradient * (epsilon * _row_norms(output) / _row_norms(gradient).clamp(min=tiny))
        for output, gradient in zip(outputs, gradients)
    ]


def _row_norms(vectors: Tensor) -> Tensor:
    """Return the norm of each row, with all its vectors taken as one."""
    return torch.linalg.vector_norm(vectors.detach(), dim=tuple(range(1, vectors.dim())), keepdim=True)


def _cross_entropy(logits: Tensor, targets: Tensor, noun: str = "classes") -> tuple[Tensor, int]:
    check_labels(targets, logits.shape[:-1], logits.shape[-1], noun)
    flat = logits.reshape(-1, logits.shape[-1]).float()
    total = functional.cross_entropy(flat, targets.flatten(), ignore_index=IGNORE_NOTHING, reduction="sum")
    return total, targets.numel()


def _padded_cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float) -> tuple[Tensor, int]:
    check_labels(targets, logits.shape[:-1], logits.shape[-1], "tokens")
    total = functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=PAD,
                                     reduction="sum", label_smoothing=label_smoothing)  # fmt: skip
    return total, int((targets != PAD).sum())

"""Losses: functions from a model and a batch to the sum of the loss over all predictions and their number.

They return the sum and the count, rather than the mean, so that every prediction has the same weight in batches with
padding, accumulated gradients and several processes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.hugging_face import is_hugging_face, shifts_labels
from tfviz.learn.batch import Batch, tensors
from tfviz.learn.batch_checks import check_labelled, check_labels, unpack
from tfviz.learn.state_tensors import unwrap
from tfviz.logits import extract_logits
from tfviz.schema import describe

__all__ = [
    "Loss",
    "SegmentRecurrentLoss",
    "adversarial",
    "classification",
    "default_loss",
    "masked_lm",
    "model_loss",
    "next_token",
    "squared_error",
    "translation",
]

Loss = Callable[[nn.Module, Any], tuple[Tensor, int | Tensor]]
PAD_ID = 0  # targets of this id are not predicted
UNUSED_IGNORE_INDEX = -(2**63)  # PyTorch's default, -100, could be among the labels by mistake
HF_IGNORE_INDEX = -100  # Hugging Face's label for positions without a prediction


def default_loss(model: nn.Module, batch: Batch) -> tuple[Tensor, int | Tensor]:
    """Compute `model_loss` of a mapping with labels, and `next_token` of other batches."""
    return model_loss(model, batch) if isinstance(batch, Mapping) else next_token(model, batch)


def model_loss(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Compute the loss with the model itself, from a mapping with `labels`, as models of Hugging Face do.

    The model is called as `model(**batch)`. Its loss is the mean over the labels that are not -100, and is multiplied
    by their number. A causal language model predicts the label one position later, so its first label does not count.

    Raises:
        ValueError: the batch has no labels, or the model's output has no loss.
    """
    labels = check_labelled(batch)
    output = model(**batch)
    mean = getattr(output, "loss", None)
    if not isinstance(mean, Tensor):
        raise ValueError(
            f"the model returns {describe(output)} without a loss; give the model with its head, such as "
            f"GPT2LMHeadModel instead of GPT2Model, or loss=, a function of model and batch"
        )
    labels = labels[..., 1:] if shifts_labels(unwrap(model)) else labels
    count = (labels != HF_IGNORE_INDEX).sum().to(mean.device)
    return torch.where(count > 0, mean * count, 0.0), count  # the mean over no labels is NaN


def next_token(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Compute the cross-entropy of the next token, in nats; the batch is (inputs, targets), `[batch, position]`."""
    inputs, targets = unpack(batch, "inputs", "targets")
    return _cross_entropy(extract_logits(model(inputs)), targets, "tokens")


def translation(label_smoothing: float = 0.0) -> Loss:
    """Return a loss: the cross-entropy of each target token given the tokens before it (teacher forcing), in nats.

    The batch is (source, target), padded with 0; the target has a token for the beginning and one for the end. The
    model is called as `model(source, target[:, :-1])`, and an encoder-decoder of Hugging Face with `input_ids`, their
    `attention_mask`, and `decoder_input_ids`. For mappings with labels, as made by its data collators, use
    `model_loss`.

    Args:
        label_smoothing: share of the probability that is spread evenly over all tokens (Szegedy et al. 2016, section
            7); 0 or more, and below 1.
    """
    checks.fraction_below_one(label_smoothing=label_smoothing)

    def loss(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        source, target = unpack(batch, "source", "target")
        inputs = target[:, :-1]
        if is_hugging_face(unwrap(model)):
            output = model(input_ids=source, attention_mask=(source != PAD_ID).long(), decoder_input_ids=inputs)
        else:
            output = model(source, inputs)
        return _padded_cross_entropy(extract_logits(output), target[:, 1:], label_smoothing)

    return loss


def classification(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Compute the cross-entropy of one label per row, in nats; the batch is (model inputs ..., labels `[batch]`).

    Raises:
        ValueError: a label is not a class of the model. On a GPU, where the check would wait for the values, PyTorch's
            assertion stops the run instead; with `fit(device="cpu")` the message names the label.
    """
    *inputs, labels = unpack(batch, "model inputs", "labels", variadic=True)
    return _cross_entropy(extract_logits(model(*inputs)), labels)


def masked_lm(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Compute the cross-entropy of the masked tokens, in nats, plus next-sentence prediction if the batch has it.

    The batch is (ids, targets) or (ids, targets, segments, follows). The count is the number of masked tokens. The mean
    of the second loss is added to the mean of the first (Devlin et al. 2019, appendix A.2). The model has the interface
    of `models.BERT`, or is a `BertForMaskedLM` of Hugging Face (for the second loss, a `BertForPreTraining`), which is
    called with `input_ids`, their `attention_mask` (ids other than 0) and, if there are segments, `token_type_ids`.
    """
    ids, targets, *pairs = unpack(batch, "ids", "targets", variadic=True)
    if pairs:
        unpack(batch, "ids", "targets", "segments", "follows")
    masked, segments = targets != PAD_ID, pairs[0] if pairs else None
    tokens, follows = _masked_logits(model, ids, segments, masked)
    total, count = _cross_entropy(tokens, targets[masked], "tokens")
    if pairs:
        total = total + count * _cross_entropy(follows, pairs[1])[0] / len(pairs[1])
    return total, count


def _masked_logits(model: nn.Module, ids: Tensor, segments: Tensor | None, masked: Tensor) -> tuple[Tensor, Any]:
    """Return the logits of the masked tokens, and of whether the second sentence follows the first, (no, yes)."""
    if not is_hugging_face(unwrap(model)):
        output = model(ids, segments, masked)
        return output.logits, output.next_sentence_logits
    named = {} if segments is None else {"token_type_ids": segments}
    output = model(input_ids=ids, attention_mask=(ids != PAD_ID).long(), **named)
    logits = getattr(output, "prediction_logits", None)
    follows = getattr(output, "seq_relationship_logits", None)
    if segments is not None and follows is None:
        raise ValueError(
            f"{type(unwrap(model)).__name__} does not predict whether the second sentence follows; give a "
            "BertForPreTraining, or batches of (ids, targets)"
        )
    logits = extract_logits(output) if logits is None else logits
    return logits[masked], None if follows is None else follows.flip(-1)  # Hugging Face's order is (yes, no)


class SegmentRecurrentLoss:
    """The loss `next_token` for models with a memory, such as Transformer-XL, trained on consecutive segments.

    The batch is (inputs, targets, indices), from `text.Streams`. Each segment is computed with the memory of the
    previous segment of the same streams. The memory is empty where a stream begins, after a skipped segment, and for
    another number of streams. It is not part of a checkpoint, so a resumed run starts with an empty memory. Create a
    new `SegmentRecurrentLoss()` for each training and each evaluation, since it cannot distinguish texts.
    """

    def __init__(self) -> None:
        # memories by the indices (stream, segment) of the segment that follows
        self.memories: dict[tuple[tuple[int, ...], ...], list[Tensor]] = {}

    def __call__(self, model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
        inputs, targets, indices = unpack(batch, "inputs", "targets", "indices")
        if indices.shape != (len(inputs), 2):
            raise ValueError(f"indices are {list(indices.shape)}; give [{len(inputs)}, 2], as text.Streams does")
        current = tuple((stream, segment) for stream, segment in indices.tolist())
        memory = self.memories.pop(current, [])
        logits = model(inputs, memory)
        self.memories[tuple((stream, segment + 1) for stream, segment in current)] = memory
        return _cross_entropy(logits, targets, "tokens")


def adversarial(loss: Loss = classification, epsilon: float = 0.02, embedding: str = "tokens") -> Loss:
    """Return a loss averaged over clean and adversarially perturbed embeddings (Miyato et al. 2017, equation 4).

    In training, the loss of each batch is computed twice: on the clean embeddings, and with each row's embeddings moved
    along the gradient of the loss. The mean of both is returned. This delays overfitting, and a step takes about twice
    as long. In eval mode only `loss` is computed.

    Args:
        loss: the loss of one pass, which must have no state, unlike `SegmentRecurrentLoss`.
        epsilon: norm of a row's perturbation, as a share of the norm of the row's embeddings.
        embedding: name of the module that maps ids to vectors; the first module with this name is used.

    Raises:
        ValueError: `loss` is a `SegmentRecurrentLoss`.
    """
    checks.above(0, epsilon=epsilon)
    if isinstance(loss, SegmentRecurrentLoss):
        raise ValueError("loss is a SegmentRecurrentLoss, which is stateful, and each batch is evaluated twice")

    def adversarial_loss(model: nn.Module, batch: Batch) -> tuple[Tensor, int | Tensor]:
        if not (model.training and torch.is_grad_enabled()):
            return loss(model, batch)
        table = _find_embedding(model, embedding)
        outputs: list[Tensor] = []
        same_dropout = torch.random.fork_rng([first.device] if (first := tensors(batch)[0]).is_cuda else [])
        with same_dropout, table.register_forward_hook(lambda module, args, output: outputs.append(output)):
            total, count = loss(model, batch)
        perturbations = _adversarial_perturbations(total, outputs, epsilon, embedding)
        with table.register_forward_hook(lambda module, args, output: output + perturbations.pop(0)):
            perturbed_total, _ = loss(model, batch)
        return (total + perturbed_total) / 2, count

    return adversarial_loss


def squared_error(model: nn.Module, batch: Sequence[Tensor]) -> tuple[Tensor, int]:
    """Compute the squared error; the batch is (model inputs ..., values), values in the shape of the model's output.

    Raises:
        ValueError: the model's output and the values have different shapes.
    """
    *inputs, values = unpack(batch, "model inputs", "values", variadic=True)
    predicted = extract_logits(model(*inputs)).float()
    if predicted.shape != values.shape:
        raise ValueError(
            f"values are {list(values.shape)}, but the model returns {list(predicted.shape)}; give values of that shape"
        )
    return (predicted - values).square().sum(), values.numel()


def _find_embedding(model: nn.Module, name: str) -> nn.Module:
    """Find a module by the end of its path, since multi-process wrappers add a prefix."""
    for path, module in model.named_modules():
        if path.split(".")[-1] == name:
            return module
    raise ValueError(f"{type(model).__name__} has no {name}: embedding= names the module that turns ids into vectors")


def _adversarial_perturbations(total: Tensor, outputs: list[Tensor], epsilon: float, name: str) -> list[Tensor]:
    """Return, for each output of the embedding, its perturbation along the gradient of the loss."""
    gradients = torch.autograd.grad(total, outputs, retain_graph=True, allow_unused=True) if outputs else ()
    if not outputs or any(gradient is None for gradient in gradients):
        raise ValueError(f"the loss has no gradient at {name}; check embedding=, and do not compile the model")
    tiny = torch.finfo(total.dtype).tiny
    return [
        gradient * (epsilon * _row_norms(output) / _row_norms(gradient).clamp(min=tiny))
        for output, gradient in zip(outputs, gradients)
    ]


def _row_norms(vectors: Tensor) -> Tensor:
    """Return the norm of each row, over all axes but the first."""
    return torch.linalg.vector_norm(vectors.detach(), dim=tuple(range(1, vectors.dim())), keepdim=True)


def _cross_entropy(logits: Tensor, targets: Tensor, noun: str = "classes") -> tuple[Tensor, int]:
    check_labels(targets, logits.shape[:-1], logits.shape[-1], noun)
    flat = logits.reshape(-1, logits.shape[-1]).float()
    targets = targets.to(logits.device)  # a model on several devices returns logits on the last one
    total = functional.cross_entropy(flat, targets.flatten(), ignore_index=UNUSED_IGNORE_INDEX, reduction="sum")
    return total, targets.numel()


def _padded_cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float) -> tuple[Tensor, int]:
    check_labels(targets, logits.shape[:-1], logits.shape[-1], "tokens")
    targets = targets.to(logits.device)
    total = functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=PAD_ID,
                                     reduction="sum", label_smoothing=label_smoothing)  # fmt: skip
    return total, int((targets != PAD_ID).sum())

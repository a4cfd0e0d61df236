"""Check that a model and a tokenizer suit a studio, and prepare its program, tokenizer and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode, model_device, weights_device
from tfviz.logits import extract_logits
from tfviz.portable.export import export
from tfviz.portable.program import Program
from tfviz.schema import describe
from tfviz.text import subwords
from tfviz.view.documents.studio_base import SpecialTokens
from tfviz.view.studio.local_program import LocalProgram

if TYPE_CHECKING:
    from tfviz.view.studio.widget import AxisTokens, Inputs

DEFAULT_CONTEXT = 1024  # tokens of a model that states no limit
MAX_LOGITS_RATIO = 1.1  # logits per token of the vocabulary, which some models pad
QUANTIZED_PACKAGES = ("torch.ao.nn.quantized", "torch.nn.quantized")
PROBE_TOKENS = 5  # of the text that tests whether a model is causal


def check_logits_width(width: int, tokenizer: Any, name: str = "the tokenizer") -> None:
    """Raise ValueError if a model has fewer logits per position than the tokenizer has tokens, or many more."""
    if not len(tokenizer) <= width <= MAX_LOGITS_RATIO * len(tokenizer):
        raise ValueError(
            f"the model has logits for {width:,} tokens, {name} has {len(tokenizer):,}; pass the model's own"
        )


def check_embeddings(
    model: nn.Module, tokenizer: Any, program: Callable[[Tensor], Any], name: str = "the tokenizer"
) -> None:
    """Raise ValueError unless the model has an embedding for each token."""
    table = getattr(model, "get_input_embeddings", lambda: None)()
    sizes: int | None = getattr(table, "num_embeddings", None)
    cause: Exception | None = None
    try:
        if sizes is None and model_device(model).type == "cpu":  # on a GPU an invalid id would make CUDA unusable
            program(torch.full((1, 2), len(tokenizer) - 1))
    except (IndexError, RuntimeError, ValueError) as error:
        sizes, cause = 0, error
    if sizes is not None and sizes < len(tokenizer):
        raise ValueError(
            f"the model reads fewer than the {len(tokenizer):,} tokens of {name}: give the model's own"
        ) from cause


def check_weights(model: nn.Module) -> None:
    """Raise ValueError for weights that are quantized by PyTorch, in half precision, or on the meta device."""
    for path, weight in model.named_parameters():
        if weight.is_meta:
            raise ValueError(f"{path} is on the meta device, without numbers: load the model's weights first")
        if weight.is_floating_point() and weight.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"{path} is {str(weight.dtype).removeprefix('torch.')}, and a page computes in float32: give "
                "model.float(); `dtype` sets their storage format; or take kernel=True"
            )
    for path, module in model.named_modules():
        if type(module).__module__.startswith(QUANTIZED_PACKAGES):
            raise ValueError(
                f"{path or type(model).__name__} was quantized by PyTorch, which a page cannot compute with: give the "
                'original model, with dtype="int8" to send a byte for each weight, or take kernel=True'
            )


def check_causal(model: nn.Module, tokenizer: Any) -> None:
    """Raise ValueError unless the model is causal.

    Raises:
        ValueError: the model does not return logits for each token, or those of a token depend on later tokens.
    """
    if _looks_ahead(model, tokenizer):
        raise ValueError(
            f"{type(model).__name__} does not write from left to right: its prediction for a token depends on later "
            f"tokens; give a model such as models.GPT, or look at this one with view.fill, which hides words"
        )


def check_bidirectional(model: nn.Module, tokenizer: Any) -> None:
    """Raise ValueError unless the model is bidirectional.

    Raises:
        ValueError: the model does not return logits for each token, or those of a token depend on no later token.
    """
    if _looks_ahead(model, tokenizer) is False:
        raise ValueError(
            f"{type(model).__name__} reads from left to right and does not see the tokens after a masked word: "
            "give a model such as models.BERT, or pass it as compare_with=; to continue a text, use view.write"
        )


def _looks_ahead(model: nn.Module, tokenizer: Any) -> bool | None:
    """Return whether the logits of a token depend on later tokens; None if this cannot be tested."""
    length = min(PROBE_TOKENS, max_tokens(model) or PROBE_TOKENS)
    count = min(len(tokenizer), getattr(getattr(model, "config", None), "vocab_size", None) or len(tokenizer))
    if length < 2 or count < 3 or next(model.parameters(), None) is None:
        return None
    text = torch.arange(length)[None] % 2 + 1  # id 0 may be padding
    other = text.clone()
    other[0, -1] = 3 - text[0, -1]
    first, second = (_logits(model, ids) for ids in (text, other))
    far = (first[:, :-1] - second[:, :-1]).abs().max()
    noise = torch.finfo(first.dtype).eps * float(first.abs().max()) / 4  # a causal model returns identical logits
    return float(far) > noise if bool(far.isfinite()) else None


def _logits(model: nn.Module, ids: Tensor) -> Tensor:
    """Return the logits of each token, [batch, position, vocab].

    Raises:
        ValueError: the model returns no logits, or logits of another shape.
    """
    with eval_mode(model):
        try:
            outputs = model(ids.to(model_device(model)))
        except (RuntimeError, TypeError, ValueError) as error:
            raise ValueError(
                f"{type(model).__name__} cannot be called with ids of tokens, [batch, position]: give a language model "
                f"({error})"
            ) from error
    logits = extract_logits(outputs)
    if logits.dim() != 3 or logits.shape[:2] != ids.shape:
        raise ValueError(
            f"{type(model).__name__} returns logits of shape {list(logits.shape)}; a language model returns "
            "[batch, position, vocab]: give the model with its head, such as GPT2LMHeadModel instead of GPT2Model"
        )
    return logits.cpu()


def text_axes(tokenizer: Any) -> AxisTokens:
    """Return a function from the inputs of the program "read" to the query and key tokens of its maps."""

    def words(inputs: Inputs) -> dict[str, tuple[list[str], list[str]]]:
        text = tokenizer.tokens(inputs["read"][0][0])
        return {"": (text, text)}

    return words


def text_program(model: nn.Module, tokenizer: Any, dtype: str | None) -> Program | LocalProgram:
    """Return a program that computes logits from the ids of one text, [1, position], of any length.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        dtype: storage format of the exported weights; None: the model stays in Python.

    Raises:
        ValueError: the model has no weights, or cannot be exported.
    """

    def read(ids: Tensor) -> dict[str, Tensor]:
        return {"logits": extract_logits(model(ids))}

    device = weights_device(model)
    if dtype is None:
        return LocalProgram(model, read, {"ids": len(tokenizer)})
    check_weights(model)
    example = torch.arange(3, device=device)[None] % 2 + 1  # id 0 is padding
    return export(read, example, lengths={"ids": {1: "positions"}}, dtype=dtype)


def check_finite(logits: Tensor) -> None:
    """Raise ValueError unless all logits are finite."""
    if not bool(logits.isfinite().all()):
        raise ValueError("the model's logits are not finite; check its weights")


def context_length(source: nn.Module | Program | LocalProgram) -> int:
    """Return the maximum number of tokens that a model or program takes; `DEFAULT_CONTEXT` if it states no limit."""
    return max_tokens(source) or DEFAULT_CONTEXT


def max_tokens(source: nn.Module | Program | LocalProgram, axis: str = "positions") -> int | None:
    """Return the maximum number of tokens that a model or program takes; None if it states no limit.

    Args:
        source: an exported program, whose lengths state it, or a model, whose `context` or Hugging Face config does.
        axis: the axis of an exported program.
    """
    if isinstance(source, Program):
        return source.spec["lengths"][axis][1]
    model = source.model if isinstance(source, LocalProgram) else source
    count = getattr(model, "context", None) or getattr(getattr(model, "config", None), "max_position_embeddings", None)
    return None if count is None else int(count)


class FirstRun(NamedTuple):
    """The first text of a studio, run through its model.

    Attributes:
        program: the model as a program.
        context: the maximum number of tokens.
        ids: the text between its special tokens, [1, position].
        logits: the model's logits.
    """

    program: Any
    context: int
    ids: Tensor
    logits: Tensor


def run_first_text(
    model: nn.Module, tokenizer: Any, ids: Tensor, special_tokens: SpecialTokens, dtype: str | None
) -> FirstRun:
    """Prepare a model as a program, and run it on the first text.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        ids: the text without special tokens, [position].
        special_tokens: the ids before and after each text.
        dtype: storage format of the exported weights; None: the model stays in Python.

    Raises:
        ValueError: the model cannot be exported or does not fit the tokenizer; the text is empty or too long.
    """
    program = text_program(model, tokenizer, dtype)
    context = context_length(program)
    framed = frame_text(ids, special_tokens, context)
    check_embeddings(model, tokenizer, program)
    return FirstRun(program, context, framed, program(framed)["logits"])


def read_tokenizer(tokenizer: Any, kernel: bool) -> tuple[Any, dict[str, Any]]:
    """Return what a studio is given as a tokenizer of `tfviz.text`, and the same as plain values.

    Raises:
        TypeError: it is no tokenizer, or a page cannot encode with an object of this type.
        ValueError: a page cannot encode with this tokenizer.
    """
    wrapped = subwords.as_tokenizer(tokenizer)
    return wrapped, tokenizer_document(wrapped, kernel)


def tokenizer_document(tokenizer: Any, kernel: bool) -> dict[str, Any]:
    """Return a tokenizer as plain values; with a kernel, it need only decode in the page.

    Raises:
        TypeError: a page cannot encode with an object of this type.
        ValueError: a page cannot encode with this tokenizer.
    """
    if not hasattr(tokenizer, "to_spec"):
        raise TypeError(
            f"tokenizer is {describe(tokenizer)}, which a page cannot encode with: give one of tfviz.text, such as "
            "text.train_whole_words(texts), or a fast tokenizer of transformers"
        )
    try:
        return tokenizer.to_spec()
    except ValueError as error:
        if kernel:
            return tokenizer.to_decoding_spec()
        raise ValueError(f"{error}: with kernel=True Python encodes") from error


def check_id(tokenizer: Any, name: str, index: int | None) -> int | None:
    """Return an id, or None, after checking that the tokenizer has it.

    Raises:
        ValueError: the id is not in the vocabulary.
    """
    if index is not None and not (isinstance(index, int) and 0 <= index < len(tokenizer)):
        raise ValueError(f"{name} is {index!r}, and the ids of this tokenizer go from 0 to {len(tokenizer) - 1}")
    return index


def frame_text(ids: Tensor, special_tokens: SpecialTokens, context: int) -> Tensor:
    """Return the ids of one text between its special tokens, [1, position].

    Raises:
        ValueError: the text is empty, or longer than the model takes.
    """
    ids_around = (special_tokens["prefix_id"], special_tokens["suffix_id"])
    prefix, suffix = ([] if index is None else [index] for index in ids_around)
    room = context - len(prefix) - len(suffix)
    if not 0 < len(ids) <= room:
        raise ValueError(f"the text has {len(ids)} tokens; the model takes 1 to {room}: give another one")
    return torch.tensor([[*prefix, *ids.tolist(), *suffix]])

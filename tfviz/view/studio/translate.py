"""`view.translate`, the studio of an encoder-decoder with beam search, in the page or with a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.portable.encoder_decoder import encode_and_decode, export_encoder_decoder
from tfviz.portable.program import Program
from tfviz.schema import describe
from tfviz.text import subwords
from tfviz.view.documents.studios import TranslateDocument
from tfviz.view.figures.generation import translation_steps
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.page.heads import MAX_PAGE_BYTES
from tfviz.view.page.html import View
from tfviz.view.studio import requirements
from tfviz.view.studio.build import (
    STUDIO_STATE,
    examples_spec,
    probability_picture,
    studio_view,
    studio_widget,
    text_heading,
)
from tfviz.view.studio.local_program import LocalProgram
from tfviz.view.studio.strongest_head import (
    FIRST_HEAD,
    MAX_HEADS,
    Head,
    HeadState,
    PatternEdit,
    most_influential_head,
)

if TYPE_CHECKING:
    from tfviz.view.studio.widget import AxisTokens, DrawStatic, Inputs, ModelWidget, Request

MAX_NUM_BEAMS = 8  # largest beam width
MAX_LENGTH_PENALTY = 2.0  # largest exponent of the length penalty
MAX_STATIC_WORDS = 24  # generated tokens in the static picture
# what `examples` can set
STATE_KEYS = ("sentence", "num_beams", "length_penalty", "ablated_heads", "layer", "head")


def translate(
    model: nn.Module,
    tokenizers: Any,
    sentence: str,
    title: str = "Which words does it translate from?",
    *,
    num_beams: int = 1,
    length_penalty: float = 0.6,
    max_new_tokens: int = 100,
    eos: str | None = "[EOS]",
    dtype: str = "float16",
    max_bytes: float | None = MAX_PAGE_BYTES,
    kernel: bool = False,
    examples: Mapping[str, Mapping[str, Any]] | None = None,
) -> View | ModelWidget:
    """Explore an encoder-decoder: type a sentence, watch the beam search, force a word, switch heads off.

    The model is embedded in the page and runs there. The translation equals the result of `generate.translate` with the
    same num_beams, length_penalty and max_new_tokens, up to the rounding of the weights.

    Args:
        model: has `encode` and `decode`, like `models.Transformer`.
        tokenizers: one tokenizer of `tfviz.text` for both languages, or two, for the source and the target. The
            target's tokenizer has `[BOS]` and `[EOS]`, which begin and end its texts. Fast tokenizers of transformers
            are accepted as in `write`.
        sentence: the sentence shown first.
        title: the title.
        num_beams: initial beam width, 1 to 8; see `generate.beam.steps`.
        length_penalty: initial exponent of the length penalty, 0 to 2.
        max_new_tokens: maximum number of tokens in a translation, including its end token.
        eos: the token that ends each source, as in training; None: no such token.
        dtype: storage format of the weights: "float32", "float16", or "int8".
        max_bytes: maximum size of the model in the page as base64, in bytes; None: no limit.
        kernel: whether the model stays in Python and answers while the notebook's kernel runs, for models that are too
            large for a page. Without its kernel, the page shows the cross-attention of the last text.
        examples: experiments shown as buttons above the view: name -> the state that it sets, such as
            `{"A longer one": {"sentence": "..."}}`.

    Raises:
        TypeError: a page cannot encode with an object such as a tokenizer passed.
        ValueError: the model cannot be exported (the message gives the reason) or exceeds `max_bytes`; `num_beams`,
            `length_penalty` or `max_new_tokens` is out of range; the sentence is too long, or empty with `eos=None`;
            there are not one or two tokenizers, they do not fit the model, or they lack a special token; its logits are
            not finite.
    """
    checks.between(1, MAX_NUM_BEAMS, num_beams=num_beams)
    checks.between(0, MAX_LENGTH_PENALTY, length_penalty=length_penalty)
    checks.at_least(1, max_new_tokens=max_new_tokens)
    source, target = _tokenizers(tokenizers)
    _check_model(model)
    bos_id, eos_id = (_special_id(target, token, "the target's tokenizer") for token in ("[BOS]", "[EOS]"))
    source_eos_ids = [] if eos is None else [_special_id(source, eos, "the source's tokenizer")]
    ids = torch.tensor([*source.encode(sentence).tolist(), *source_eos_ids])
    programs: dict[str, Any] = (
        _local_programs(model, source, target) if kernel else dict(export_encoder_decoder(model, dtype))
    )
    _check_tokenizers(programs, source, target)
    max_source, max_target = (
        requirements.max_tokens(programs[name], axis) for name, axis in (("encode", "source"), ("decode", "target"))
    )
    if not 0 < len(ids) <= (max_source or len(ids)):
        raise ValueError(f"the sentence has {len(ids)} tokens; the model takes 1 to {max_source}: give another")
    max_new_tokens = min(max_new_tokens, max_target or max_new_tokens)
    suppressed_ids = sorted({subwords.PAD, bos_id} - {eos_id})
    own = [source] if source is target else [source, target]
    document: TranslateDocument = {
        "kind": "translate", "title": title, "examples": examples_spec(examples, STATE_KEYS),
        "tokenizers": [requirements.tokenizer_document(tokenizer, kernel) for tokenizer in own],
        "max_new_tokens": max_new_tokens, "max_source": max_source, "max_num_beams": MAX_NUM_BEAMS,
        "max_length_penalty": MAX_LENGTH_PENALTY,
        "bos_id": bos_id, "eos_id": eos_id, "suppressed_ids": suppressed_ids,
        "source_eos_ids": source_eos_ids, "axes": ["written", "read"],
        "state": {
            **STUDIO_STATE, "sentence": sentence, "num_beams": num_beams, "length_penalty": length_penalty,
            "prefix": [], "steps": max_new_tokens,
            "node": None, "forced": [],
        },
    }  # fmt: skip
    if not kernel:
        return _view_in_page(document, programs, ids, source, target, max_bytes)
    memory = programs["encode"](ids[None])
    first = {"encode": [ids[None]], "decode": [torch.tensor([[bos_id]]), memory["states"], memory["attention_mask"]]}
    draw_static, axis_tokens = _draw_likeliest(target, suppressed_ids, title), _cross_words(source, target)
    return studio_widget(document, programs, first, draw_static, axis_tokens, own)


def _view_in_page(
    document: TranslateDocument,
    programs: dict[str, Any],
    ids: Tensor,
    source: Any,
    target: Any,
    max_bytes: float | None,
) -> View:
    """Return the view with the model in the page; its picture shows the greedy translation and the cross-attention."""
    memory, decode = programs["encode"](ids[None]), programs["decode"]
    tokens, probabilities = _greedy(document, decode, memory, len(target))
    inputs = [document["bos_id"], *tokens[:-1]]
    maps = _cross_attention(decode, memory, inputs)
    unsure = min(range(max(1, len(tokens) - 1)), key=probabilities.__getitem__)  # the studio opens there
    document["state"].update(_strongest_head(decode, memory, inputs, maps, unsure))
    weights = torch.stack([pattern.mean(0) for pattern in maps.values()]).mean(0)
    written, title = target.tokens(torch.tensor(tokens)), document["title"]
    heading = text_heading(title, document["state"]["sentence"])
    static_figure = translation_steps(written, probabilities, source.tokens(ids), weights, title, heading)
    return studio_view(document, static_figure, programs, max_bytes)


def _draw_likeliest(target: Any, suppressed_ids: Sequence[int], title: str) -> DrawStatic:
    """Return a function that draws the likeliest token at each position of a request's text."""

    def draw_static(request: Request, outputs: Mapping[str, Tensor]) -> StaticFigure:
        probabilities = _probabilities(outputs["logits"][0, :, : len(target)], suppressed_ids)
        likeliest = {"probability of the likeliest word": probabilities.amax(-1)}
        text = target.decode(request.inputs[0][0])
        return probability_picture(target.tokens(probabilities.argmax(-1)), likeliest, title, text)

    return draw_static


def _probabilities(logits: Tensor, suppressed_ids: Sequence[int]) -> Tensor:
    """Return the probability of each token, [..., vocab]; 0 for tokens that are never generated."""
    return logits.float().softmax(-1).index_fill(-1, torch.tensor(suppressed_ids, dtype=torch.long), 0)


def _cross_words(source: Any, target: Any) -> AxisTokens:
    """Return a function from inputs to the labels of cross-attention: generated tokens and "…", and source tokens."""

    def tokens(inputs: Inputs) -> dict[str, tuple[list[str], list[str]]]:
        return {"cross": ([*target.tokens(inputs["decode"][0][0][1:]), "…"], source.tokens(inputs["encode"][0][0]))}

    return tokens


def _local_programs(model: nn.Module, source: Any, target: Any) -> dict[str, LocalProgram]:
    """Return the encoder and the decoder as programs whose model stays in Python."""
    encode, decode, _ = encode_and_decode(model)
    inputs: dict[str, str | int] = {"target": len(target), "states": "float32", "attention_mask": "bool"}
    return {
        "encode": LocalProgram(model, encode, {"source": len(source)}),
        "decode": LocalProgram(model, decode, inputs),
    }


def _tokenizers(tokenizers: Any) -> tuple[Any, Any]:
    """Return the source and target tokenizers."""
    given = tokenizers if isinstance(tokenizers, list | tuple) else [tokenizers]
    pair = [subwords.as_tokenizer(tokenizer) for tokenizer in given]
    if len(pair) not in (1, 2):
        raise ValueError(f"there are {len(pair)} tokenizers; give one for both languages, or two")
    for tokenizer in pair:
        if not (hasattr(tokenizer, "to_spec") and hasattr(tokenizer, "__getitem__")):
            raise TypeError(f"tokenizers has {describe(tokenizer)}; give tokenizers such as those of text.train_bpe")
    return pair[0], pair[-1]


def _check_model(model: nn.Module) -> None:
    """Raise an error unless the model is an encoder-decoder that this studio supports.

    Raises:
        ValueError: it has no `encode` and `decode`, or its weights are quantized, in half precision, or on the meta
            device.
    """
    if not all(callable(getattr(model, name, None)) for name in ("encode", "decode")):
        raise ValueError(
            f"{type(model).__name__} has no encode and decode: give a model whose encode(source ids) returns a named "
            f"tuple of states and attention_mask, and whose decode(target ids, memory) gives logits, as "
            "models.Transformer; look at maps of an encoder-decoder of transformers with view.groups or view.live"
        )
    requirements.check_weights(model)


def _special_id(tokenizer: Any, token: str, name: str) -> int:
    """Return the id of a special token; `name` describes the tokenizer in the message.

    Raises:
        ValueError: there is no such token.
    """
    try:
        return tokenizer[token]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{name} has no token {token}: texts begin with [BOS] and end with [EOS], as in those that "
            "text.train_whole_words and text.train_bpe make; for a tokenizer with other tokens, name them with "
            'text.SubwordTokenizer(tokenizer, {"bos": "<s>", "eos": "</s>"})'
        ) from error


def _check_tokenizers(programs: Mapping[str, Any], source: Any, target: Any) -> None:
    """Raise ValueError for tokenizers that do not match the model."""
    try:
        memory = programs["encode"](torch.tensor([[len(source) - 1]]))
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"the model reads fewer than the {len(source):,} tokens of the source's tokenizer: give the model's own"
        ) from error
    logits = programs["decode"](torch.ones(1, 1, dtype=torch.long), memory["states"], memory["attention_mask"])[
        "logits"
    ]
    requirements.check_logits_width(logits.shape[-1], target, "the target's tokenizer")
    requirements.check_finite(logits[..., : len(target)])


def _greedy(
    document: TranslateDocument, decode: Program, memory: Mapping[str, Tensor], size: int
) -> tuple[list[int], list[float]]:
    """Return the ids and probabilities of the greedy translation, among the first `size` ids of the vocabulary."""
    text, probabilities = [document["bos_id"]], list[float]()
    max_new_tokens = min(document["max_new_tokens"], MAX_STATIC_WORDS)
    while len(probabilities) < max_new_tokens and (not probabilities or text[-1] != document["eos_id"]):
        following = _probabilities(_logits(decode, memory, text)[-1, :size], document["suppressed_ids"])
        text.append(int(following.argmax()))
        probabilities.append(float(following.max()))
    return text[1:], probabilities


def _logits(
    decode: Program, memory: Mapping[str, Tensor], text: Sequence[int], edit: Mapping[str, PatternEdit] | None = None
) -> Tensor:
    """Return the logits after each token of a text, [target, token]."""
    return decode(torch.tensor([list(text)]), memory["states"], memory["attention_mask"], edit=edit)["logits"][0]


def _cross_attention(decode: Program, memory: Mapping[str, Tensor], text: Sequence[int]) -> dict[str, Tensor]:
    """Return the decoder's attention to the source, [head, target, source] for each site."""
    patterns: dict[str, Tensor] = {}

    def record(site: str, pattern: Tensor) -> Tensor:
        if pattern.shape[-1] == memory["states"].shape[1]:
            patterns[site] = pattern[0]
        return pattern

    sites = [site for site in decode.sites if "cross" in site] or decode.sites
    _logits(decode, memory, text, {site: partial(record, site) for site in sites})
    return patterns


def _strongest_head(
    decode: Program, memory: Mapping[str, Tensor], text: Sequence[int], maps: Mapping[str, Tensor], position: int
) -> HeadState:
    """Return the head of the cross-attention whose ablation changes the probabilities at a position of the text most.

    Return the first head of a model of more than `MAX_HEADS`.
    """
    heads = [
        Head(layer, site, head) for layer, (site, pattern) in enumerate(maps.items()) for head in range(len(pattern))
    ]

    def probabilities(edit: Mapping[str, PatternEdit]) -> Tensor:
        return _logits(decode, memory, text, edit)[position].float().softmax(-1)

    return FIRST_HEAD if len(heads) > MAX_HEADS else most_influential_head(heads, probabilities)

"""`view.patch`, the studio of activation patching: a corrupt run of a model with activations of a clean run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tfviz.checks import at_least
from tfviz.eval_mode import eval_mode, model_device, weights_device
from tfviz.portable.program import Program
from tfviz.study.table import Table
from tfviz.view.analysis_tables import figure_table
from tfviz.view.documents.studios import PatchDocument
from tfviz.view.figures.bar_chart import bar_table
from tfviz.view.figures.formatting import format_count, format_number, shorten
from tfviz.view.figures.static_figure import StaticFigure, subtitled
from tfviz.view.page.heads import MAX_PAGE_BYTES
from tfviz.view.page.html import View
from tfviz.view.studio import requirements
from tfviz.view.studio.build import STUDIO_STATE, examples_spec, studio_view
from tfviz.view.studio.patching_program import PatchSites, export_patching, find_sites, patched_logits

if TYPE_CHECKING:
    from tfviz.view.studio.patch_widget import PatchWidget

# what `examples` can set
CHOICES = ("clean", "corrupt", "clean_answer_id", "corrupt_answer_id", "target")
COLUMNS = {"clean": "after the clean text", "corrupt": "after the corrupt text", "patched": "with the patch"}
LIKELIEST = 5  # next tokens of each run in the static picture
MAX_TARGETS = 400  # layers times positions, up to which the static picture shows the table


def patch(
    model: nn.Module,
    tokenizer: Any,
    clean: str,
    corrupt: str,
    title: str = "Which part holds the answer?",
    *,
    answers: Sequence[str | int] | None = None,
    dtype: str = "float16",
    max_bytes: float | None = MAX_PAGE_BYTES,
    kernel: bool = False,
    examples: Mapping[str, Mapping[str, Any]] | None = None,
) -> View | PatchWidget:
    """Explore activation patching: run a corrupt text with one activation of a clean text's run.

    The page shows two tables. A cell of the first stands for the residual stream before a layer at a position. A cell
    of the second stands for a head's output at all positions. A click on a cell patches this activation. The number in
    a cell is the change of the metric, as in `study.patch`: the logit of the clean text's answer minus the logit of the
    corrupt text's answer, after the last token. The model is embedded in the page and runs there, also for texts that
    the reader types.

    Args:
        model: a causal language model with a stack of blocks, such as `models.GPT` or `GPT2LMHeadModel`. It returns
            logits [batch, position, vocab], or an object that has them as `.logits`, for ids [batch, position].
        tokenizer: one of `tfviz.text`, or a fast tokenizer of transformers, whose special tokens are omitted; with
            `kernel`, any tokenizer, since Python then encodes.
        clean: the text whose run provides the activations.
        corrupt: a text with another answer and as many tokens, in which corresponding tokens have the same positions.
        title: the title.
        answers: the tokens after the clean and the corrupt text whose logits are compared: texts of one token each,
            such as `(" Mary", " John")`, or ids; None: the likeliest next token of each text.
        dtype: storage format of the weights: "float32", "float16", or "int8".
        max_bytes: maximum size of the model in the page as base64, in bytes; None: no limit.
        kernel: whether the model stays in Python and answers while the notebook's kernel runs, for models that are too
            large for a page. Without its kernel, the page shows the heads of the corrupt text.
        examples: experiments shown as buttons above the view: name -> the state that it sets, such as `{"The subject":
            {"target": ["residual", 2, 3]}}`, layer 2 at position 3; `{"target": ["heads", 1, 0]}` is head 0 of layer 1.

    Raises:
        TypeError: `tokenizer` is not a tokenizer.
        ValueError: the texts have different numbers of tokens, or none, or too many; an answer is not one token; the
            model cannot be exported or patched (the message gives the reason), or exceeds `max_bytes`.
    """
    tokenizer, tokenizer_spec = requirements.read_tokenizer(tokenizer, kernel)
    context = requirements.context_length(model)
    ids = _encode(tokenizer, context, clean=clean, corrupt=corrupt)
    chosen = [-1, -1] if answers is None else _answer_ids(tokenizer, answers)
    weights_device(model)
    if not kernel:
        requirements.check_weights(model)
    requirements.check_causal(model, tokenizer)
    sites = find_sites(model)
    document: PatchDocument = {
        "kind": "patch", "title": title, "examples": examples_spec(examples, CHOICES), "tokenizers": [tokenizer_spec],
        "context": context, "layers": sites.block_labels, "attentions": sites.attention_labels, "heads": sites.heads,
        "dim": sites.dim, "head_dim": sites.size,
        "state": {
            **STUDIO_STATE, "clean": clean, "corrupt": corrupt, "clean_answer_id": chosen[0],
            "corrupt_answer_id": chosen[1], "target": [],
        },
    }  # fmt: skip
    draw = partial(_picture, tokenizer, title)
    if kernel:
        from tfviz.view.studio.patch_widget import PatchWidget

        widget = PatchWidget(model, tokenizer, document, sites, ids, draw)
        _check_logits(widget.logits, tokenizer)
        return widget
    program = export_patching(model, sites, dtype)
    logits = [_unpatched(program, sites, one) for one in ids]
    _check_logits(logits, tokenizer)
    static_figure = draw(clean, chosen, dict(zip(("clean", "corrupt"), logits)))
    likeliest = [int(one[: len(tokenizer)].argmax()) for one in logits]
    answered = [own if token < 0 else token for token, own in zip(chosen, likeliest)]
    if len(sites.blocks) * len(ids[0]) <= MAX_TARGETS and len(set(answered)) == 2:
        static_figure = _patch_effects(model, tokenizer, sites, ids, answered, static_figure)
    return studio_view(document, static_figure, {"read": program}, max_bytes)


def _check_logits(logits: Sequence[Tensor], tokenizer: Any) -> None:
    """Raise ValueError unless both texts have finite logits for the tokens of the vocabulary."""
    requirements.check_logits_width(len(logits[0]), tokenizer)
    requirements.check_finite(torch.stack([one[: len(tokenizer)] for one in logits]))


def _encode(tokenizer: Any, context: int, **texts: str) -> list[Tensor]:
    """Return the ids of both texts.

    Raises:
        ValueError: a text is empty or too long; they have different numbers of tokens.
    """
    ids = {name: tokenizer.encode(text) for name, text in texts.items()}
    for name, one in ids.items():
        if not 0 < len(one) <= context:
            raise ValueError(f"{name} has {format_count(len(one), 'token')}; the model takes 1 to {context}")
    clean, corrupt = ids.values()
    if len(clean) != len(corrupt):
        raise ValueError(
            f"clean has {format_count(len(clean), 'token')} and corrupt {format_number(len(corrupt))}: "
            f"{tokenizer.tokens(clean)} and {tokenizer.tokens(corrupt)}; give texts of equally many tokens, with "
            "corresponding tokens at the same positions"
        )
    return [clean, corrupt]


def _answer_ids(tokenizer: Any, answers: Sequence[str | int]) -> list[int]:
    """Return the ids of both answers.

    Raises:
        ValueError: there are not two different answers, or an answer is not a single token of the vocabulary.
    """
    if isinstance(answers, str) or len(answers) != 2:
        raise ValueError(f"answers are {answers!r}; give two, of the clean and of the corrupt text")
    ids = []
    for name, answer in zip(("clean", "corrupt"), answers):
        tokens = tokenizer.encode(answer) if isinstance(answer, str) else torch.tensor([answer])
        if len(tokens) != 1:
            raise ValueError(
                f"the answer of {name}, {answer!r}, has {format_count(len(tokens), 'token')}: "
                f"{tokenizer.tokens(tokens)}; give a text of one token, or the id of its first"
            )
        at_least(0, answers=int(tokens[0]))
        if tokens[0] >= len(tokenizer):
            raise ValueError(f"the answer of {name} is {answer}; the ids go from 0 to {len(tokenizer) - 1}")
        ids.append(int(tokens[0]))
    if ids[0] == ids[1]:
        raise ValueError(f"both answers are {answers[0]!r}; give two that differ, so that their logits can be compared")
    return ids


def _unpatched(program: Program, sites: PatchSites, ids: Tensor) -> Tensor:
    """Return the logits after the last token of a text without a patch, [vocab]."""
    count = len(ids)
    return program(
        ids[None],
        torch.zeros(len(sites.blocks), count, dtype=torch.bool),
        torch.zeros(len(sites.blocks), count, sites.dim),
        torch.zeros(len(sites.projections), sites.heads, count, dtype=torch.bool),
        torch.zeros(len(sites.projections), count, sites.heads, sites.size),
    )["logits"]


def _patch_effects(
    model: nn.Module,
    tokenizer: Any,
    sites: PatchSites,
    ids: Sequence[Tensor],
    answers: Sequence[int],
    bars: StaticFigure,
) -> StaticFigure:
    """Return a picture of the page's first table: the effect of patching each layer's input at each position.

    Args:
        model: as for `patch`.
        tokenizer: as for `patch`.
        sites: where the model can be patched.
        ids: the ids of the clean and the corrupt text, [position] each.
        answers: the ids of the tokens whose logits are compared.
        bars: the picture of the next tokens, whose title and summary are kept.
    """
    right, other = tokenizer.tokens(torch.tensor(list(answers)))
    tokens = [a if a == b else f"{a}/{b}" for a, b in zip(*map(tokenizer.tokens, ids))]
    clean, corrupt = (one.to(model_device(model)) for one in ids)

    def difference(source: Tensor, target: tuple[int, int]) -> float:
        logits = patched_logits(model, sites, torch.stack([source, corrupt]), ("residual", *target))
        return float(logits[answers[0]] - logits[answers[1]])

    with eval_mode(model), torch.no_grad():
        unpatched = difference(corrupt, (0, 0))
        changes = [
            [difference(clean, (layer, at)) - unpatched for at in range(len(tokens))]
            for layer in range(len(sites.blocks))
        ]
    unit = f"change of the logit of {right!r} minus that of {other!r}, with this vector of the clean run"
    title, summary = bars.summary.split("\n", 1)
    axes = {"layer input": sites.block_labels, "position": tokens}
    return figure_table(Table(torch.tensor(changes), axes, unit), title, summary)


def _picture(
    tokenizer: Any, title: str, clean: str, answers: Sequence[int], logits: Mapping[str, Tensor]
) -> StaticFigure:
    """Return a picture of the answers and the likeliest next tokens; `logits` [vocab] are by run, such as "clean"."""
    probabilities = {name: one[: len(tokenizer)].float().softmax(-1) for name, one in logits.items()}
    likeliest = [
        token for one in probabilities.values() for token in one.topk(min(LIKELIEST, len(one))).indices.tolist()
    ]
    tokens = list(dict.fromkeys([*(answer for answer in answers if answer >= 0), *likeliest]))
    columns = {COLUMNS[name]: one[tokens].round(decimals=3) for name, one in probabilities.items()}
    return bar_table(
        tokenizer.tokens(torch.tensor(tokens)),
        columns,
        subtitled(title, f"clean is {shorten(clean, 40)!r}"),
        limit=1.0,
    )

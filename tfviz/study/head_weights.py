"""`head_weights`: W_Q, W_K, W_V and W_O of each head, and the composition of heads (Elhage et al. 2021).

The projections are affine in the input of an attention, so the model's own forward pass reveals them: the output for a
basis vector minus the output for zeros is a row of the matrix, in whatever layout the model stores it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.compiled import uncompiled
from tfviz.eval_mode import eval_mode
from tfviz.look.map_arguments import range_labels
from tfviz.shapes import Float
from tfviz.study.head_responses import HeadResponses
from tfviz.study.inputs import Inputs, Prompt
from tfviz.study.sites import site_axis
from tfviz.study.table import Table
from tfviz.study.table_labels import label_index
from tfviz.validation import unchecked

COMPOSITIONS = ("query", "key", "value")


@dataclass(eq=False, repr=False)
class HeadWeights:
    """The weight matrices of each head: for an input x [position, dim], the queries are x @ query plus a bias.

    Norms before the attention and biases are not folded in; TransformerLens folds norms in by default.

    Attributes:
        query: W_Q, [layer, head, dim, head_dim].
        key: W_K, [layer, head, dim, head_dim]; with grouped-query attention, shared key heads are repeated.
        value: W_V, [layer, head, dim, value_dim], repeated likewise; value_dim may differ from head_dim.
        output: W_O, [layer, head, value_dim, dim], from the output of a head to the output of the attention.
        labels: the labels of the layers.
        model: the name of the model's class.

    >>> from tfviz import models
    >>> head_weights(models.GPT(11, layers=2, heads=3, dim=6))
    weights of GPT: 2 layers x 3 heads, from 6 numbers to 2
    """

    query: Float[Tensor, "layer head dim head_dim"]
    key: Float[Tensor, "layer head dim head_dim"]
    value: Float[Tensor, "layer head dim value_dim"]
    output: Float[Tensor, "layer head value_dim dim"]
    labels: Sequence[str]
    model: str = "the model"

    def __post_init__(self) -> None:
        checks.materialized(query=self.query, key=self.key, value=self.value, output=self.output)
        shapes = {name: list(getattr(self, name).shape) for name in ("query", "key", "value", "output")}
        query, value = shapes["query"], shapes["value"]
        expected = {"key": query, "value": [*query[:3], *value[3:]], "output": [*query[:2], *value[3:], *query[2:3]]}
        if len(query) != 4 or len(value) != 4 or any(shapes[name] != shape for name, shape in expected.items()):
            raise ValueError(
                f"{', '.join(f'{name} is {shape}' for name, shape in shapes.items())}; give query, key and value "
                "[layer, head, dim, head_dim], and output [layer, head, head_dim, dim]"
            )
        if len(self.labels) != query[0]:
            raise ValueError(f"labels has {len(self.labels)} labels, the weights have {query[0]} layers")

    def __repr__(self) -> str:
        layers, heads, dim, head_dim = self.query.shape
        return f"weights of {self.model}: {layers} layers x {heads} heads, from {dim} numbers to {head_dim}"

    def qk(self, layer: int | str, head: int | str) -> Float[Tensor, "dim dim"]:
        """Return W_Q W_K^T of a head: x @ qk @ y is the score of key y for query x, without biases and positions.

        The division of scores by the square root of `head_dim` is not included, unless the model scales its queries
        before it passes them to PyTorch's kernel (OPT).

        Raises:
            LookupError: there is no such layer or head.
        """
        index = self._index(layer, head)
        return self.query[index] @ self.key[index].T

    def ov(self, layer: int | str, head: int | str) -> Float[Tensor, "dim dim"]:
        """Return W_V W_O of a head: x @ ov is its output where it attends only to x, without biases.

        Raises:
            LookupError: there is no such layer or head.
        """
        index = self._index(layer, head)
        return self.value[index] @ self.output[index]

    def _index(self, layer: int | str, head: int | str) -> tuple[int, int]:
        axes = {"layer": self.labels, "head": range_labels(self.query.shape[1])}
        return label_index(axes, "layer", layer), label_index(axes, "head", head)

    def composition(self, kind: Literal["query", "key", "value"] = "query") -> Table:
        """Return composition scores: how much each head reads of the output of each head in an earlier layer.

        The score is ||W_OV W|| / (||W_OV|| ||W||) in Frobenius norms (Elhage et al. 2021, "A Mathematical Framework for
        Transformer Circuits"). W is the receiver's W_QK for queries, its transpose for keys, and W_OV for values.
        The note "unrelated" is 1/sqrt(dim), the root mean square of the score for unrelated directions. All layers are
        assumed to share one residual stream: of an encoder-decoder, take the weights of one half.

        Args:
            kind: whether the receiver's queries, keys or values read the sender's output.

        Returns:
            A table [sender, receiver] with labels such as "0.3" (layer 0, head 3); NaN where the sender is not in an
            earlier layer.
        """
        checks.one_of(COMPOSITIONS, kind=kind)
        read, rest = {
            "query": (self.query, self.key),
            "key": (self.key, self.query),
            "value": (self.value, self.output.mT),
        }[kind]
        written = _qr_factor(self.value) @ self.output  # [layer, head, rank, dim], with the norms of W_OV
        read = read @ _qr_factor(rest).mT  # [layer, head, dim, rank], with the norms of W
        layers, heads, dim, _ = read.shape
        scores = torch.full((layers, heads, layers, heads), torch.nan)
        norms = written.norm(dim=(2, 3)), read.norm(dim=(2, 3))
        for sender in range(layers):
            for receiver in range(sender + 1, layers):
                product = written[sender].flatten(0, 1) @ read[receiver].transpose(0, 1).flatten(1)
                whole = product.unflatten(0, (heads, -1)).unflatten(2, (heads, -1)).norm(dim=(1, 3))
                scale = norms[0][sender, :, None] * norms[1][receiver]
                scores[sender, :, receiver] = whole / scale.clamp(min=torch.finfo(scale.dtype).tiny)
        names = [f"{label}.{head}" for label in self.labels for head in range(heads)]
        return unchecked(
            Table,
            scores.flatten(2).flatten(0, 1),
            {"sender": names, "receiver": names},
            "share of the norm",
            f"Composition of heads by {kind} in {self.model}",
            {"model": self.model, "kind": kind, "unrelated": dim**-0.5},
        )


def head_weights(
    model: nn.Module, ids: Prompt | None = None, *, sites: str | Sequence[str] = "*.output_heads"
) -> HeadWeights:
    """Return W_Q, W_K, W_V and W_O of each head, for a model with any layout of weights.

    The model runs on about dim + heads x head_dim basis vectors, which replace the inputs of all attentions. Queries
    and keys are measured at the first position, where rotary embeddings are the identity (except for the factor of
    YaRN). The results are float32 and take as much memory as float32 weights of the attentions; a model in half
    precision rounds them.

    Args:
        model: the model, whose attention must use a fused kernel; it runs in eval mode.
        ids: one text [1, position], or a model's arguments by name, such as an image for a ViT. Their content does not
            matter. None: one token.
        sites: globs of the `.output_heads` of the attentions, such as those of one half of an encoder-decoder.

    Raises:
        LookupError: there is no attention, or no site matches.
        ValueError: the model does not run on one token alone; its attention does not use a fused kernel (give
            attn_implementation="sdpa"), or is computed several times; a projection is not linear, as after a norm of
            queries and keys (Qwen 3), or reads another text; attentions differ in size.

    >>> from tfviz import models
    >>> weights = head_weights(models.GPT(11, layers=2, heads=3, dim=6))
    >>> list(weights.query.shape), list(weights.output.shape), list(weights.qk(0, 2).shape)
    ([2, 3, 6, 2], [2, 3, 2, 6], [6, 6])
    """
    model = uncompiled(model)
    with eval_mode(model):
        inputs = _one_token(model) if ids is None else Inputs.from_prompt("ids", ids, model).text(0)
        responses = HeadResponses(model, inputs, [sites] if isinstance(sites, str) else sites)
        query, key, value = (torch.stack([rows.movedim(1, 0) for rows in maps]) for maps in responses.input_maps())
        output = torch.stack(responses.head_maps())
    _, labels = site_axis([f"{path}.output_heads" for path in responses.paths])
    key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], 1) for part in (key, value))
    return HeadWeights(query, key, value, output, labels, type(model).__name__)


def _one_token(model: nn.Module) -> Inputs:
    """Return a text of one token that is not padding.

    Raises:
        ValueError: the model does not run on it.
    """
    padding = getattr(getattr(model, "config", None), "pad_token_id", None)
    inputs = Inputs.from_prompt("ids", torch.tensor([[0 if padding == 1 else 1]]), model)
    try:
        inputs.run(model)
    except Exception as error:
        raise ValueError(
            f"{type(model).__name__} does not run on one id alone ({type(error).__name__}: {error}): give the "
            "arguments of a call by ids=, such as {'pixel_values': picture}"
        ) from error
    return inputs


def _qr_factor(weights: Float[Tensor, "layer head dim width"]) -> Float[Tensor, "layer head rank width"]:
    """Return R of the decomposition QR = weights; a product with R has the norm of that with the weights."""
    return torch.linalg.qr(weights.float(), mode="r")[1]

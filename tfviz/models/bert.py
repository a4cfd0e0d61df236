"""BERT, an encoder trained on masked tokens and next-sentence prediction, and a classifier (Devlin et al. 2019)."""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.layers import Block, TokenEmbedding, positions, post_norm
from tfviz.layers.blocks import Residual, final_norm, stack
from tfviz.layers.embeddings import check_ids
from tfviz.shapes import Bool, Float, Int

EPSILON = 1e-12  # of the paper's code


class BERTOutput(NamedTuple):
    """The logits of BERT's two tasks: masked tokens and next-sentence prediction."""

    logits: Float[Tensor, "*predicted vocab"]  # at each position, or at those of `prediction_mask`
    next_sentence_logits: Float[Tensor, "batch 2"]  # whether the second sentence follows the first: no, yes


class BERT(nn.Module):
    """BERT: a bidirectional encoder with heads for masked tokens and next-sentence prediction. Id 0 is padding.

    Embeddings of tokens, positions and segments are added. Blocks are post-norm, as in the paper, by default.

    Args:
        vocab_size: number of tokens.
        context: maximum length of a text, in tokens.
        layers: number of blocks.
        heads: number of attention heads; it must divide `dim`.
        dim: width of the residual stream.
        dropout: dropout probability of the embeddings and of each branch.
        epsilon: number added to the variance in layer norms.
        positions, residual: the position encoding and the order of norm and branch; the defaults are the paper's.
        block: further arguments of `layers.Block`, such as `inner`; `norm` makes all norms, also outside the blocks.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        context: int = 512,
        layers: int = 4,
        heads: int = 4,
        dim: int = 128,
        dropout: float = 0.1,
        epsilon: float = EPSILON,
        positions: type[positions.PositionEncoding] = positions.Learned,
        residual: Residual = post_norm,
        **block: Any,
    ):
        super().__init__()
        checks.at_least(0, epsilon=epsilon)
        if "norm" in block and epsilon != EPSILON:
            raise ValueError(f"epsilon is {epsilon}, and norm is given; give norm alone, with an epsilon of its own")
        norm = block.get("norm", partial(nn.LayerNorm, eps=epsilon))
        block |= {"dropout": dropout, "residual": residual, "norm": norm}
        self.tokens, self.segments = TokenEmbedding(vocab_size, dim), nn.Embedding(2, dim)
        self.positions = positions(context, dim, heads)
        self.blocks = stack(layers, lambda: Block(dim, heads, **block))
        self.norm, self.dropout = norm(dim), nn.Dropout(dropout)
        self.last_norm = final_norm(dim, residual, norm)
        self.pooler = nn.Linear(dim, dim)
        self.mlm_dense, self.mlm_norm = nn.Linear(dim, dim), norm(dim)
        self.mlm_bias = nn.Parameter(torch.zeros(vocab_size))
        self.next_sentence_head = nn.Linear(dim, 2)
        for module in self.modules():  # as in the paper's code
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(
        self,
        ids: Int[Tensor, "batch position"],
        segments: Int[Tensor, "batch position"] | None = None,
        prediction_mask: Bool[Tensor, "batch position"] | None = None,
    ) -> BERTOutput:
        """Return the logits of the token at each position, and of whether the second sentence follows the first.

        Args:
            ids: the ids of the tokens, `[batch, position]`.
            segments: 0 in the first sentence, 1 in the second, `[batch, position]`; None for one sentence.
            prediction_mask: True at the positions whose logits are computed, `[batch, position]`; None for all.

        Raises:
            ValueError: `prediction_mask` is not boolean, or does not have the shape of `ids`.
        """
        x = self.encode(ids, segments)
        if prediction_mask is not None and (prediction_mask.dtype != torch.bool or prediction_mask.shape != ids.shape):
            shape = list(prediction_mask.shape)
            raise ValueError(
                f"prediction_mask is {prediction_mask.dtype} {shape}; give booleans {list(ids.shape)}, as the ids"
            )
        predicted = x if prediction_mask is None else x[prediction_mask]
        words = self.mlm_norm(functional.gelu(self.mlm_dense(predicted)))
        logits = functional.linear(words, self.tokens.weight, self.mlm_bias)
        return BERTOutput(logits, self.next_sentence_head(self.pool(x)))

    def encode(
        self, ids: Int[Tensor, "batch position"], segments: Int[Tensor, "batch position"] | None = None
    ) -> Float[Tensor, "batch position dim"]:
        """Return the output of the last block at each position, `[batch, position, dim]`.

        Raises:
            ValueError: `segments` and `ids` have different shapes.
        """
        embedded = self.tokens(ids)
        segments = torch.zeros_like(ids) if segments is None else segments
        if segments.shape != ids.shape:
            raise ValueError(f"segments are {list(segments.shape)}, ids are {list(ids.shape)}; their shapes must match")
        check_ids(segments, 2, "segments")
        x = self.dropout(self.norm(self.positions(embedded + self.segments(segments))))
        for block in self.blocks:
            x = block(x, mask=(ids != 0)[:, None, None], positions=self.positions)
        return self.last_norm(x)

    def pool(self, x: Float[Tensor, "batch position dim"]) -> Float[Tensor, "batch dim"]:
        """Return one vector for each text: the state of its first token, `[CLS]`, after a linear layer and tanh."""
        return torch.tanh(self.pooler(x[:, 0]))


class BERTClassifier(nn.Module):
    """BERT with a classification layer on the pooled vector of `[CLS]`, for fine-tuning (Devlin et al. 2019, 3.2).

    Args:
        bert: the encoder, pretrained or not; it is not copied.
        classes: number of labels.
        dropout: dropout probability of the pooled vector.
    """

    def __init__(self, bert: BERT, classes: int = 2, dropout: float = 0.1):
        super().__init__()
        checks.fits_memory(classes=classes, dim=bert.pooler.out_features)
        checks.between(0, 1, dropout=dropout)
        self.bert, self.dropout = bert, nn.Dropout(dropout)
        self.to_logits = nn.Linear(bert.pooler.out_features, classes)
        nn.init.normal_(self.to_logits.weight, std=0.02)
        nn.init.zeros_(self.to_logits.bias)

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch label"]:
        """Return the logits of the labels; each text must begin with `[CLS]`."""
        return self.to_logits(self.dropout(self.bert.pool(self.bert.encode(ids))))

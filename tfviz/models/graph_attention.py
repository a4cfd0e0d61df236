"""A graph attention network, whose attention mask is the edges of a graph (Velickovic et al. 2018)."""

from typing import Any

from torch import Tensor, nn

from tfviz import checks
from tfviz.layers import Block, masks
from tfviz.layers.blocks import final_norm, stack
from tfviz.shapes import Bool, Float


class GraphAttention(nn.Module):
    """A node classifier: Transformer blocks in which a node attends only to its neighbours.

    There are no position encodings, so that permuting the nodes permutes the outputs. Scores are the scaled dot
    products of the Transformer (Dwivedi & Bresson 2021, section 2.2), not the one-layer network of Velickovic et al.
    After n layers a node has information from nodes up to n edges away.

    Args:
        features: number of features of a node.
        classes: number of labels.
        layers: number of blocks.
        heads: number of attention heads; it must divide `dim`.
        dim: width of the residual stream.
        dropout: dropout probability of each branch.
        block: further arguments of `layers.Block`, such as `residual`; `norm` also makes the final norm.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        layers: int = 2,
        heads: int = 4,
        dim: int = 32,
        dropout: float = 0.0,
        **block: Any,
    ):
        super().__init__()
        checks.fits_memory(features=features, dim=dim)
        checks.fits_memory(classes=classes, dim=dim)
        self.input = nn.Linear(features, dim)
        self.blocks = stack(layers, lambda: Block(dim, heads, dropout=dropout, **block))
        self.norm = final_norm(dim, **block)
        self.output = nn.Linear(dim, classes)

    def forward(
        self, features: Float[Tensor, "batch node features"], edges: Bool[Tensor, "batch node node"]
    ) -> Float[Tensor, "batch node classes"]:
        """Return the logits of each node's label; node i attends to node j where `edges[batch, i, j]`, also for i = j.

        Raises:
            ValueError: the shapes are not [batch, node, features] and [batch, node, node].
        """
        batch, nodes = features.shape[:2]
        if features.dim() != 3 or edges.shape != (batch, nodes, nodes):
            shapes = f"features are {list(features.shape)}, edges {list(edges.shape)}"
            raise ValueError(f"{shapes}; give [batch, node, features] and [batch, node, node]")
        mask = masks.graph(edges).dense(nodes, nodes, batch=batch, device=edges.device)
        x = self.input(features)
        for block in self.blocks:
            x = block(x, mask=mask)
        return self.output(self.norm(x))

"""Attention on a graph: who may look at whom is the graph, given as a mask (Velickovic et al. 2018)."""

from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import what
from tfviz.layers import Block, masks, pre_norm
from tfviz.layers.blocks import Residual, stack
from tfviz.shapes import Bool, Float


class GraphAttention(nn.Module):
    """A classifier of nodes: Transformer blocks in which a node looks at its neighbours only.

    There are no positions: nodes in another order give the same answers in that order. Scores are the scaled dot
    products of the Transformer (Dwivedi & Bresson 2021, section 2.2), not the one-layer network of the first paper.
    After n layers a node knows of what is n edges away.

    Args:
        features: numbers that describe a node.
        classes: number of labels.
        dim: width of the residual stream.
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
        residual: Residual = pre_norm,
    ):
        super().__init__()
        bounds.affordable(features=features, dim=dim)
        bounds.affordable(classes=classes, dim=dim)
        bounds.between(0, 1, dropout=dropout)
        self.input = nn.Linear(features, dim)
        self.blocks = stack(layers, lambda: Block(dim, heads, dropout=dropout, residual=residual))
        self.norm = nn.LayerNorm(dim) if residual is pre_norm else nn.Identity()
        self.output = nn.Linear(dim, classes)

    def forward(
        self, features: Float[Tensor, "batch node features"], edges: Bool[Tensor, "batch node node"]
    ) -> Float[Tensor, "batch node classes"]:
        """Logits of each node's label. Where `edges[batch, i, j]`, node i looks at node j; at itself too if i = j."""
        width = self.input.in_features
        if not isinstance(features, Tensor) or features.dim() != 3 or features.shape[-1] != width:
            raise ValueError(
                f"features are {what(features)}; give floats, batch node features, with {width} features: of one graph "
                "features[None]"
            )
        if not features.is_floating_point():
            raise ValueError(f"features are {features.dtype}; give floats: features.float()")
        batch, nodes, _ = features.shape
        if not isinstance(edges, Tensor) or edges.shape != (batch, nodes, nodes):
            raise ValueError(f"edges are {what(edges)}; these features need {[batch, nodes, nodes]}")
        mask = masks.graph(edges).dense(nodes, nodes, batch=batch, device=edges.device)
        x = self.input(features)
        for block in self.blocks:
            x = block(x, mask=mask)
        return self.output(self.norm(x))

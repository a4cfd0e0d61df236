"""Types of the document that shows how one query's weights are computed, dimension by dimension."""

from typing import Literal, TypedDict

from tfviz.view.documents.heads import Piece


class NeuronsState(TypedDict):
    """The head and the query that are looked at."""

    layer: int
    head: int
    query: int


class NeuronsLayer(TypedDict):
    """The queries and keys of one layer's heads, as they are multiplied.

    Attributes:
        queries: of each head, float32 [query, dim].
        keys: of each group of heads that share theirs, float32 [key, dim].
        biases: of each head, float32 [query, key], what is added to its scaled scores; null: nothing.
        masks: of each head, the number of its mask; null: all may be seen.
    """

    dim: int
    scale: float
    queries: list[Piece]
    keys: list[Piece]
    biases: list[Piece | None]
    masks: list[int | None]


class NeuronsDocument(TypedDict):
    """Queries and keys of heads.

    Attributes:
        rows: a word for each query.
        cols: a word for each key.
        layers: all of the same number of heads.
        masks: as those of heads.
    """

    kind: Literal["neurons"]
    title: str
    rows: list[str]
    cols: list[str]
    layers: list[NeuronsLayer]
    masks: list[Piece]
    state: NeuronsState

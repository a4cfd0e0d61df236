"""Types of the document that shows how one query's weights are computed, dimension by dimension."""

from typing import Literal, TypedDict

from tfviz.view.documents.heads import ByteRange


class NeuronsState(TypedDict):
    """The head and the query that the reader chose."""

    layer: int
    head: int
    query: int


class NeuronsLayer(TypedDict):
    """The queries and keys of one layer's heads.

    Attributes:
        dim: the width of a head's queries and keys.
        scale: the factor of the dot products of queries and keys.
        queries: the queries of each head, float32 [query, dim].
        keys: the keys of each group of heads that share keys, float32 [key, dim].
        biases: what is added to each head's scaled scores, float32 [query, key]; null: nothing.
        masks: the index of each head's mask in the document; null: all keys are allowed.
    """

    dim: int
    scale: float
    queries: list[ByteRange]
    keys: list[ByteRange]
    biases: list[ByteRange | None]
    masks: list[int | None]


class NeuronsDocument(TypedDict):
    """The queries and keys of heads, layer by layer.

    Attributes:
        rows: a label for each query.
        columns: a label for each key.
        layers: the layers, which have the same number of heads.
        masks: packed as in `HeadsDocument`.
    """

    kind: Literal["neurons"]
    title: str
    rows: list[str]
    columns: list[str]
    layers: list[NeuronsLayer]
    masks: list[ByteRange]
    state: NeuronsState

"""Types of the documents of views of attention heads."""

from typing import Literal, NotRequired, TypedDict

from tfviz.view.spec import Divider

Piece = tuple[int, int]  # start and length in the bytes of a view's data
HeadMode = Literal["sheet", "head", "lines", "words", "picture"]
Arrangement = Literal["choose", "compare", "steps"]


class TokenGroups(TypedDict):
    """The index of each token's word.

    Attributes:
        rows: [query].
        cols: [key].
    """

    rows: list[int]
    cols: list[int]


class Patches(TypedDict):
    """The arrangement of the tokens of a side on a picture, in rows and columns of patches.

    Attributes:
        first: the token of the first patch; earlier tokens are not on the picture.
        upward: the first row is the lowest, as the frequencies of a spectrogram.
    """

    first: int
    rows: int
    columns: int
    upward: bool


class PatchSides(TypedDict):
    """The sides of attention maps that lie on a picture; null for a side of words."""

    rows: Patches | None
    cols: Patches | None


class StoredWeight(TypedDict):
    """A tensor as it is stored: numbers of one type, or 8-bit steps with a scale for each row, deflated.

    Attributes:
        dtype: dtype for computations.
        stored: dtype in the data.
        at: the place of the numbers in the data.
        scale: the place of float32 factors of the steps, one for each row.
    """

    shape: list[int]
    dtype: Literal["float32"]
    stored: Literal["float16", "int8"]
    at: Piece
    scale: NotRequired[Piece]


class QueriesAndKeys(TypedDict):
    """The queries and keys from which the heads of a layer are computed.

    Attributes:
        scale: the factor of the products of queries and keys.
        query: the queries of each head, [position, dim].
        key: the keys of each head; fewer than heads if heads share keys.
    """

    scale: float
    query: list[StoredWeight]
    key: list[StoredWeight]


class MapsPart(TypedDict):
    """The attention maps of one capture.

    Attributes:
        rows: a word for each query.
        cols: a word for each key.
        sites: the site of each layer.
        groups: null if each token is a word.
        weights: for each head, layer by layer: the place of its deflated codes (255 times the square root of a weight),
            and the number of cells, down and across, for each code.
        masks: the index of each head's mask in the document; null: there are no masks.
        key_ranges: the index of each head's key ranges in the document; null: there are masks instead.
        computed: the queries and keys of each layer, if the page computes the weights; null: their maps are stored.
        top: the number of keys stored for each query, if not all.
    """

    name: str
    rows: list[str]
    cols: list[str]
    sites: list[str]
    layers: int
    heads: int
    groups: TokenGroups | None
    weights: list[tuple[int, int, int]]
    masks: list[int | None] | None
    key_ranges: list[int | None] | None
    computed: NotRequired[list[QueriesAndKeys] | None]
    top: NotRequired[int]
    patches: NotRequired[PatchSides]


class ImageSpec(TypedDict):
    """The picture that attention is drawn on.

    Attributes:
        src: a data URL.
        width: pixels.
        height: pixels.
    """

    src: str
    width: int
    height: int


class HeadsState(TypedDict):
    """The choices of a reader of attention heads; the traits of `view.live`.

    Attributes:
        mode: the mode of display.
        part: the index of the capture.
        marked: heads that are shown together, [layer, head].
        combine: how several heads are combined into one.
        hide: the keys to leave out.
        hidden: the keys to leave out if `hide` is "chosen".
        merged: whether word pieces are merged into words.
        rows: queries that are locked.
        cols: keys that are locked.
        min_weight: the smallest weight that is drawn as a line.
        max_links: the maximum number of lines of a word.
        direction: whether the weights shown are those "from" a chosen query, or "to" a chosen key.
    """

    mode: HeadMode
    part: int
    layer: int
    head: int
    marked: list[list[int]]
    combine: Literal["mean", "max"]
    hide: Literal["nothing", "first", "separators", "sinks", "chosen"]
    hidden: list[int]
    merged: bool
    rows: list[int]
    cols: list[int]
    min_weight: float
    max_links: int
    direction: Literal["from", "to"]


class HeadsDocument(TypedDict):
    """A view of attention heads.

    Attributes:
        kind: "heads-computed" if the page computes weights from queries and keys.
        note: a sentence on omitted data and on gaps of the capture.
        masks: a bit for each cell, [query, key], the first of eight the highest; 1 where a query may look.
        key_ranges: int32, the first key of each query, then one past its last.
        title: the title; if empty, a description of what is shown.
        arrange: the arrangement of several parts.
        axes: names of rows and columns.
        outlined: cells to outline, (row, column).
        head_names: names of the heads, instead of numbers.
    """

    kind: Literal["heads", "heads-computed"]
    parts: list[MapsPart]
    note: str
    state: HeadsState
    masks: list[Piece]
    key_ranges: list[Piece]
    title: str
    arrange: Arrangement
    axes: list[str]
    outlined: list[list[int]]
    head_names: list[str]
    dividers: NotRequired[list[Divider]]
    picture: NotRequired[ImageSpec]

"""Documents of views of attention heads."""

from typing import Literal, NotRequired, TypedDict

from tfviz.view.spec import Divider

Piece = tuple[int, int]  # bytes in the data of a view: the first, and how many
HeadMode = Literal["sheet", "head", "lines", "words", "picture"]
Arrangement = Literal["choose", "compare", "steps"]


class TokenGroups(TypedDict):
    """The number of the word that each token of a side is a piece of.

    Attributes:
        rows: [query].
        cols: [key].
    """

    rows: list[int]
    cols: list[int]


class Patches(TypedDict):
    """The arrangement of the tokens of a side on a picture, in rows and columns of patches.

    Attributes:
        first: the token of the first patch; those before it lie nowhere.
        upward: the first row is the lowest, as the frequencies of a spectrogram.
    """

    first: int
    rows: int
    columns: int
    upward: bool


class PatchSides(TypedDict):
    """The sides of attention maps that lie on a picture; null for one of words."""

    rows: Patches | None
    cols: Patches | None


class StoredWeight(TypedDict):
    """A tensor as it is stored: numbers of one type, or 8-bit steps with a scale for each row, deflated.

    Attributes:
        dtype: of the numbers that are computed with.
        stored: of the numbers in the data.
        at: the numbers.
        scale: a float32 for each row, by which its steps are multiplied.
    """

    shape: list[int]
    dtype: Literal["float32"]
    stored: Literal["float16", "int8"]
    at: Piece
    scale: NotRequired[Piece]


class QueriesAndKeys(TypedDict):
    """The queries and keys that the heads of a layer are computed from.

    Attributes:
        scale: what the products of queries and keys are multiplied by.
        query: of each head, [position, dim].
        key: the same; fewer than heads where these share them.
    """

    scale: float
    query: list[StoredWeight]
    key: list[StoredWeight]


class MapsPart(TypedDict):
    """The attention maps of one capture.

    Attributes:
        rows: a word for each query.
        cols: a word for each key.
        sites: of the layers.
        groups: null where each token is a word.
        weights: of each head, layer by layer: the piece of its codes, 255 times the square root of a weight, deflated;
            and how many cells, down and across, a code stands for.
        masks: which of the document's masks each head has; null: no head has one.
        key_ranges: which of the document's key ranges each head has; null: it has masks instead.
        computed: of each layer, where the page computes weights; null where it has no room for queries and keys.
        top: how many keys of each query are stored, where not all are.
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
        mode: how the heads are shown.
        part: the index of the capture.
        marked: heads that are shown together, [layer, head].
        combine: how several heads are combined into one.
        hide: which keys are left out.
        hidden: the keys that are left out where `hide` is "chosen".
        merged: pieces of words are shown as whole words.
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
        kind: "heads-computed" where the page computes weights from queries and keys.
        note: a sentence on what was left out, and what a capture could not see.
        masks: a bit for each cell, [query, key], the first of eight the highest; 1 where a query may look.
        key_ranges: int32, the first key of each query, then one past its last.
        title: what stands above; what is shown, where it is empty.
        arrange: how several parts stand to each other.
        axes: names of rows and columns.
        gold: cells to outline, (row, column).
        head_names: instead of numbers.
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
    gold: list[list[int]]
    head_names: list[str]
    dividers: NotRequired[list[Divider]]
    picture: NotRequired[ImageSpec]

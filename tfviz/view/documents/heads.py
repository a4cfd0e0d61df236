"""Types of the documents of views of attention heads."""

from typing import Literal, NotRequired, TypedDict

from tfviz.view.spec import Divider

ByteRange = tuple[int, int]  # start and length in the bytes of a view's data
HeadMode = Literal["sheet", "head", "links", "words", "picture"]
Arrangement = Literal["choose", "compare", "steps"]


class TokenGroups(TypedDict):
    """The index of each token's word.

    Attributes:
        rows: [query].
        columns: [key].
    """

    rows: list[int]
    columns: list[int]


class Patches(TypedDict):
    """The grid of patches that the tokens of an axis form on a picture.

    Attributes:
        first: the index of the first patch's token; earlier tokens are not on the picture.
        upward: whether the first row of patches is the lowest, as in a spectrogram.
    """

    first: int
    rows: int
    columns: int
    upward: bool


class PatchSides(TypedDict):
    """The patch grids of the query axis and the key axis; null for an axis that is not on the picture."""

    rows: Patches | None
    columns: Patches | None


class StoredWeight(TypedDict):
    """A tensor in the data, compressed by zlib: float16, or int8 with a scale for each row.

    Attributes:
        dtype: the dtype for computations.
        stored: the dtype in the data.
        byte_range: the byte range of the numbers.
        scale: the byte range of the float32 scales by which int8 numbers are multiplied, one for each row.
    """

    shape: list[int]
    dtype: Literal["float32"]
    stored: Literal["float16", "int8"]
    byte_range: ByteRange
    scale: NotRequired[ByteRange]


class QueriesAndKeys(TypedDict):
    """The queries and keys from which the heads of a layer are computed.

    Attributes:
        scale: the factor of the dot products of queries and keys.
        query: the queries of each head, [position, dim].
        key: the keys of each head, [position, dim]; fewer than heads if heads share keys.
    """

    scale: float
    query: list[StoredWeight]
    key: list[StoredWeight]


class HeadCodes(TypedDict):
    """A head's codes in the data, deflated; each is 255 times the square root of a weight.

    Attributes:
        offset: where they begin, in bytes.
        length: their deflated size, in bytes.
        pool_size: the side, in cells, of the square that each code stands for.
    """

    offset: int
    length: int
    pool_size: int


class MapsPart(TypedDict):
    """The attention maps of one capture.

    Attributes:
        rows: a label for each query.
        columns: a label for each key.
        sites: the site of each layer.
        groups: the grouping of tokens into words; null if each token is a word.
        head_codes: the codes of each head, layer by layer.
        masks: the index of each head's mask in the document; null: there are no masks.
        key_ranges: the index of each head's key ranges in the document; null: there are masks instead.
        computed: the queries and keys of each layer, if the page computes the weights; null: their maps are stored.
        values: the weights themselves, deflated float32 [layer, head, query, key], where maps are so small that their
            numbers are written in the cells; if missing, the codes are all there is.
        top: the number of strongest keys stored for each query; if missing, all keys are stored.
    """

    name: str
    rows: list[str]
    columns: list[str]
    sites: list[str]
    layers: int
    heads: int
    groups: TokenGroups | None
    head_codes: list[HeadCodes]
    masks: list[int | None] | None
    key_ranges: list[int | None] | None
    computed: NotRequired[list[QueriesAndKeys] | None]
    values: NotRequired[ByteRange]
    top: NotRequired[int]
    patches: NotRequired[PatchSides]


class ImageSpec(TypedDict):
    """The picture that attention is drawn on.

    Attributes:
        src: a data URL.
        width: the width of the original picture, in pixels.
        height: the height of the original picture, in pixels.
    """

    src: str
    width: int
    height: int


class HeadsState(TypedDict):
    """The choices of a reader of attention heads; the traits of `view.live`.

    Attributes:
        mode: the mode of display.
        part: the index of the capture.
        selected_heads: heads that are shown together, [layer, head].
        combine_heads: how several heads are combined into one.
        hide_keys: the keys to leave out.
        hidden_keys: the keys to leave out if `hide_keys` is "chosen".
        merge_subwords: whether word pieces are merged into words.
        locked_rows: queries that are locked.
        locked_columns: keys that are locked.
        min_weight: the smallest weight that is drawn as a line.
        max_links: the maximum number of lines of a token.
        direction: whether the weights shown are those "from" a chosen query, or "to" a chosen key.
    """

    mode: HeadMode
    part: int
    layer: int
    head: int
    selected_heads: list[list[int]]
    combine_heads: Literal["mean", "max"]
    hide_keys: Literal["nothing", "first", "separators", "sinks", "chosen"]
    hidden_keys: list[int]
    merge_subwords: bool
    locked_rows: list[int]
    locked_columns: list[int]
    min_weight: float
    max_links: int
    direction: Literal["from", "to"]


class HeadsDocument(TypedDict):
    """A view of attention heads.

    Attributes:
        kind: "heads-computed" if the page computes weights from queries and keys.
        note: a sentence on omitted data and on gaps of the capture.
        masks: one bit for each cell, [query, key], most significant bit first; 1 where attention is allowed; deflated.
        key_ranges: int32, the first key of each query, then for each query one past its last key; deflated.
        title: the title; if empty, a description of what is shown.
        arrange: the arrangement of several parts.
        axes: names of rows and columns.
        outlined: cells to outline, (row, column).
        head_names: names of the heads, instead of numbers.
        unit: name of the numbers, if they are no attention weights; empty: the sheet has no scale.
    """

    kind: Literal["heads", "heads-computed"]
    parts: list[MapsPart]
    note: str
    state: HeadsState
    masks: list[ByteRange]
    key_ranges: list[ByteRange]
    title: str
    arrange: Arrangement
    axes: list[str]
    outlined: list[list[int]]
    head_names: list[str]
    unit: NotRequired[str]
    dividers: NotRequired[list[Divider]]
    image: NotRequired[ImageSpec]

"""Types of the documents of masks, tables of numbers, tokens with numbers, and points in a plane."""

from typing import Literal, NotRequired, TypedDict

from tfviz.view.documents.heads import ByteRange
from tfviz.view.spec import Divider, ScaleKind

Role = Literal["off", "all", "any", "not"]


class Predicate(TypedDict):
    """A rule for which keys a query may attend to, in one or several sizes.

    Attributes:
        sizes: the label of each size on the slider; [""] if there is no slider.
        masks: the index of each size's mask in the document.
    """

    name: str
    sizes: list[str]
    masks: list[int]


class MasksState(TypedDict):
    """The combination of predicates that the reader chose.

    Attributes:
        roles: the role of each predicate, by name; predicates without an entry are off.
        sizes: the index of each predicate's size.
        locked_rows: queries that are locked.
        locked_columns: keys that are locked.
    """

    roles: dict[str, Role]
    sizes: dict[str, int]
    locked_rows: list[int]
    locked_columns: list[int]


class MasksDocument(TypedDict):
    """Masks to combine.

    Attributes:
        masks: packed as in `HeadsDocument`.
        rows: a label for each query.
        columns: a label for each key.
        axes: names of rows and columns.
    """

    kind: Literal["masks"]
    title: str
    predicates: list[Predicate]
    masks: list[ByteRange]
    rows: list[str]
    columns: list[str]
    axes: list[str]
    state: MasksState


class TablePanel(TypedDict):
    """A table of numbers as a heatmap.

    Attributes:
        axes: names of rows and columns.
        data: float32, [row, column]; NaN for a cell without a number.
        limit: the end of the scale.
        numbered: whether the number is written into each cell.
        texts: the text of each cell, instead of a number.
        details: for each cell, tokens and their numbers, in descending order.
    """

    name: str
    rows: list[str]
    columns: list[str]
    axes: list[str]
    data: ByteRange
    scale: ScaleKind
    limit: float
    dividers: NotRequired[list[Divider]]
    numbered: NotRequired[bool]
    texts: NotRequired[list[list[str]]]
    details: NotRequired[list[list[list[tuple[str, float]]]]]


class TableTab(TypedDict):
    """Tables that are shown side by side.

    Attributes:
        note: a sentence above the tables.
        height: maximum height of a table, in pixels.
    """

    name: str
    panels: list[TablePanel]
    note: NotRequired[str]
    height: NotRequired[int]


class TablesState(TypedDict):
    """The tab that is shown, and the rows and columns that are locked."""

    tab: int
    locked_rows: list[int]
    locked_columns: list[int]


class TablesDocument(TypedDict):
    """Tables of numbers, tab by tab."""

    kind: Literal["tables"]
    title: str
    tabs: list[TableTab]
    state: TablesState


class TokensState(TypedDict):
    """The index of the token whose number is shown."""

    token: int


class TokensDocument(TypedDict):
    """A text with a number for each token.

    Attributes:
        data: float32, [token].
        limit: the end of the scale.
        unit: the unit of the numbers.
    """

    kind: Literal["tokens"]
    title: str
    tokens: list[str]
    data: ByteRange
    scale: ScaleKind
    limit: float
    unit: str
    state: TokensState


class PointsState(TypedDict):
    """The choices of a reader of points.

    Attributes:
        locked_rows: points whose names are locked.
        zoom: 1 shows the whole plane.
        middle: centre of the visible part, as shares of the width and the height.
    """

    locked_rows: list[int]
    zoom: float
    middle: list[float]


class PointsDocument(TypedDict):
    """Points in a plane.

    Attributes:
        names: names of the points.
        axes: names of the two coordinates.
        data: float32, [point, 2].
        spread: float32, [end, point, 2]: the lowest and the highest coordinates of each point over training runs.
        range: the lowest and the highest number of each axis.
        scales: "linear" or "log" for each axis.
        limit: the largest absolute value.
        labels: the index of each point's group, -1 for none; empty if there are no groups.
        legend: the label and the name of each group.
        marked: points to emphasize.
    """

    kind: Literal["points"]
    title: str
    names: list[str]
    axes: list[str]
    data: ByteRange
    spread: NotRequired[ByteRange]
    range: list[list[float]]
    scales: list[Literal["linear", "log"]]
    limit: float
    labels: list[int]
    legend: list[tuple[int, str]]
    marked: list[int]
    state: PointsState

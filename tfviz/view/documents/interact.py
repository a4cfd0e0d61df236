"""Documents of `view.interact`: the controls of a function's arguments, and how its results are drawn."""

from typing import Any, Literal, NotRequired, TypedDict

from tfviz.view.documents.heads import Piece
from tfviz.view.spec import ScaleKind

DrawingKind = Literal["number", "bars", "lines", "grid", "arrows", "dots", "words", "graph"]


class SliderSpec(TypedDict):
    """A slider.

    Attributes:
        start: where the control stands at first; here and in all others.
        integer: the function is given ints, and there is a program for each.
    """

    kind: Literal["slider"]
    low: float
    high: float
    step: float
    start: float
    integer: bool


class MenuSpec(TypedDict):
    """A list to choose from; its value is an index."""

    kind: Literal["menu"]
    names: list[str]
    start: int


class SwitchSpec(TypedDict):
    """A switch; its value is True or False."""

    kind: Literal["switch"]
    start: bool


class PointsSpec(TypedDict):
    """Points to drag.

    Attributes:
        start: [point, 2].
        limit: how far the plane goes, to each side of 0.
    """

    kind: Literal["points"]
    names: list[str]
    start: list[list[float]]
    limit: float


class TableAxes(TypedDict):
    """The axes of a table to change.

    Attributes:
        flat: the function is given the one row, without an axis of rows.
    """

    rows: list[str]
    cols: list[str]
    flat: bool


class CellsSpec(TableAxes):
    """Numbers in a table.

    Attributes:
        start: [row, column].
        step: by how much a key changes a number.
    """

    kind: Literal["cells"]
    start: list[list[float]]
    step: float


class SwitchesSpec(TableAxes):
    """Switches in a table.

    Attributes:
        start: [row, column].
    """

    kind: Literal["switches"]
    start: list[list[bool]]


class TextSpec(TypedDict):
    """A text to type.

    Attributes:
        vocab: what encodes it, as `to_spec` of `tfviz.text` describes it.
        max_tokens: how long it may be.
    """

    kind: Literal["text"]
    start: str
    vocab: dict[str, Any]
    max_tokens: int


class OrderSpec(TypedDict):
    """Words to put in order; its value is the index of the word at each place."""

    kind: Literal["order"]
    names: list[str]
    start: list[int]


class AngleSpec(TypedDict):
    """A dial, in radians from -pi to pi."""

    kind: Literal["angle"]
    start: float


ControlSpec = (
    SliderSpec | MenuSpec | SwitchSpec | PointsSpec | CellsSpec | SwitchesSpec | TextSpec | OrderSpec | AngleSpec
)


class ResultSpec(TypedDict):
    """The drawing of a result.

    Attributes:
        result: its name.
        rows: words, or the name of the control that has them.
        cols: the same.
        scale: null: linear, or diverging where a number is below 0.
        limit: where the scale ends; null: at the next round number.
        min_limit: where it ends at the earliest.
        positions: [x, y] of each node of a graph, or the name of the control that has them.
        filled: the diagonal of a graph fills its nodes.
        top: how many bars are drawn, the largest first; without it all, in their order.
    """

    result: str
    kind: DrawingKind
    title: str
    rows: str | list[str]
    cols: str | list[str]
    scale: ScaleKind | None
    limit: float | None
    min_limit: float
    positions: str | list[list[float]]
    filled: bool
    top: NotRequired[int]


class StoredResult(TypedDict):
    """A tensor that was computed.

    Attributes:
        dtype: "int64" in 32 bits each, "bool" in a byte.
        at: where its numbers are.
    """

    shape: list[int]
    dtype: Literal["float32", "int64", "bool"]
    at: Piece


class InteractState(TypedDict):
    """The current value of each control, by argument name."""

    values: dict[str, Any]


class InteractDocument(TypedDict):
    """A function with controls.

    Attributes:
        kind: "interact-snapshot": computed by a kernel that is not here any more.
        controls: by argument.
        discrete: the controls that choose among programs; all others give a program its inputs.
        programs: by the indices of what the discrete controls stand at, such as "0.2".
        data: the weights of the programs.
        results: of a snapshot, by name.
        tries: what the author proposes to try, [name, values of controls].
        purpose: what there is to do, in a sentence: the first of the function's docstring.
    """

    kind: Literal["interact", "interact-snapshot"]
    title: str
    note: NotRequired[str]
    controls: dict[str, ControlSpec]
    discrete: list[str]
    panels: list[ResultSpec]
    state: InteractState
    programs: NotRequired[dict[str, Any]]
    data: NotRequired[Piece]
    results: NotRequired[dict[str, StoredResult]]
    tries: NotRequired[list[list[Any]]]
    purpose: NotRequired[str]

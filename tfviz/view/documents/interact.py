"""Types of the documents of `view.interact`: controls of a function's arguments, and drawings of its results."""

from typing import Any, Literal, NotRequired, TypedDict

from tfviz.view.documents.heads import ByteRange
from tfviz.view.spec import ScaleKind

DrawingKind = Literal["number", "bars", "lines", "grid", "arrows", "dots", "words", "graph", "stack"]


class SliderSpec(TypedDict):
    """A slider.

    Attributes:
        start: the initial value, as in all other controls.
        integer: whether the function takes Python ints, with a separate program for each value.
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
        limit: the largest coordinate of the plane.
    """

    kind: Literal["points"]
    names: list[str]
    start: list[list[float]]
    limit: float


class TableAxes(TypedDict):
    """The axes of an editable table.

    Attributes:
        flat: whether the function takes the single row as a tensor [column].
        axes: names of the rows and of the columns.
    """

    rows: list[str]
    columns: list[str]
    flat: bool
    axes: NotRequired[list[str]]


class CellsSpec(TableAxes):
    """A table of numbers to edit.

    Attributes:
        start: [row, column].
        step: the change of a number by a key press.
        limits: the smallest and the largest number; if missing, there are none.
    """

    kind: Literal["cells"]
    start: list[list[float]]
    step: float
    limits: NotRequired[list[float]]


class SwitchesSpec(TableAxes):
    """A table of switches.

    Attributes:
        start: [row, column].
    """

    kind: Literal["switches"]
    start: list[list[bool]]


class TextSpec(TypedDict):
    """A text to type.

    Attributes:
        tokenizer: the tokenizer, as returned by `to_spec` in `tfviz.text`.
        min_tokens: the minimum length.
        max_tokens: the maximum length.
    """

    kind: Literal["text"]
    start: str
    tokenizer: dict[str, Any]
    min_tokens: int
    max_tokens: int


class OrderSpec(TypedDict):
    """Words to put in order; its value is the index of the word at each position."""

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
        result: the name of the result.
        rows: labels of the rows, or the name of the control that provides them.
        columns: labels of the columns, or the name of the control that provides them.
        scale: the scale of the colours; null: linear, or diverging if a number is below 0.
        limit: the end of the scale; null: the next round number.
        min_limit: the smallest possible end of the scale.
        positions: [x, y] of each node of a graph, or the name of the control that provides them.
        filled: whether the numbers on the diagonal of a graph fill its nodes.
        top: the number of bars, largest first; if missing, all in their order.
        axes: names of the rows and of the columns, or of the two coordinates of a plane.
        mark: labels of points that are drawn in colour, all others in grey; if missing, each has its own colour.
        ends: what the smallest and the largest number of the scale mean; of bars, what numbers below and above 0 mean.
        expected: the sign that the number of each bar should have; if missing, any.
        hatched: what a hatched cell means.
        unit: the unit of the numbers.
        budget: the largest sum of the parts of a stack that fits.
        sentence: the sentence about the result, with names in braces; if missing, one made from the numbers.
        shared: the first of the results that share one scale; if missing, the result has its own.
    """

    result: str
    kind: DrawingKind
    title: str
    rows: str | list[str]
    columns: str | list[str]
    scale: ScaleKind | None
    limit: float | None
    min_limit: float
    positions: str | list[list[float]]
    filled: bool
    top: NotRequired[int]
    axes: NotRequired[list[str]]
    mark: NotRequired[list[str]]
    ends: NotRequired[list[str]]
    expected: NotRequired[list[float]]
    hatched: NotRequired[str]
    unit: NotRequired[str]
    budget: NotRequired[float]
    sentence: NotRequired[str]
    shared: NotRequired[str]


class StoredResult(TypedDict):
    """A tensor that a kernel computed.

    Attributes:
        dtype: the dtype of the result; in the data, "int64" is stored as int32 and "bool" as uint8.
        byte_range: the byte range of its numbers in the data.
    """

    shape: list[int]
    dtype: Literal["float32", "int64", "bool"]
    byte_range: ByteRange


class InteractState(TypedDict):
    """The current value of each control, by argument name."""

    values: dict[str, Any]


class InteractDocument(TypedDict):
    """A function with controls.

    Attributes:
        kind: "interact-snapshot" if a kernel that has ended computed the results.
        controls: the control of each argument.
        discrete: the controls that select the program; all others are its inputs.
        programs: programs by the indices of the discrete controls, such as "0.2".
        data: the weights of the programs.
        results: the results of a snapshot, by name.
        examples: experiments that the author proposes, [name, values of controls].
        purpose: the instruction: the first sentence of the function's docstring.
    """

    kind: Literal["interact", "interact-snapshot"]
    title: str
    note: NotRequired[str]
    controls: dict[str, ControlSpec]
    discrete: list[str]
    panels: list[ResultSpec]
    state: InteractState
    programs: NotRequired[dict[str, Any]]
    data: NotRequired[ByteRange]
    results: NotRequired[dict[str, StoredResult]]
    examples: NotRequired[list[list[Any]]]
    purpose: NotRequired[str]

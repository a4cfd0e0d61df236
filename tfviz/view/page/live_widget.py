"""The widget of `view.live`: attention maps whose state Python reads and sets, with heads sent on request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfviz.extras import extra
from tfviz.look import AttentionMaps, quantize
from tfviz.view.figures import attention as figures
from tfviz.view.figures import links, text
from tfviz.view.figures.formatting import maps_size, shorten
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.page.bundle import BUNDLES
from tfviz.view.page.heads import HEADS_STATE, MAX_WIDGET_BYTES, heads_document, heads_view
from tfviz.view.page.html import View
from tfviz.view.page.kernel_widget import KernelWidget
from tfviz.view.page.payload import deflated

with extra("lessons"):
    import traitlets

INDEX_TRAIT = traitlets.Int(min=0)
INDEX_HELP, INDICES_HELP = "an integer from 0 on", "a list of places, integers from 0 on"
DISPLAY_MODES = ("sheet", "head", "links", "words")
HIDE_CHOICES = ("nothing", "first", "separators", "sinks", "chosen")
ON_DEMAND_NOTE = "Heads come in full as you open them; the sheet shows them in blocks."


class LiveView(KernelWidget):
    """A notebook widget of attention maps whose state is shared with Python.

    Each choice of the reader is a trait, described in `documents.heads.HeadsState`: `live.layer = 2` changes the view,
    and `live.observe(function, "locked_rows")` calls a function when the reader locks a row. Maps may have any size. If
    they exceed `max_bytes`, blocks of each head are sent at first, and a full head when the reader opens it.

    Args:
        maps: the attention maps of one capture, or of several by name.
        mode: the mode of display: "sheet", "head", "links" or "words".
        arrange: how several captures are arranged: "choose" one from a menu, "compare" two, or "steps" of a slider.
        title: heading of the view; None: a description of its content.
        max_bytes: maximum size of the data sent at first as base64, in bytes.
        state: initial values of traits, such as `layer=2`, `locked_rows=[3]`.

    Raises:
        TypeError: `state` names no trait of the view.
        ValueError: a trait cannot have the given value, or `max_bytes` is too small.
    """

    _esm = BUNDLES / "maps-widget.js"
    data = traitlets.Bytes().tag(sync=True)

    mode = traitlets.Enum(DISPLAY_MODES, DISPLAY_MODES[0], help="sheet, head, links or words").tag(sync=True)
    part = traitlets.Int(0, min=0, help=INDEX_HELP).tag(sync=True)
    layer = traitlets.Int(0, min=0, help=INDEX_HELP).tag(sync=True)
    head = traitlets.Int(0, min=0, help=INDEX_HELP).tag(sync=True)
    selected_heads = traitlets.List(
        traitlets.Tuple(INDEX_TRAIT, INDEX_TRAIT), help="a list of pairs (layer, head)"
    ).tag(sync=True)
    combine_heads = traitlets.Enum(("mean", "max"), "mean", help="mean or max").tag(sync=True)
    hide_keys = traitlets.Enum(HIDE_CHOICES, HIDE_CHOICES[0], help=", ".join(HIDE_CHOICES)).tag(sync=True)
    hidden_keys = traitlets.List(INDEX_TRAIT, help=INDICES_HELP).tag(sync=True)
    merge_subwords = traitlets.Bool(False, help="True or False").tag(sync=True)
    locked_rows = traitlets.List(INDEX_TRAIT, help=INDICES_HELP).tag(sync=True)
    locked_columns = traitlets.List(INDEX_TRAIT, help=INDICES_HELP).tag(sync=True)
    min_weight = traitlets.Float(0.02, min=0, max=1, help="a number from 0 to 1").tag(sync=True)
    max_links = traitlets.Int(5, min=1, help="an integer from 1 on").tag(sync=True)
    direction = traitlets.Enum(("from", "to"), "from", help="from or to").tag(sync=True)

    def __init__(
        self,
        maps: AttentionMaps | Mapping[str, AttentionMaps],
        *,
        title: str | None = None,
        arrange: str = "choose",
        max_bytes: float = MAX_WIDGET_BYTES,
        **state: Any,
    ):
        unknown = set(state) - set(HEADS_STATE)
        if unknown:
            raise TypeError(f"no such choice: {', '.join(sorted(unknown))}; there are: {', '.join(HEADS_STATE)}")
        state = {key: value.item() if getattr(value, "ndim", 1) == 0 else value for key, value in state.items()}
        self._maps_by_name = {"": maps} if isinstance(maps, AttentionMaps) else dict(maps)
        self._title, self._arrange = title, arrange
        document, data = heads_document(self._maps_by_name, {**HEADS_STATE, **state}, title, max_bytes, arrange=arrange)
        document["note"] = document["note"] and ON_DEMAND_NOTE
        super().__init__(document=document, data=data)
        for name, value in state.items():
            try:
                setattr(self, name, value)
            except traitlets.TraitError as error:
                message = str(error)
                if not message.startswith(f"{name} is"):  # a message of traitlets itself
                    message = f"{name} is {shorten(repr(value), 60)}; give {self.traits()[name].help}"
                raise ValueError(f"view.live: {message}") from None

    @traitlets.validate("layer", "head", "part")
    def _check_index(self, proposal: Any) -> int:
        """Return an index set by Python or by the page; raise `TraitError` if it is out of range."""
        name, value = proposal["trait"].name, proposal["value"]
        first = list(self._maps_by_name.values())
        counts = {"part": len(first), "layer": max(m.shape[0] for m in first), "head": max(m.shape[1] for m in first)}
        if value >= counts[name]:
            raise traitlets.TraitError(f"{name} is {value}; there are {counts[name]}, counted from 0")
        return value

    def _reply(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the codes of one full head, or of a range of its cells in blocks if the page asks for a range."""
        return {}, [self._head(request)]

    def _head(self, request: Mapping[str, Any]) -> bytes:
        parts = list(self._maps_by_name.values())
        maps = parts[_index(request, "part", len(parts))]
        layer, head = (_index(request, name, count) for name, count in zip(("layer", "head"), maps.shape))
        if not self.document["parts"][request["part"]]["key_ranges"]:
            return deflated(maps.as_uint8(layer, head), maps.allowed(layer, head), level=1)
        rows, columns = (_range(request, name, count) for name, count in zip(("rows", "columns"), maps.shape[2:]))
        pool_size = max(1, _index(request, "pool_size", max(maps.shape[2:]) + 1))
        return deflated(quantize(maps.max_pool(layer, head, rows, columns, pool_size).clamp(0, 1)), None, level=1)

    def view(self) -> View:
        """Return the current state as a view that needs no kernel, to be saved or embedded in a page."""
        first = list(self._maps_by_name.values())[self.part]
        layer, head = min(self.layer, first.shape[0] - 1), min(self.head, first.shape[1] - 1)
        static_figure = self._picture(first, layer, head)
        state = {name: getattr(self, name) for name in HEADS_STATE} | {"layer": layer, "head": head}
        return heads_view(static_figure, self._maps_by_name, state, self._title, arrange=self._arrange)

    def _picture(self, maps: AttentionMaps, layer: int, head: int) -> StaticFigure:
        """Return the static picture of the current mode; in the mode "sheet", the picture of all heads."""
        if self.mode == "links":
            selected = [head for at, head in self.selected_heads if at == layer and head < maps.shape[1]]
            return links.links(maps, layer, selected or [head], min_weight=self.min_weight)
        if self.mode == "words":
            row = self.locked_rows[-1] if self.locked_rows and self.locked_rows[-1] < maps.shape[2] else None
            return text.attended_text(maps, layer, head, row)
        return figures.head(maps, layer, head) if self.mode == "head" else figures.heads(maps)

    def __repr__(self) -> str:
        named = (f"{name} {maps_size(maps)}".strip() for name, maps in self._maps_by_name.items())
        return f"Live view of {', '.join(named)}"

    def _static(self) -> tuple[dict[str, str], dict[str, Any]]:
        return (
            ({}, {}) if self.document["note"] else self.view().static_output()
        )  # with a note, the maps are usually too large to draw


def _index(request: Mapping[str, Any], name: str, count: int) -> int:
    """Return an integer of a request; raise `LookupError` unless it is from 0 to `count` - 1."""
    value = request.get(name)
    if type(value) is not int or not 0 <= value < count:
        raise LookupError(f"{name} is {value!r}; there are {count}, counted from 0")
    return value


def _range(request: Mapping[str, Any], name: str, count: int) -> slice:
    """Return a range of a request, [start, stop]; raise `LookupError` if it is empty or not within 0 and `count`."""
    ends = request.get(name)
    if not (isinstance(ends, list) and len(ends) == 2 and all(type(end) is int for end in ends)):
        raise LookupError(f"{name} is {ends!r}; it is a pair of places")
    if not 0 <= ends[0] < ends[1] <= count:
        raise LookupError(f"{name} is {ends!r}; there are {count}, counted from 0")
    return slice(*ends)

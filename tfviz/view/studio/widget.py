"""The widget of studios with a kernel: the model stays in Python and answers the requests of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfviz.extras import extra
from tfviz.look import AttentionMaps, Capture
from tfviz.look.quantization import quantize_unchecked
from tfviz.portable.arguments import dtype_name
from tfviz.view.documents.studios import StudioDocument
from tfviz.view.figures.formatting import shorten
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.page.bundle import BUNDLES
from tfviz.view.page.heads import heads_view
from tfviz.view.page.html import View
from tfviz.view.page.kernel_widget import KernelWidget
from tfviz.view.studio.local_program import LocalProgram

with extra("lessons"):
    import traitlets

NOTE_STATIC = (
    "Static: a model in Python computed this, and its kernel has ended. The heads of the last request are shown."
)
MAX_FLOAT32_WEIGHTS = 1_000_000  # more weights are sent as 8-bit codes


class Request(NamedTuple):
    """A request of a page: a program, its inputs, and the heads that are off, [{site, head}, ...]."""

    program: str
    inputs: Sequence[Tensor]
    ablated_heads: Sequence[Mapping[str, Any]] = ()


Inputs = Mapping[str, Sequence[Tensor]]  # inputs of each program, by its name
DrawStatic = Callable[[Request, Mapping[str, Tensor]], StaticFigure]  # from a request and its outputs
AxisTokens = Callable[[Inputs], Mapping[str, tuple[list[str], list[str]]]]  # part -> query tokens and key tokens


class ModelWidget(KernelWidget):
    """A widget whose model runs in Python at the page's request; see `kernel=True` of the studios.

    `state` is a trait that Python may read, set and observe. It holds what the reader typed and chose, such as `text`
    and `ablated_heads`, a list of [site, head].

    Args:
        programs: the programs that the page may run, by name.
        document: the document of the studio.
        first: the first inputs of each program; the last program's are displayed.
        draw_static: draws the static picture of a request and its outputs.
        axis_tokens: returns the query and key tokens of the maps by part, such as {"": (rows, columns)}.
        tokenizers: the tokenizers, in the order of the document.
    """

    _esm = BUNDLES / "studios-widget.js"
    state = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        programs: Mapping[str, LocalProgram],
        document: StudioDocument,
        first: Inputs,
        draw_static: DrawStatic,
        axis_tokens: AxisTokens,
        tokenizers: Sequence[Any],
    ):
        self._programs, self._tokenizers = dict(programs), list(tokenizers)
        self._draw_static, self._axis_tokens = draw_static, axis_tokens
        self._inputs = dict(first)
        self._last = Request(*list(first.items())[-1])
        super().__init__(document=dict(document), state=dict(document["state"]))

    def _reply(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return a program's outputs, with attention maps if the page asks for them, or the ids of texts."""
        if "encode" in request:
            return {"ids": self._encoded(request["encode"], request.get("tokenizer"))}, []
        program = self._programs[request["run"]]
        run = Request(request["run"], program.decode_inputs(request.get("inputs")), request.get("ablated_heads", []))
        if request.get("capture"):
            outputs, captured = program.run(run.inputs, run.ablated_heads)
        else:
            outputs, captured = program(*run.inputs, ablated_heads=run.ablated_heads), None
        self._inputs[run.program] = run.inputs
        answer = {"outputs": [[name, list(tensor.shape), dtype_name(tensor.dtype)] for name, tensor in outputs.items()]}
        pieces = [_bytes(tensor) for tensor in outputs.values()]
        if captured is None:
            return answer | {"masks": 0, "patterns": []}, pieces
        self._last = run
        more, maps = encoded_maps(captured)
        return answer | more, [*pieces, *maps]

    def _encoded(self, texts: Any, index: Any) -> list[list[int]]:
        if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
            raise ValueError(f"the texts are {shorten(repr(texts), 60)}; give a list of strings")
        if index not in range(len(self._tokenizers)):
            raise ValueError(f"there is no tokenizer {shorten(repr(index), 20)}")
        return [self._tokenizers[index].encode(text).tolist() for text in texts]

    def _shown(self) -> Request:
        """Return the request whose answer is displayed."""
        return self._last

    def view(self) -> View:
        """Return the displayed maps as a view that needs no kernel, to be saved or embedded in a page."""
        request = self._shown()
        outputs, captured = self._programs[request.program].run(request.inputs, request.ablated_heads)
        tokens = self._axis_tokens({**self._inputs, request.program: request.inputs})
        parts = {
            part: AttentionMaps.from_capture(captured, *axes, sites=f"*{part}*.pattern")
            for part, axes in tokens.items()
        }
        static_figure = self._draw_static(request, outputs)
        return heads_view(static_figure, parts, {}, static_figure.summary.partition("\n")[0], note=NOTE_STATIC)

    def __repr__(self) -> str:
        return f"{self.document['title']}, answered by the kernel"


def encoded_maps(captured: Capture) -> tuple[dict[str, Any], list[bytes]]:
    """Return captured maps for a page: weights as float32, or as 8-bit codes if there are many, and distinct masks.

    A mask is [query, key] for all heads, or [head, query, key] if heads differ.
    """
    masks: dict[bytes, int] = {}
    patterns, pieces = [], []
    exact = sum(captured[site].numel() for site in captured) <= MAX_FLOAT32_WEIGHTS
    for site in captured:
        weights, allowed = captured.invocations(site)[-1]
        patterns.append([site, list(weights.shape), masks.setdefault(_mask(weights, allowed), len(masks))])
        pieces.append(_bytes(weights.float() if exact else quantize_unchecked(weights.float())))
    return {"masks": len(masks), "patterns": patterns}, [*masks, *pieces]


def _mask(weights: Tensor, allowed: Tensor | None) -> bytes:
    """Return the mask of the first batch element as bytes; all True if `allowed` is None."""
    if allowed is None:
        return _bytes(torch.ones(weights.shape[-2:], dtype=torch.bool))
    heads = allowed.broadcast_to(weights.shape)[0].reshape(-1, *weights.shape[-2:])
    return _bytes((heads[0] if (heads == heads[0]).all() else heads).bool())


def _bytes(tensor: Tensor) -> bytes:
    kinds = {"bool": torch.uint8, "int64": torch.int32, "float32": torch.float32}
    stored = tensor if tensor.dtype == torch.uint8 else tensor.to(kinds[dtype_name(tensor.dtype)])
    return stored.cpu().contiguous().numpy().tobytes()

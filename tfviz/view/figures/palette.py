"""Themes, colours and fonts of all pictures, and conversion of text to characters that the fonts can draw."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import matplotlib
import numpy
from matplotlib import font_manager
from matplotlib.colors import ListedColormap, to_hex, to_rgb
from matplotlib.ft2font import FT2Font

from tfviz.suggestions import did_you_mean
from tfviz.text.token_labels import visible_sign
from tfviz.view.figures.formatting import shorten

F = TypeVar("F", bound=Callable[..., Any])
THEMES = ("light", "dark")
BOLD_FONT = "DejaVu Sans"
MAX_LABEL_LENGTH = 18  # characters of a word on an axis
DPI = 150  # dots per inch of a PNG: sharp, and ten PNGs take less than half a megabyte
SCALE_COLOUR_COUNT = 200  # finer steps are invisible, and other colours need the rest of a PNG's 256

# Prefixes of settings that belong to the session, not to a picture.
SESSION_SETTINGS = ("backend", "interactive", "toolbar", "webagg.", "tk.", "docstring.", "timezone", "date.epoch",
           "savefig.directory", "figure.max_open_warning", "figure.raise_window")  # fmt: skip
# Fonts that together cover most scripts; the installed ones are used, in this order. The last lines are fonts of macOS
# and Windows.
FONT_FAMILIES = ("DejaVu Sans", "Noto Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Arabic",
            "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Symbols", "Noto Sans Symbols2", "Noto Sans Math",
            "Noto Emoji", "Symbola", "Hiragino Sans", "Arial Unicode MS", "Apple Symbols",
            "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Segoe UI Symbol")  # fmt: skip
# The strongest colour of the sequential scale, and the ends of the diverging scale, in the light and the dark theme.
RAMP_COLOURS = ("#0b2a6f", "#74bbff")
LOW_COLOURS, HIGH_COLOURS = ("#0b4f8f", "#6db9f5"), ("#b04a00", "#ffae5c")
FOCUS_COLOURS, MARK_COLOURS = ("#0969da", "#58a6ff"), ("#d55e00", "#d55e00")
FAINT_COLOURS = ("#9aa2ab", "#6e7681")
PREDICTION_COLOURS = ("#c2410c", "#ff9a5c")  # of a model's predictions and of controls
_current_theme: ContextVar[str] = ContextVar("theme", default="light")  # set by the innermost `with view.theme(...)`


class _Theme(ContextDecorator):
    """A theme as a context manager or a decorator; it warns on deletion if it was used as neither."""

    def __init__(self, name: str):
        self._name, self._context, self._used = name, _applied(name), False

    def __call__(self, function: F) -> F:
        self._used = True
        return super().__call__(function)

    def _recreate_cm(self) -> _Theme:  # called by ContextDecorator at each call of a decorated function
        return _Theme(self._name)

    def __enter__(self) -> None:
        self._used = True
        self._context.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def __repr__(self) -> str:
        return f"a theme: what is drawn and saved inside `with view.theme({self._name!r}):` has it, and nothing else"

    def __del__(self) -> None:
        if not self._used:
            advice = f"draw and save inside `with view.theme({self._name!r}):`"
            warnings.warn(f"view.theme({self._name!r}) alone changes nothing: {advice}", stacklevel=2)


@contextmanager
def _applied(name: str) -> Iterator[None]:
    outer = _current_theme.get()
    with matplotlib.rc_context():
        matplotlib.rcParams.update(_settings(name))
        _current_theme.set(name)
        try:
            yield
        finally:
            _current_theme.set(outer)


def theme(name: str = "light") -> AbstractContextManager[None]:
    """Apply the `light` or the `dark` theme of tfviz to pictures inside `with view.theme(name):`.

    The theme is set on top of matplotlib's defaults. Earlier settings of rcParams, such as those of a style sheet, are
    ignored inside the `with` and restored after it. Views shown there, or saved as PNG or SVG, have this theme. The
    theme can also decorate a function. Other uses have no effect and emit a warning.

    Raises:
        ValueError: there is no such theme.
    """
    if name not in THEMES:
        raise ValueError(f"theme is {name!r}; it can be 'light' or 'dark'{did_you_mean(name, THEMES)}")
    return _Theme(name)


def current_theme() -> str:
    """Return the theme of the innermost `with view.theme(...)` around this call; `light` if there is none."""
    return _current_theme.get()


@lru_cache
def _settings(name: str) -> Any:
    """Return the rcParams of a theme: matplotlib's defaults, except those of the session, and the theme's own."""
    file = Path(__file__).with_name(f"{name}.mplstyle")
    style: Any = matplotlib.rc_params_from_file(file, use_default_template=False)
    default: Any = {
        key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith(SESSION_SETTINGS)
    }
    return {**default, **style, "savefig.dpi": DPI, "font.family": list(font_families())}


def muted() -> str:
    """Return the colour of secondary text."""
    return matplotlib.rcParams["xtick.labelcolor"]


def theme_colours() -> dict[str, dict[str, Any]]:
    """Return the colours of both themes for interactive views: theme -> purpose -> colour (a list for `heads`)."""
    named = {"ink": "text.color", "soft": "xtick.labelcolor", "line": "axes.edgecolor", "hatch": "hatch.color"}
    pairs = {
        "ramp": RAMP_COLOURS,
        "low": LOW_COLOURS,
        "high": HIGH_COLOURS,
        "focus": FOCUS_COLOURS,
        "mark": MARK_COLOURS,
        "faint": FAINT_COLOURS,
        "prediction": PREDICTION_COLOURS,
    }
    colours = {}
    for index, name in enumerate(THEMES):
        settings = _settings(name)
        heads = [to_hex(colour) for colour in settings["axes.prop_cycle"].by_key()["color"]]
        inked = {ink: to_hex(settings[setting]) for ink, setting in named.items()}
        colours[name] = {**inked, "heads": heads, **{ink: pair[index] for ink, pair in pairs.items()}}
    return colours


def prediction_colour() -> str:
    """Return the colour of results, such as a model's predicted probabilities."""
    return _ink(PREDICTION_COLOURS)


def negative_colour() -> str:
    """Return the colour of bars below 0, which is that of the lower end of a diverging scale."""
    return _ink(LOW_COLOURS)


def sequential_colormap() -> ListedColormap:
    """Return the blue colormap from the background (0) to the strongest colour (1), perceptually uniform."""
    return ListedColormap(_between(_background(), _ink(RAMP_COLOURS)))


def diverging_colormap() -> ListedColormap:
    """Return the colormap from blue (negative) through the background (0) to orange (positive)."""
    low, high = (_between(_background(), _ink(end), SCALE_COLOUR_COUNT // 2) for end in (LOW_COLOURS, HIGH_COLOURS))
    return ListedColormap(numpy.concatenate([low[::-1], high[1:]]))


@lru_cache
def font_families() -> tuple[str, ...]:
    """Return the fonts of `FONT_FAMILIES` that are installed."""
    there = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(family for family in FONT_FAMILIES if family in there)


@lru_cache
def _points(family: str) -> frozenset[int]:
    """Return the code points that a font can draw."""
    return frozenset(FT2Font(font_manager.findfont(family)).get_charmap())


def has_glyphs(family: str, text: str) -> bool:
    """Return whether a font has glyphs for all characters of `text`."""
    return all(ord(character) in _points(family) for character in text)


def drawable(text: str) -> str:
    """Return text that the fonts can draw, with symbols for control characters and codes for missing glyphs."""
    return "".join(character if character == " " else _visible_symbol(character) for character in str(text))


def tick_labels(tokens: Sequence[str], max_length: int = MAX_LABEL_LENGTH) -> list[str]:
    """Return labels as an axis shows them: truncated, with symbols for invisible characters.

    Spaces are shown as symbols if the label begins or ends with whitespace; otherwise they remain spaces.
    """
    return [shorten(_visible(str(word)) or "∅", max_length) for word in tokens]


def _visible(word: str) -> str:
    plain = " " if word.strip() == word else ""
    return "".join(character if character == plain else _visible_symbol(character) for character in word)


def _visible_symbol(character: str) -> str:
    shown = visible_sign(character)
    return shown if any(ord(shown) in _points(family) for family in font_families()) else f"⟨{ord(character):X}⟩"


def _background() -> str:
    return matplotlib.rcParams["figure.facecolor"]


def _ink(pair: tuple[str, str]) -> str:
    return pair[sum(to_rgb(_background())) <= 1.5]


def _between(start: str, stop: str, steps: int = SCALE_COLOUR_COUNT) -> numpy.ndarray:
    """Return colours from `start` to `stop`, RGB [step, 3], linear in OKLab (Ottosson 2020), rounded to 8 bits."""
    share = numpy.linspace(0, 1, steps)[:, None]
    lab = (1 - share) * _to_lab(numpy.array(to_rgb(start))) + share * _to_lab(numpy.array(to_rgb(stop)))
    return (_to_rgb(lab) * 255).round() / 255


_RGB_TO_LMS = numpy.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
_LMS_TO_LAB = numpy.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip


def linear_rgb(rgb: numpy.ndarray) -> numpy.ndarray:
    """Convert sRGB numbers from 0 to 1 to linear RGB (IEC 61966-2-1)."""
    return numpy.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _to_lab(rgb: numpy.ndarray) -> numpy.ndarray:
    return numpy.cbrt(linear_rgb(rgb) @ _RGB_TO_LMS.T) @ _LMS_TO_LAB.T


def _to_rgb(lab: numpy.ndarray) -> numpy.ndarray:
    linear = ((lab @ numpy.linalg.inv(_LMS_TO_LAB).T) ** 3 @ numpy.linalg.inv(_RGB_TO_LMS).T).clip(0, 1)
    return numpy.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)

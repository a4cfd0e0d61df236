"""Pictures neither depend on the user's matplotlib settings nor change them."""

import base64
import io
import re
import warnings

import matplotlib
import numpy
import pytest
import torch
from matplotlib import pyplot, style
from PIL import Image
from static_pictures import STILLS

from tfviz import view

CLIP = re.compile(r"\bp[0-9a-f]{10}\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
HOSTILE = {
    "image.origin": "lower", "image.cmap": "jet", "image.interpolation": "bicubic", "image.aspect": "equal",
    "image.resample": False, "image.composite_image": False, "text.usetex": True, "text.parse_math": True,
    "text.antialiased": False, "text.hinting": "none", "savefig.transparent": True, "savefig.bbox": None,
    "savefig.dpi": 31, "savefig.pad_inches": 2.0, "savefig.facecolor": "red", "figure.dpi": 333,
    "figure.facecolor": "red", "figure.autolayout": True, "figure.subplot.left": 0.4,
    "figure.constrained_layout.w_pad": 0.9, "path.sketch": (1, 100, 2), "path.simplify_threshold": 1.0,
    "font.weight": "bold", "font.style": "italic", "font.family": ["monospace"], "font.size": 33.0,
    "axes.formatter.limits": (0, 0), "axes.formatter.use_mathtext": True, "axes.formatter.useoffset": False,
    "axes.unicode_minus": False, "axes.grid": True, "axes.grid.which": "both", "axes.titlepad": 40.0,
    "axes.labelpad": 30.0, "axes.labelweight": "bold", "axes.titleweight": "heavy", "axes.titley": 0.5,
    "axes.xmargin": 0.5, "axes.autolimit_mode": "round_numbers", "axes3d.grid": False, "xtick.major.pad": 30.0,
    "ytick.major.pad": 30.0, "xtick.minor.visible": True, "xtick.bottom": False, "xtick.top": True,
    "ytick.left": False, "ytick.right": True, "xtick.direction": "in", "xtick.alignment": "left",
    "lines.linewidth": 9.0, "lines.linestyle": ":", "lines.marker": "x", "lines.color": "red",
    "lines.antialiased": False, "lines.solid_capstyle": "butt", "lines.dashed_pattern": (9.0, 9.0),
    "lines.scale_dashes": False, "patch.edgecolor": "red", "patch.linewidth": 9.0, "patch.force_edgecolor": True,
    "patch.antialiased": False, "hatch.color": "red", "hatch.linewidth": 9.0, "markers.fillstyle": "none",
    "scatter.marker": "x", "scatter.edgecolors": "red", "legend.loc": "lower left", "legend.frameon": True,
    "legend.fontsize": 30, "legend.handlelength": 9.0, "legend.numpoints": 3, "svg.fonttype": "none",
    "svg.hashsalt": "mine", "svg.image_inline": False, "grid.linestyle": ":", "mathtext.default": "it",
    "agg.path.chunksize": 100, "axes.prop_cycle": matplotlib.cycler("color", ["red", "blue"]), "figure.titlesize": 40,
    "figure.labelweight": "bold",
}  # fmt: skip


def render(name, tmp_path):
    """A picture as it is saved, its numbers apart, and as the pixels of a figure that is saved by hand.

    Names of clip paths are digests of places, in whose last digits matplotlib's solver of layouts is free.
    """
    picture = STILLS[name]()
    figure, stream = picture.figure("dark"), io.BytesIO()
    figure.savefig(stream)
    drawing = picture.save(tmp_path / "x.svg").read_text(encoding="utf-8")
    names = {name: f"clip {number}" for number, name in enumerate(dict.fromkeys(CLIP.findall(drawing)))}
    drawing = CLIP.sub(lambda found: names[found[0]], drawing)
    pixels = numpy.asarray(Image.open(stream).convert("RGB")).astype(float)
    return NUMBER.sub("#", drawing), numpy.array([float(one) for one in NUMBER.findall(drawing)]), pixels


def check_alike(one, other):
    """The same drawing, in places that differ by less than anybody sees."""
    assert one[0] == other[0]
    assert abs(one[1] - other[1]).max() < 1e-2
    assert one[2].shape == other[2].shape
    assert abs(one[2] - other[2]).mean() < 0.05


# One for each function that makes axes of its own.
DRAWN = ["heads", "head", "words", "steps", "masks", "gates", "lines apart", "rows", "planes", "tree", "flow"]


@pytest.mark.parametrize("name", DRAWN)
def test_picture_ignores_user_rcparams(name, tmp_path):
    usual = render(name, tmp_path)
    with matplotlib.rc_context(HOSTILE):
        before = dict(matplotlib.rcParams)
        check_alike(render(name, tmp_path), usual)
        assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("context", [lambda: style.context(["classic", "dark_background"]), pyplot.xkcd])
def test_picture_ignores_style_sheets(context, tmp_path):
    usual = render("head", tmp_path)
    with context():
        check_alike(render("head", tmp_path), usual)


def test_figure_saved_later_ignores_user_rcparams():
    """Settings that matplotlib reads only as it draws or saves: ticks, minus signs, resolution, background."""

    def saved(settings, title=""):
        figure, stream = STILLS["lines"]().figure(), io.BytesIO()
        with matplotlib.rc_context(settings):
            if title:
                figure.axes[0].set_title(title)
            figure.savefig(stream)
        return stream.getvalue()

    assert saved(HOSTILE) == saved({})
    assert Image.open(io.BytesIO(saved(HOSTILE))).getpixel((1, 1))[:3] == (255, 255, 255)
    assert saved({}, "by hand") != saved({})


def test_theme_keeps_session_settings():
    """What belongs to the session and not to a picture stays: the backend, whether it is interactive."""
    with matplotlib.rc_context({"interactive": True, "figure.max_open_warning": 3, "timezone": "Europe/Paris"}):
        with view.theme("dark"):
            assert matplotlib.rcParams["interactive"] is True
            assert matplotlib.rcParams["figure.max_open_warning"] == 3
            assert matplotlib.rcParams["timezone"] == "Europe/Paris"
            assert matplotlib.rcParams["image.origin"] == "upper"
        assert matplotlib.rcParams["interactive"] is True


def background(picture):
    return Image.open(io.BytesIO(picture)).convert("RGB").getpixel((1, 1))


WHITE, DARK = (255, 255, 255), (20, 23, 27)


@pytest.mark.parametrize(
    "shown",
    [
        lambda picture, file: picture.save(file / "x.png").read_bytes(),
        lambda picture, file: base64.b64decode(picture._repr_mimebundle_()[0]["image/png"]),
        lambda picture, file: base64.b64decode(re.search('src="data:image/png;base64,(.*?)"', picture.html())[1]),
        lambda picture, file: saved_by_matplotlib(picture.figure()),
    ],
    ids=["save", "display", "html", "figure"],
)
def test_view_has_the_theme_around_it(shown, tmp_path):
    """However it is shown: the innermost theme counts, a decorated function has its own, each ends with its block."""
    picture = view.mask(torch.eye(3) > 0)
    decorated = view.theme("dark")(shown)
    assert background(shown(picture, tmp_path)) == WHITE
    with view.theme("dark"):
        assert background(shown(picture, tmp_path)) == DARK
        with view.theme():
            assert background(shown(picture, tmp_path)) == WHITE
        assert background(shown(picture, tmp_path)) == DARK
        picture.save(tmp_path / "light.png", style="light")
        assert background((tmp_path / "light.png").read_bytes()) == WHITE
    for _ in range(2):
        assert background(decorated(picture, tmp_path)) == DARK
    with pytest.raises(ZeroDivisionError), view.theme("dark"):
        raise ZeroDivisionError
    assert background(shown(picture, tmp_path)) == WHITE


def saved_by_matplotlib(figure):
    figure.savefig(stream := io.BytesIO())
    return stream.getvalue()


def test_theme_of_a_svg_is_that_around_it(tmp_path):
    picture = STILLS["lines"]()
    with view.theme("dark"):
        around = picture.save(tmp_path / "around.svg").read_bytes()
    assert around == picture.save(tmp_path / "named.svg", style="dark").read_bytes()
    assert around != picture.save(tmp_path / "light.svg").read_bytes()


def test_theme_that_is_a_statement_changes_nothing_and_warns():
    before = dict(matplotlib.rcParams)
    with pytest.warns(
        UserWarning, match=r"view.theme\('dark'\) alone changes nothing: .* `with view.theme\('dark'\):`"
    ):
        view.theme("dark")
    assert dict(matplotlib.rcParams) == before
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with view.theme("dark"):
            pass
        kept = view.theme("dark")
        assert "`with view.theme('dark'):`" in repr(kept)  # as a cell that ends in it shows it
        with kept:
            pass
        view.theme("dark")(len)
        del kept
    assert warned == []

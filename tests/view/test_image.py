"""`view.image` and `view.audio`: patch grids, documents, static pictures and input checks."""

import base64
import io

import matplotlib
import numpy
import pytest
import torch
from matplotlib.colors import to_rgb
from PIL import Image

from tfviz import look, view
from tfviz.look import AttentionMaps
from tfviz.view.figures.images import read_image, spectrogram_image, tinted
from tfviz.view.figures.palette import theme
from tfviz.view.page.images import image_spec
from tfviz.view.patch_grid import PatchGrid, find_grid

numbers = lambda count: [str(i) for i in range(count)]  # noqa: E731
SQUARE, WIDE = (48, 48), (60, 80)


def maps(queries, keys=None, layers=2, heads=3, **given):
    draw = torch.Generator().manual_seed(queries)
    return AttentionMaps(torch.randn(layers, heads, queries, keys or queries, generator=draw).softmax(-1), **given)


def picture(height=60, width=80):
    return torch.rand(height, width, 3, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("count", "size", "grid", "found"),
    [
        (196, SQUARE, None, (0, 14, 14)), (197, SQUARE, None, (1, 14, 14)), (198, SQUARE, None, (2, 14, 14)),
        (261, SQUARE, None, (5, 16, 16)),  # a class token, four registers (Darcet et al. 2023)
        (197, WIDE, None, (1, 14, 14)),  # most models squeeze a picture into a square
        (12, WIDE, None, (0, 3, 4)), (13, WIDE, None, (1, 3, 4)), (301, WIDE, None, (1, 15, 20)),
        (21, SQUARE, (3, 7), (0, 3, 7)), (22, SQUARE, (3, 7), (1, 3, 7)), (84, SQUARE, (3, 7), (0, 6, 14)),
        (23, SQUARE, None, None), (3, SQUARE, None, None), (20, SQUARE, (3, 7), None), (63, SQUARE, (3, 7), None),
    ],
)  # fmt: skip
def test_find_grid_locates_patches(count, size, grid, found):
    patches = find_grid(numbers(count), size, grid)
    assert (patches and (patches.first, patches.rows, patches.columns)) == found


def test_find_grid_ignores_words_but_finds_image_tokens():
    assert find_grid(list("abcdefghi"), SQUARE, None) is None
    prompt = ["<s>", "look", *["<image>"] * 12, "what", "is", "this"]
    grid = find_grid(prompt, WIDE, None)
    assert grid == PatchGrid(2, 3, 4)
    assert grid.token_names(prompt, ())[:4] == ["<s>", "look", "(0,0)", "(0,1)"]
    assert grid.token_names(prompt, ())[13:] == ["(2,3)", "what", "is", "this"]
    padded = maps(64, 77, key_tokens=[*"abcdefghijklm", *["<end>"] * 64])  # where the other side is the picture
    (part,) = view.image(padded, picture(64, 64)).document["parts"]
    assert (part["patches"]["columns"], part["columns"]) == (None, padded.key_tokens)


@pytest.mark.parametrize(
    ("count", "names", "words"),
    [
        (261, [], ["cls", "register 1", "register 2", "register 3", "register 4", "(0,0)"]),
        (261, ["CLS", "memory"], ["CLS", "memory", "register 2"]),
        (17, ["a", "b"], ["a", "(0,0)"]),
    ],
)
def test_tokens_before_patches_are_named(count, names, words):
    grid = find_grid(numbers(count), SQUARE, None)
    assert grid.token_names(numbers(count), names)[: len(words)] == words


def test_document_contains_patch_grid_and_note():
    made = view.image(maps(13), picture(), title="A picture")
    (part,) = made.document["parts"]
    there = {"first": 1, "rows": 3, "columns": 4, "upward": False}
    assert part["patches"] == {"rows": there, "columns": there}
    assert part["rows"][:3] == ["cls", "(0,0)", "(0,1)"]
    assert made.document["note"] == "Taken as 1 token and 3 × 4 cells."
    state = made.document["state"]
    assert (state["mode"], state["layer"], state["locked_rows"], state["direction"]) == ("picture", 1, [0], "from")
    assert [made.document["image"][side] for side in ("width", "height")] == [80, 60]
    assert str(made).startswith("A picture\n")


def test_cross_attention_of_several_resolutions():
    words = ["one", "two", "three", "four", "five"]
    parts = {"fine": maps(48, 5, key_tokens=words), "coarse": maps(12, 5, key_tokens=words)}
    weights = parts["fine"].weights
    weights[-1, 0] = 0.2
    weights[-1, 0, :20] = torch.tensor(
        [0.025, 0.025, 0.025, 0.9, 0.025]
    )  # the word whose weights differ most over the picture
    parts["fine"] = AttentionMaps(weights, key_tokens=words)
    made = view.image(parts, picture())
    state = made.document["state"]
    assert (state["direction"], state["locked_columns"], state["locked_rows"]) == ("to", [3], [])
    assert [part["patches"]["columns"] for part in made.document["parts"]] == [None, None]
    assert [part["patches"]["rows"]["rows"] for part in made.document["parts"]] == [6, 3]
    assert made.document["note"] == "Taken as 6 × 8 cells; 3 × 4 cells."
    assert view.image(parts, picture(), token="two").document["state"]["locked_columns"] == [1]
    assert view.image(parts, picture(), token=-1).document["state"]["locked_columns"] == [4]


def test_multimodal_prompt_opens_at_word_attending_to_image():
    words = ["<s>", "look", *["<image>"] * 12, "what", "is", "this"]
    causal = torch.ones(17, 17).tril().bool()
    scores = torch.randn(1, 1, 17, 17, generator=torch.Generator().manual_seed(0)).masked_fill(~causal, -torch.inf)
    scores[..., 15, 4] += 9
    seen = AttentionMaps(scores.softmax(-1), words, mask=causal)
    assert view.image(seen, picture()).document["state"]["locked_rows"] == [15]


def test_figure_scale_includes_tokens_beside_image():
    """At the largest of all the token's weights, also of the one beside the picture."""
    weights = torch.full((1, 1, 101, 101), 0.0012)
    weights[..., 0] = 0.88
    made = view.image(AttentionMaps(weights), picture())
    bar = made.figure().axes[-1]
    assert [label.get_text() for label in bar.get_yticklabels()][-1] == "0.88"


def test_uniform_head_leaves_image_visible():
    """64 patches and a class token, no weight above 0.017: the scale ends at 16 / 65, and even weights are pale."""
    draw = torch.Generator().manual_seed(0)
    weights = 1 + 0.1 * torch.rand(1, 2, 65, 65, generator=draw)
    maps = AttentionMaps(weights / weights.sum(-1, keepdim=True))
    assert maps.weights.max() < 0.017
    figure = view.image(maps, Image.new("RGB", (64, 64), "white")).figure()
    texts = [label.get_text() for label in figure.axes[-1].get_yticklabels()]
    assert (texts[-1], "0.015 even" in texts) == ("0.25", True)
    shaded = numpy.asarray(figure.axes[1].images[0].get_array())
    ink = numpy.array([0x0B, 0x2A, 0x6F]) / 255
    even = 1 + 0.75 * 0.25 * (ink - 1)  # the square root of 1 / 16
    assert numpy.abs(shaded - even).max() < 0.02


@pytest.mark.parametrize("size", [(64, 64), (96, 32), (32, 64)])
def test_figure_picture_keeps_aspect_ratio(size):
    figure = view.image(maps(12), Image.new("RGB", size), (4, 3)).figure()
    figure.draw_without_rendering()
    for panel in figure.axes[:2]:
        box = panel.get_window_extent()
        assert box.width / box.height == pytest.approx(size[0] / size[1], rel=0.02)


def test_centre_patch_is_selected_without_class_token():
    assert view.image(maps(12), picture()).document["state"]["locked_rows"] == [1 * 4 + 2]
    assert view.image(maps(12), picture(), token="(2,1)", layer=0, head=2).document["state"] == {
        **view.image(maps(12), picture()).document["state"], "locked_rows": [9], "layer": 0, "head": 2
    }  # fmt: skip


def test_steps_open_at_the_first():
    parts = {f"step {n}": maps(12, 5, key_tokens=list("abcde")) for n in range(3)}
    assert view.image(parts, picture(), arrange="steps").document["state"]["part"] == 0


@pytest.mark.parametrize("style", ["light", "dark"])
def test_tinted_blends_ink_and_hatches_forbidden_cells(style):
    """By hand, on a white picture: where the weight is 0 it is pale, at the largest it is almost the ink."""
    white = Image.new("RGB", (8, 6), "white")
    shares = numpy.array([[0.0, 0.5], [1.0, 0.25]])
    with theme(style):
        drawn = tinted(white, shares, numpy.array([[True, True], [True, False]]), 8)
        hatch = to_rgb(matplotlib.rcParams["hatch.color"])
    page, ink = {"light": ("#ffffff", "#0b2a6f"), "dark": ("#121212", "#74bbff")}[style]
    rgb = lambda code: numpy.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) / 255  # noqa: E731
    page = drawn[0, 0, :3] if style == "dark" else rgb(page)
    for row, col, share in ((0, 0, 0), (0, -1, 0.5), (-1, 0, 1)):
        assert numpy.allclose(drawn[row, col, :3], page + 0.75 * share * (rgb(ink) - page), atol=0.01)
    assert drawn.shape == (6, 8, 3)
    hatched = numpy.isclose(drawn, hatch, atol=1e-6).all(-1)  # only where it may not look
    assert [tuple(cell) for cell in numpy.argwhere(hatched)] == [(row, 8 - row) for row in (3, 4)]


KINDS = {
    "tensor, channels last": lambda rgb: rgb,
    "tensor, channels first": lambda rgb: rgb.permute(2, 0, 1),
    "batch of one": lambda rgb: rgb.permute(2, 0, 1)[None],
    "array": lambda rgb: rgb.numpy(),
    "bytes": lambda rgb: (rgb * 255).round().to(torch.uint8),
    "0 to 255": lambda rgb: (rgb * 255).round().double(),
    "PIL": lambda rgb: Image.fromarray((rgb * 255).round().to(torch.uint8).numpy()),
    "transparent": lambda rgb: Image.fromarray((rgb * 255).round().to(torch.uint8).numpy()).convert("RGBA"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_read_image_accepts_image_types(kind):
    rgb = picture(5, 7)
    seen = numpy.asarray(read_image(KINDS[kind](rgb)))
    assert numpy.abs(seen / 255 - rgb.numpy()).max() <= 0.5 / 255 + 1e-6


@pytest.mark.parametrize("kind", ["uint16", "float32", "int32"])
def test_read_image_rescales_high_bit_depths(kind):
    values = torch.linspace(0, 60_000, 35).view(5, 7).numpy().astype(kind)
    seen = numpy.asarray(read_image(Image.fromarray(values)))
    assert numpy.abs(seen[..., 0] / 255 - values / 60_000).max() < 0.01


@pytest.mark.parametrize("numbers", [(picture(5, 7) - 0.45) / 0.22, picture(5, 7) * 1.02 + 0.001])
def test_read_image_rescales_values_outside_zero_to_one(numbers):
    low, high = float(numbers.min()), float(numbers.max())
    seen = numpy.asarray(read_image(numbers))
    assert numpy.abs(seen / 255 - ((numbers - low) / (high - low)).numpy()).max() <= 0.5 / 255 + 1e-6


def test_read_image_applies_exif_orientation(tmp_path):
    red = Image.new("RGB", (8, 4), "red")
    marks = red.getexif()
    marks[0x0112] = 6  # turned by a quarter
    red.save(tmp_path / "a.jpg", exif=marks)
    assert read_image(tmp_path / "a.jpg").size == (4, 8)


def test_image_spec_downscales_and_strips_metadata(tmp_path):
    marks = Image.Exif()
    marks[0x010E] = "secret place"
    Image.fromarray((picture(900, 1200) * 255).to(torch.uint8).numpy()).save(tmp_path / "a.png", exif=marks)
    told = image_spec(read_image(tmp_path / "a.png"))
    sent = base64.b64decode(told["src"].partition(",")[2])
    assert b"secret" not in sent
    assert Image.open(io.BytesIO(sent)).size == (640, 480)
    assert (told["width"], told["height"]) == (1200, 900)


def test_audio_places_tokens_along_time():
    spectrogram = torch.linspace(0, 1, 40).expand(8, 40) + torch.linspace(0, 3, 8)[:, None]
    made = view.audio(maps(20, 20), spectrogram)
    assert made.document["parts"][0]["patches"]["columns"] == {"first": 0, "rows": 1, "columns": 20, "upward": True}
    assert made.document["parts"][0]["rows"] == numbers(20)
    drawn = numpy.asarray(spectrogram_image(spectrogram))
    assert drawn[0].mean() > drawn[-1].mean()  # the lowest frequency is at the bottom
    patches = view.audio(maps(31), spectrogram, grid=(3, 10))
    assert patches.document["parts"][0]["patches"]["rows"] == {"first": 1, "rows": 3, "columns": 10, "upward": True}


def test_windowed_mask_is_kept_in_document():
    mask = torch.block_diag(*[torch.ones(6, 6)] * 2).bool()
    made = view.image(maps(12, mask=mask), picture())
    assert made.document["masks"]
    assert made.figure().axes


TWO = {"fine": maps(48), "coarse": maps(12)}


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda path: view.image(maps(23), picture()), ValueError, "23 queries and 23 keys fit no grid"),
        (lambda path: view.image(maps(23), picture(), (4, 5)), ValueError, "fit no 4 x 5 cells"),
        (lambda path: view.image(maps(4, query_tokens=list("abcd")), picture()), ValueError, "have their own words"),
        (lambda path: view.image(maps(13), torch.rand(4)), ValueError, "has the shape [4]"),
        (lambda path: view.image(maps(13), torch.full((4, 4), torch.nan)), ValueError, "not finite"),
        (lambda path: view.image(maps(13), torch.rand(0, 4)), ValueError, "has the shape [0, 4]"),
        (lambda path: view.image(maps(13), path / "none.png"), FileNotFoundError, "none.png"),
        (lambda path: view.image(maps(13), path / "text.png"), ValueError, "cannot be read as a picture"),
        (lambda path: view.image(maps(13), path / "half.png"), ValueError, "cannot be read as a picture"),
        (lambda path: view.image(maps(13), picture(), layer=2), IndexError, "layer is 2; the maps have 2"),
        (lambda path: view.image(maps(13), picture(), head=-4), IndexError, "head is -4; the maps have 3"),
        (lambda path: view.image(maps(13), picture(), token="dog"), LookupError, "token is 'dog'; there are: cls"),
        (lambda path: view.image(maps(13), picture(), token=13), LookupError, "token is 13; there are 13"),
        (lambda path: view.image({}, picture()), ValueError, "there are no maps"),
        (lambda path: view.image(TWO, picture(), arrange="compare"), ValueError, "into different cells"),
        (lambda path: view.image(maps(13), None), TypeError, "a NoneType is not a picture"),
        (lambda path: view.image(maps(13), picture(), (0, 14)), ValueError, "grid[0] is 0"),
        (lambda path: view.image(maps(13), picture(), {"fien": (3, 4)}), ValueError, "grid names 'fien'"),
        (lambda path: view.audio(maps(20), torch.rand(4)), ValueError, "it is [frequency, time]"),
    ],
)  # fmt: skip
def test_invalid_arguments_raise(tmp_path, wrong, error, says):
    (tmp_path / "text.png").write_text("no picture", encoding="utf-8")
    stream = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(stream, "PNG")
    (tmp_path / "half.png").write_bytes(stream.getvalue()[:60])
    with pytest.raises(error) as raised:
        wrong(tmp_path)
    assert says in str(raised.value)


def test_captured_hugging_face_vit_is_shown_in_patches():
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=16
    )
    model, pixels = transformers.ViTModel(config).eval(), torch.randn(1, 3, 32, 32)
    with look.capture(model) as seen:
        model(pixel_values=pixels)
    made = view.image(AttentionMaps.from_capture(seen), pixels[0])
    assert made.document["note"] == "Taken as 1 token and 4 × 4 cells."


@pytest.mark.parametrize("grid", [(9, 9), (3, 3), (1, 1), (4, 4), {"a": (2, 2), "b": (3, 3)}])
def test_grid_that_no_tokens_fit_raises(grid):
    four = AttentionMaps(torch.full((1, 1, 4, 4), 0.25))
    with pytest.raises(ValueError, match=r"grid is (\d) x \1 cells( of 'b')?, but the tokens lie in 2 x 2"):
        view.image({"a": four, "b": four} if isinstance(grid, dict) else four, torch.rand(36, 36, 3), grid=grid)


@pytest.mark.parametrize("grid", [(6, 6), (2, 2)])
def test_key_patches_may_be_larger_than_query_patches(grid):
    coarse = AttentionMaps(torch.rand(1, 1, 36, 4).softmax(-1))
    (part,) = view.image(coarse, torch.rand(36, 36, 3), grid=grid).document["parts"]
    assert [part["patches"][side]["rows"] for side in ("rows", "columns")] == [6, 2]

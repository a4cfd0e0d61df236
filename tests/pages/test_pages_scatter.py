"""`view.scatter` and `view.planes`: mouse, keyboard, search, exports and input checks."""

import csv
import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from browser import goto_view, press, status_text, takes, wait_until_drawn
from PIL import Image

from tfviz import view
from tfviz.view.figures.formatting import format_number

pytest_plugins = ["browser"]

NAMES = ["north west", "north", "north east", "west", "middle", "east", "south <west>", "south & more", "south\teast"]
GRID = torch.tensor([[x, y] for y in (2.0, 0.0, -2.0) for x in (-30.0, 10.0, 50.0)])
CIRCLE = "{http://www.w3.org/2000/svg}circle"


@pytest.fixture
def page(open_view):
    return open_view(view.scatter(GRID, NAMES, "A rose of winds", ("longitude", "latitude")))


def svg_points(page, tmp_path):
    """Where the points are, as the saved drawing has them, on the canvas."""
    circles = ElementTree.parse(takes(page, "SVG", tmp_path)).getroot().iter(CIRCLE)
    return [(float(one.get("cx")), float(one.get("cy"))) for one in circles]


def test_mouse_reads_nearest_point(page, tmp_path):
    box = page.locator("canvas").bounding_box()
    for (x, y), name, (longitude, latitude) in zip(svg_points(page, tmp_path), NAMES, GRID.tolist(), strict=True):
        page.mouse.move(box["x"] + x + 5, box["y"] + y - 3)
        coordinates = f"longitude {format_number(longitude)}, latitude {format_number(latitude)}"
        assert status_text(page) == f"“{name.replace(chr(9), ' ')}”  {coordinates}"
    page.mouse.move(box["x"] + 130, box["y"] + 5)
    assert status_text(page) == ""


def test_axes_are_not_flipped(page, tmp_path):
    pixels = torch.tensor(svg_points(page, tmp_path)).reshape(3, 3, 2)
    assert (pixels[:, 1:, 0] > pixels[:, :-1, 0]).all()
    assert (pixels[1:, :, 1] > pixels[:-1, :, 1]).all()


def test_lines_show_range_of_training_runs(open_view, tmp_path):
    runs = GRID.repeat(3, 1, 1) + torch.tensor([-1.0, 0.0, 1.0])[:, None, None] * torch.tensor([4.0, 0.5])
    page = open_view(view.scatter(runs, NAMES, "A rose of three winds"))
    points = svg_points(page, tmp_path)
    drawn = ElementTree.parse(takes(page, "SVG", tmp_path)).getroot().iter(CIRCLE.replace("circle", "path"))
    numbers = [[float(number) for number in re.findall(r"-?[\d.]+", line.get("d"))] for line in drawn]
    lines = [(line[0], line[-2], line[1], line[-1]) for line in numbers if len(line) == 8]
    for x, y in points:
        assert any(y1 == y2 == y and (x1 + x2) / 2 == pytest.approx(x, abs=0.1) and x1 < x2 for x1, x2, y1, y2 in lines)
        assert any(x1 == x2 == x and (y1 + y2) / 2 == pytest.approx(y, abs=0.1) and y1 > y2 for x1, x2, y1, y2 in lines)


def test_arrow_keys_move_to_next_point_in_direction(page):
    page.locator("canvas").focus()
    for key, name in [("ArrowRight", "north"), ("ArrowDown", "middle"), ("ArrowLeft", "west"), ("ArrowLeft", "west"),
                      ("ArrowUp", "north west"), ("ArrowUp", "north west")]:  # fmt: skip
        press(page, key)
        assert status_text(page).startswith(f"“{name}”")


def test_search_counts_matches_and_saved_page_keeps_selection(page, new_page, tmp_path):
    page.get_by_label("Find a name").fill("SOUTH")
    wait_until_drawn(page)
    assert page.locator(".caption").inner_text() == "3 of 9 found"
    page.get_by_label("Find a name").fill("")
    page.locator("canvas").focus()
    press(page, "ArrowRight", "Space", "+")
    own = new_page()
    goto_view(own, takes(page, "HTML", tmp_path))
    state = own.evaluate("JSON.parse(document.querySelector('.tfviz-document').textContent).state")
    assert state["locked_rows"] == [1]
    assert state["zoom"] == 1.5
    press(page, "0", "Escape")
    wait_until_drawn(page)
    assert page.locator(".caption").inner_text() == "9 points"


def test_exports_contain_coordinates(page, tmp_path):
    head, *lines = csv.reader(takes(page, "CSV", tmp_path).read_text("utf-8").splitlines())
    assert head[1:] == ["longitude", "latitude"]
    assert [line[0] for line in lines] == [*NAMES[:-1], "south east"]
    assert [[float(cell) for cell in line[1:]] for line in lines] == GRID.tolist()
    Image.open(takes(page, "PNG", tmp_path)).load()


@pytest.mark.parametrize(("others", "named"), [(0, "abcdefgh"), (29, "abcdefgh"), (30, "ab")])
def test_figure_picture_labels_points_that_fit(others, named):
    """In one place, eight names fit around a point; in a plane of many points, names stand left or right only."""
    crowd = torch.cat((torch.zeros(12, 2), torch.tensor([[9.0, 9.0]]).expand(others, 2)))
    made = view.scatter(crowd, [*"abcdefghijkl", *["far"] * others], "All in one place")
    names = [text.get_text() for text in made.figure().axes[0].texts]
    assert "".join(name for name in names if name != "far") == named
    assert made.summary.startswith("All in one place\nfirst: from 'a' to 'a'" if not others else "All in one place")


@pytest.mark.parametrize(
    ("points", "names", "said"),
    [
        (torch.zeros(3, 3), list("abc"), r"points has the shape \[3, 3\]; it must be \[point, 2\]"),
        (torch.zeros(0, 2), [], "at least one"),
        (torch.tensor([[0.0, torch.nan]]), ["a"], "finite"),
        (torch.zeros(3, 2), ["a"], "1 names for 3 points"),
    ],
)
def test_scatter_rejects_invalid_points_and_names(points, names, said):
    with pytest.raises(ValueError, match=said):
        view.scatter(points, names, "No")


def test_scatter_colours_groups_and_draws_marked_points_first(open_view, tmp_path):
    crowd = torch.tensor([[0.0, 0.0], [0.01, 0.0], [1.0, 1.0], [0.5, 0.2]])
    given = {"groups": ["a", "", "b", "a"], "mark": ["three"]}
    made = view.scatter(crowd, ["one", "two", "three", "four"], "Groups", **given)
    page = open_view(made)
    circles = list(ElementTree.parse(takes(page, "SVG", tmp_path)).getroot().iter(CIRCLE))
    inks = [one.get("fill") for one in circles[:4]]  # the marked one first
    assert inks[0] != inks[1] == inks[3] != inks[2]
    assert len(circles) == 4 + 3  # and those of the legend: a, b, others
    texts = {text.get_text(): text.get_weight() for text in made.figure().axes[0].texts}
    assert texts["three"] == "bold"
    with pytest.raises(ValueError, match="2 groups for 4 points"):
        view.scatter(crowd, list("abcd"), "No", groups=["a", "b"])
    with pytest.raises(ValueError, match="room for 6"):
        view.scatter(torch.eye(7, 2), list("abcdefg"), "No", groups=list("abcdefg"))
    with pytest.raises(LookupError, match="marked names 'e', but no point has this name"):
        view.scatter(crowd, list("abcd"), "No", mark=["e"])


def test_labels_never_cover_points():
    torch.manual_seed(3)
    points = torch.randn(80, 2)
    figure = view.scatter(points, [f"a long name {i}" for i in range(80)], "Crowd", mark=["a long name 7"]).figure()
    plane = figure.axes[0]
    pixels = torch.as_tensor(plane.transData.transform(points.numpy()))
    assert len(plane.texts) > 5
    for box in (text.get_window_extent() for text in plane.texts):
        inside = (pixels > torch.tensor([box.x0, box.y0])) & (pixels < torch.tensor([box.x1, box.y1]))
        assert not inside.all(1).any()


def test_planes_show_points_side_by_side_and_reject_bad_input():
    square = torch.tensor([[1.0, 1.0], [1, -1], [-1, -1], [-1, 1]])
    made = view.planes({"as it is": square, "half": square / 2}, list("abcd"), "Squares", groups=["x", "x", "y", ""],
                       mark=["a"], paths=[[0, 1, 2, 3, 0]])  # fmt: skip
    left, right = made.figure().axes
    assert left.get_xlim()[1] == pytest.approx(2 * right.get_xlim()[1])
    assert [text.get_text() for text in (*left.texts, *right.texts)] == ["a", "a"]
    assert made.summary == "Squares\n4 points in 2 planes: as it is, half"
    assert made._png("light")[:4] == b"\x89PNG"
    for panels, more, error, said in [
        ({}, {}, ValueError, "give planes by name"),
        ({"a": square, "b": square[:3]}, {}, (ValueError, TypeError), "'b'"),
        ({"a": square}, {"paths": [[0, 4]]}, LookupError, "0 to 3"),
        ({"a": square}, {"mark": ["e"]}, LookupError, "no point has this name"),
        ({"a": square.T[:, :3]}, {}, ValueError, r"a has the shape \[2, 3\]"),
    ]:
        with pytest.raises(error, match=said):
            view.planes(panels, list("abcd"), "No", **more)

"""Check what a wheel holds: `python tests/wheel_contents.py WHEEL`. Its path is printed with its size."""

import sys
import zipfile
from pathlib import Path

CLONE = Path(__file__).parents[1]
NEEDED = (
    "tfviz/py.typed",
    "tfviz/notebooks/presets.yaml",
    "tfviz/notebooks/course.yaml",
    "tfviz/lessons/demo.safetensors",
    "tfviz/lessons/templates/lesson/index.html.j2",
    "tfviz/lessons/bundles/site-search.js",
    "tfviz/view/bundles/page.css",
    "tfviz/view/figures/light.mplstyle",
)
LARGEST = 8_400_000  # bytes; most of them the lessons, with their pictures


def check(wheel: Path) -> None:
    """Raise AssertionError where something is missing from a wheel, or too much in it."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sources = [path for path in (CLONE / "tfviz").rglob("*.py") if "__pycache__" not in path.parts]
    bundles = [*CLONE.glob("tfviz/view/bundles/*.js"), *CLONE.glob("tfviz/lessons/bundles/*.js")]
    lessons = {f"tfviz/notebooks/{path.name}" for path in CLONE.glob("notebooks/[0-9]*.ipynb")}
    copied = {path.relative_to(CLONE).as_posix() for path in [*sources, *bundles]}
    assert len(lessons) == 17
    assert {*NEEDED, *lessons, *copied} <= files.keys(), {*NEEDED, *lessons, *copied} - files.keys()
    for name in ("LICENSE", "THIRD_PARTY_LICENSES.txt"):
        (inside,) = (content for path, content in files.items() if path.endswith(f".dist-info/licenses/{name}"))
        assert inside == (CLONE / name).read_bytes()
    unwanted = [
        name
        for name in files
        if "/js/" in name or "node_modules" in name or name.endswith("package.json") or name.startswith("tests")
    ]
    assert not unwanted, unwanted
    outside = [name for name in files if not name.startswith(("tfviz/", "tfviz-"))]
    assert not outside, outside
    assert wheel.stat().st_size < LARGEST, wheel.stat().st_size


if __name__ == "__main__":
    check(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: {Path(sys.argv[1]).stat().st_size / 1e6:.1f} MB")

"""What this machine has: versions, device, data, fonts, a browser."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from re import match

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "microsoft-edge", "firefox")

Row = tuple[bool, str, str]


def examine() -> Iterator[Row]:
    """(is it well, what, how it is), a row at a time."""
    yield (3, 11) <= sys.version_info < (3, 14), "Python", sys.version.split()[0]
    yield from _versions()
    yield from _device()
    yield from _data()
    yield from _fonts()
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    yield browser is not None, "browser", browser or "none found; notebooks and pages need one to be looked at"


def _versions() -> Iterator[Row]:
    for requirement in requires("tfviz") or []:
        if "extra ==" in requirement:
            continue
        name = match(r"[\w.-]+", requirement)[0]  # type: ignore[index]
        try:
            yield True, name, version(name)
        except PackageNotFoundError:
            yield False, name, f"missing; pip install {requirement!r} -c constraints.txt"


def _device() -> Iterator[Row]:
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    yield True, "device", ", ".join(gpus) or f"CPU, {torch.get_num_threads()} threads, {os.cpu_count()} cores"


def _data() -> Iterator[Row]:
    from tfviz.text import corpora

    local = os.environ.get("TFVIZ_DATA")
    there = not local or os.path.isdir(os.path.expanduser(local))
    said = f"{local}{'' if there else ' is no folder'}" if local else f"{corpora.cache()} (TFVIZ_DATA is not set)"
    yield there, "data folder", said
    if not there:
        return
    for name in corpora.CORPORA:
        state = corpora.verify(name)
        how = f"; tfviz data fetch {name}" if state in ("absent", "partly") else ""
        yield state != "differs", f"corpus {name}", state + how


def _fonts() -> Iterator[Row]:
    from tfviz.view.still.palette import font_families

    there = font_families()
    yield "DejaVu Sans" in there, "fonts", ", ".join(there)
    east = any("CJK" in family for family in there)
    yield east, "Chinese, Japanese, Korean", "drawn" if east else "shown by number; install the Noto Sans CJK fonts"

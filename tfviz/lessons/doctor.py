"""`tfviz doctor`: report this machine's versions, devices, data, fonts and browsers."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "microsoft-edge", "firefox")
Row = tuple[bool, str, str]


def examine() -> Iterator[Row]:
    """Yield a row for each item: whether it is in order, its name, and its state."""
    import torch

    from tfviz.view.figures.palette import font_families, has_glyphs

    yield (3, 11) <= sys.version_info < (3, 14), "Python", sys.version.split()[0]
    for requirement in requires("tfviz") or []:
        requirement, _, marker = requirement.partition("; ")
        if not marker or "lessons" in marker:
            name = re.split(r"[^\w.-]", requirement)[0]
            try:
                yield True, name, version(name)
            except PackageNotFoundError:
                yield False, name, f"missing; pip install {requirement!r}"
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    yield True, "device", ", ".join(gpus) or f"CPU, {torch.get_num_threads()} threads, {os.cpu_count()} cores"
    yield from _data_rows()
    fonts = font_families()
    yield "DejaVu Sans" in fonts, "fonts", ", ".join(fonts)
    chinese = any(has_glyphs(family, "字あ") for family in fonts)
    how = "drawn" if chinese else "shown by number; install the Noto Sans CJK fonts"
    yield chinese, "Chinese, Japanese, Korean", how
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None and sys.platform in ("win32", "darwin"):  # where browsers are not on the PATH
        browser = "the system's"
    yield browser is not None, "browser", browser or "none; notebooks and pages need one"


def _data_rows() -> Iterator[Row]:
    from tfviz.text import corpora

    local = os.environ.get("TFVIZ_DATA")
    if local and not os.path.isdir(os.path.expanduser(local)):
        yield False, "data folder", f"{local} is not a folder"
        return
    yield True, "data folder", local or f"{corpora.cache()} (TFVIZ_DATA is not set)"
    for name in corpora.CORPORA:
        state = corpora.verify(name)
        advice = f"; tfviz data fetch {name}" if state in ("absent", "partly") else ""
        yield state != "differs", f"corpus {name}", state + advice

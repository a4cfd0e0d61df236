"""Bundles (scripts built by `npm run build`) as script elements, each embedded once in a self-contained page."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

BUNDLES = Path(__file__).parent.parent / "bundles"
PAGE_STYLE = (BUNDLES / "page.css").read_text(encoding="utf-8").rstrip()
BUNDLE = re.compile(r'<script data-bundle="([\w-]+)">.*?</script>', re.DOTALL)


@cache
def bundle(name: str) -> tuple[str, str]:
    """Return the key of `bundles/NAME.js`, which contains a hash of the file, and a script element that registers it.

    The element is a classic script. A browser keeps scripts of type module in memory, one for each view, even after
    the views are removed. The element registers a function, so that it defines no further global names in the page,
    and so that the function's text can be passed to a worker.
    """
    code = (BUNDLES / f"{name}.js").read_text(encoding="utf-8").rstrip()
    key = f"{name}-{hashlib.sha256(code.encode()).hexdigest()[:12]}"
    return key, f'<script data-bundle="{key}">(globalThis.tfvizBundles??={{}})["{key}"]??={code}</script>'


def deduplicate(html: str, seen: set[str]) -> str:
    """Return `html` without repeated bundles and without bundles whose keys are in `seen`; add the other keys to it.

    Use this when several views form one document, in which scripts run in order. The outputs of a notebook keep their
    bundles, since they may be shown in any order or alone.
    """

    def first(match: re.Match[str]) -> str:
        repeated = match[1] in seen
        seen.add(match[1])
        return "" if repeated else match[0]

    return BUNDLE.sub(first, html)


def script_json(value: Any) -> str:
    """Return JSON that is safe in a script element: ASCII only, with `<` escaped so that it cannot end the element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

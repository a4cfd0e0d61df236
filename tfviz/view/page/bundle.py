"""The page's scripts, as built by `npm run build`, each embedded in a page once, since a page loads no other files."""

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
    """Return the key of `static/NAME.js`, which changes with its content, and the script element that registers it.

    The element is a classic script: those of type module stay in a browser's memory, one for each view, after the
    views are gone. It registers a function, so that it defines no global names in the page and its text can go to a
    worker.
    """
    code = (BUNDLES / f"{name}.js").read_text(encoding="utf-8").rstrip()
    key = f"{name}-{hashlib.sha256(code.encode()).hexdigest()[:12]}"
    return key, f'<script data-bundle="{key}">(globalThis.tfvizBundles??={{}})["{key}"]??={code}</script>'


def deduplicate(html: str, seen: set[str]) -> str:
    """Return `html` without bundles that repeat in it or whose keys are in `seen`; add the keys of the others.

    For pages that are put together: in one document, scripts run in order. The outputs of a notebook may be shown in
    any order or alone, so each of them keeps its bundles.
    """

    def first(match: re.Match[str]) -> str:
        repeated = match[1] in seen
        seen.add(match[1])
        return "" if repeated else match[0]

    return BUNDLE.sub(first, html)


def script_json(value: Any) -> str:
    """Return JSON that is safe in a script: pure ASCII, without any `<` that could end it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

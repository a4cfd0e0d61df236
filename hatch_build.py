"""Refuse a Python that tfviz does not run on, before pip downloads PyTorch for it; hatchling calls this hook."""

from __future__ import annotations

import platform
import sys
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.specifiers import SpecifierSet


class RightPython(MetadataHookInterface):
    """Compare this Python with `requires-python`, as pip does only after all downloads."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Exit with a sentence on a wrong Python."""
        needed, here = metadata["requires-python"], platform.python_version()
        if not SpecifierSet(needed).contains(here, prereleases=True):
            sys.exit(f"tfviz needs Python {needed}, and this is {here}: make .venv anew with another")

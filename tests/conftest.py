"""Shapes in signatures are checked in tests: jaxtyping must be there before tfviz is."""

import os

from jaxtyping import install_import_hook

os.environ.setdefault("HF_HUB_OFFLINE", "1")
hook = install_import_hook("tfviz", "beartype.beartype")

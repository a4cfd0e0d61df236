"""Shapes in signatures are checked in tests: jaxtyping must be there before tfviz is."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small tensors: threads would only wait for each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int may stand where a float is asked for
hook = install_import_hook("tfviz", "conftest.checked")

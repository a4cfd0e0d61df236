"""Shapes in signatures are checked in tests: jaxtyping must be there before tfviz is."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small tensors: threads would only wait for each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int may stand where a float is asked for
hook = install_import_hook("tfviz", "conftest.checked")

import torch  # noqa: E402 (the hook must be there first)

exported = torch.export.export


def unchecked(*args, **kwargs):
    """A size that may change is no int to beartype while torch.export follows a model."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        return exported(*args, **kwargs)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


torch.export.export = unchecked

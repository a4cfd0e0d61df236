"""Checks tensor shapes in tests: installs the jaxtyping import hook before tfviz is imported."""

import os
import re
import sys
from contextlib import contextmanager
from functools import wraps

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small tensors: threads would only wait for each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import jaxtyping
import pytest
from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

conf = BeartypeConf(is_pep484_tower=True, violation_type=TypeError)  # an int may stand where a float is asked for
checked = beartype(conf=conf)
jaxtyped = jaxtyping.jaxtyped
SHAPE = re.compile(r"\b(Bool|Float|Int|UInt8)\[")


def jaxtyped_if_shaped(*, typechecker):
    """Compare shapes in functions that have some; others are checked by beartype alone, and inner ones not at all.

    jaxtyping binds the arguments of each call, and beartype compiles an inner function whenever the outer one runs: for
    all functions together that takes most of the time of many tests. Names that a module imports for type checkers
    alone are a matter for jaxtyping, which leaves them out; beartype would miss them.
    """

    def decorated(target):
        is_class = isinstance(target, type)
        if is_class or "TYPE_CHECKING" in target.__globals__ or SHAPE.search(str(target.__annotations__)):
            return jaxtyped(typechecker=typechecker)(target)
        if "<locals>" in target.__qualname__:
            return target
        typed = typechecker(target)

        @wraps(target)
        def call(*args, **kwargs):
            return (target if jaxtyping.config.jaxtyping_disable else typed)(*args, **kwargs)

        return call

    return decorated


jaxtyping.jaxtyped = jaxtyped_if_shaped
hook = install_import_hook("tfviz", "conftest.checked")

from tfviz.portable import export  # noqa: E402 (the hook must be there first)

exporting = sys.modules[export.__module__]
eval_mode = exporting.eval_mode


@contextmanager
def no_shape_checks():
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@contextmanager
def unchecked_eval_mode(whole):
    """While torch.export follows a model, a size is no int to beartype, and keys and values are stand-ins."""
    with no_shape_checks(), eval_mode(whole):
        yield


exporting.eval_mode = unchecked_eval_mode


@pytest.fixture
def unchecked():
    """No checks of shapes, as a user has it; compilers cannot trace them."""
    with no_shape_checks():
        yield


# Files that take minutes begin first, however few tests they have: else one process waits for the other in the end.
LONG = ("test_notebooks.py", "test_jupyterlab.py", "test_studios_everywhere.py", "test_systems.py", "test_run.py")


def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):  # of pytest-xdist
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONG)

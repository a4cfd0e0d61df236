"""Name the extra to install, such as `tfviz[lessons]`, where an import of an optional package fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Say which extra installs a package that an import in this block does not find.

    Args:
        name: an extra of pyproject.toml.

    Raises:
        ImportError: a package is not installed; the message names it and the extra.

    >>> with extra("lessons"):
    ...     import a_package_that_is_missing
    Traceback (most recent call last):
    ImportError: a_package_that_is_missing is not installed: pip install 'tfviz[lessons]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"{error.name} is not installed: pip install 'tfviz[{name}]'") from error

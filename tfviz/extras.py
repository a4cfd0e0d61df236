"""Say how an extra of tfviz is installed where an import of an optional package fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

REPOSITORY = "https://github.com/tfviz/tfviz"  # tfviz is not on PyPI, where the name is another project's


def requirement(name: str) -> str:
    """Return what pip takes to install tfviz with an extra.

    >>> requirement("lessons")
    'tfviz[lessons] @ git+https://github.com/tfviz/tfviz'
    """
    return f"tfviz[{name}] @ git+{REPOSITORY}"


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Say which extra installs a package that an import in this block does not find.

    Args:
        name: an extra of pyproject.toml.

    Raises:
        ImportError: a package is not installed; the message names it and the command that installs the extra.

    >>> with extra("cluster"):
    ...     import a_package
    Traceback (most recent call last):
    ImportError: a_package is not installed: pip install 'tfviz[cluster] @ git+https://github.com/tfviz/tfviz'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"{error.name} is not installed: pip install '{requirement(name)}'") from error

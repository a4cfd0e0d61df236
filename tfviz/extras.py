"""Optional dependencies: an import error names the extra of tfviz that installs the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

REPOSITORY = "https://github.com/tfviz/tfviz"  # on PyPI, `tfviz` is another project


def requirement(name: str) -> str:
    """Return the requirement, for pip, of tfviz with an extra.

    >>> requirement("lessons")
    'tfviz[lessons] @ git+https://github.com/tfviz/tfviz'
    """
    return f"tfviz[{name}] @ git+{REPOSITORY}"


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Raise an ImportError with the command to install an extra if an import inside the context fails.

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

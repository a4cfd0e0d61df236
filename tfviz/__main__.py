"""The command line of tfviz: `tfviz` or `python -m tfviz`."""

from __future__ import annotations

import sys

import tfviz
from tfviz.extras import extra


def main() -> None:
    """Run the command line, or exit with a message on how to install it."""
    if sys.argv[1:] == ["--version"]:  # needs no extra
        print(f"tfviz, version {tfviz.__version__}")
        return
    try:
        with extra("lessons"):
            from tfviz.lessons import cli
    except ImportError as error:
        sys.exit(f"tfviz: {error}")
    cli.main(prog_name="tfviz")


if __name__ == "__main__":  # workers of `tfviz run` import this module
    main()

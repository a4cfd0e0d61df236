"""How the commands behave in a terminal: errors in a sentence, signals, names of folders."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click


def explained(command: Callable) -> Callable:
    """What a user can mend is said in a sentence, not in a traceback."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:  # `tfviz data list | head`: click ends quietly
            raise
        except (LookupError, ValueError, OSError, ImportError) as error:
            raise click.ClickException(_sentence(error)) from error

    return wrapped


def _sentence(error: Exception) -> str:
    """What an error says, without its number or quotation marks."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error.args[0]) if isinstance(error, LookupError) and error.args else str(error)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A request to end, or a terminal that is closed, ends it as Ctrl-C does: by clearing up."""

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # once is enough
        raise SystemExit(128 + number)

    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, end) for number in wanted if signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Folder(click.Path):
    """A folder's name, which may not be empty: that would be the current one, without being asked for."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "" and param:
            self.fail(f"{param.opts[-1]} is empty; name a folder, '.' for this one", param, ctx)
        return super().convert(value, param, ctx)


FOLDER = _Folder(file_okay=False, path_type=Path)


class _Page(click.Path):
    """A page's name, which a browser opens as one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if path.suffix.lower() not in (".html", ".htm"):
            self.fail(f"{path} is to be a page; name it with .html", param, ctx)
        return path


PAGE = _Page(dir_okay=False, path_type=Path)

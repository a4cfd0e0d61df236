"""Writing that never leaves half a file."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a fresh path beside `path`; what is written there takes its place when the block ends well.

    It may become a file or a folder. After an error nothing is left, and what stood at `path` still stands.

    >>> with atomic("/tmp/tfviz-note.txt") as draft:
    ...     _ = draft.write_text("whole")
    >>> Path("/tmp/tfviz-note.txt").read_text()
    'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    room = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield (draft := room / path.name)
        if draft.is_dir() and path.is_dir():
            os.replace(path, room / "old")
        os.replace(draft, path)
    finally:
        shutil.rmtree(room, ignore_errors=True)

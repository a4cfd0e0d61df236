"""One notebook's run: what is kept of it, and where."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tfviz import schema
from tfviz.files import atomic, read_json
from tfviz.suite import notebooks

TAKEN = ("index", "results")  # the pages of all
LONGEST = 200  # bytes of a file's name, so that there is room for a draft's


_TEXT = schema.string(10**7)
KEPT = schema.object_of(
    {
        "name": _TEXT, "preset": _TEXT, "parameters": schema.dict_of(schema.json_value), "fingerprint": _TEXT,
        "folder": _TEXT, "status": _TEXT, "seconds": schema.number, "result": _TEXT, "error": _TEXT,
        "source": schema.optional(_TEXT),
    }
)  # fmt: skip


@dataclass
class Result:
    """One notebook's run.

    Attributes:
        status: waiting, running, ok, unchanged, failed or stopped.
        result: what the notebook says of itself: the text of its cell tagged `result`.
        error: what went wrong, and in which cell.
        folder: where it lies below the folder of all, when there are several of one notebook.
        source: the notebook that is to run, as text.
    """

    name: str
    preset: str
    parameters: dict[str, Any]
    fingerprint: str
    folder: str = ""
    status: str = "waiting"
    seconds: float = 0.0
    result: str = ""
    error: str = ""
    source: str = field(default="", compare=False)

    @property
    def title(self) -> str:
        """The notebook and what sets this run of it apart."""
        return f"{self.name} ({self.folder})" if self.folder else self.name

    def file(self, out: Path, ending: str) -> Path:
        """One of its files: `.ipynb`, `.html` or `.json`. The page of `index` is `index.ipynb.html`."""
        own = ".ipynb" if ending == ".html" and self.name.casefold() in TAKEN else ""
        return out / self.folder / f"{self.name}{own}{ending}"

    def link(self, out: Path, ending: str) -> str:
        """The address of one of its files, from the folder of all."""
        return quote(self.file(out, ending).relative_to(out).as_posix(), safe="/=,+~", errors="surrogateescape")

    def there(self, out: Path) -> bool:
        """Whether it has come to an end and left a notebook."""
        return self.status not in ("waiting", "running") and self.file(out, ".ipynb").is_file()

    def check(self, out: Path) -> None:
        """Raises OSError if one of its files could not be written when it has run."""
        for ending in (".ipynb", ".html", ".json"):
            path = self.file(out, ending)
            if len(path.name.encode(errors="surrogateescape")) > LONGEST:
                raise OSError(f"{path.name} is too long a name; rename the notebook to at most {LONGEST} bytes")
            if path.is_symlink() and not path.exists() and os.path.islink(os.path.realpath(path)):
                raise OSError(f"{path} is a link to itself; remove it, or choose another --out")
            if path.is_dir():
                raise OSError(f"{path} is a folder, where a file is to be written; move it, or choose another --out")

    def write(self, out: Path) -> None:
        """Keep it beside the notebook, for the next run and for the gallery."""
        with atomic(self.file(out, ".json")) as draft:
            kept = json.dumps({**asdict(self), "source": None})
            draft.write_text(json.dumps(json.loads(kept, parse_constant=str)))  # NaN is no JSON

    def recall(self, out: Path) -> None:
        """Take over how it ended before, if it did so well, with the same fingerprint, and all of it is still there."""
        try:
            old = read_json(self.file(out, ".json"))
            KEPT(old, "record")
            if (old["fingerprint"], old["status"]) == (self.fingerprint, "ok"):
                notebooks.load(self.file(out, ".ipynb"))
                self.status, self.seconds, self.result = "unchanged", old["seconds"], old["result"]
        except (OSError, ValueError):
            pass  # nothing to recall


def cut(text: str, most: int) -> str:
    """A text with a sign of it where it was too long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"

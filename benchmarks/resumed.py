"""Measurements that are kept one by one in a JSON file, so that a run that was stopped can go on."""

import json
import os
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = list[str]


class Measurements:
    """Rows by the name of their measurement, and the reason where one was skipped.

    Args:
        path: the file; None keeps nothing.
        settings: what must be the same for earlier measurements of the file to count.
        minutes: the time after which no measurement is begun.
    """

    def __init__(self, path: Path | None, settings: Any, minutes: float) -> None:
        self.path, self.settings = path, settings
        self.until = time.monotonic() + 60 * minutes
        self.found: dict[str, dict[str, Any]] = {}
        if path is not None and path.is_file():
            earlier = json.loads(path.read_text(encoding="utf-8"))
            if earlier["settings"] == settings:
                self.found = {name: one for name, one in earlier["measurements"].items() if "rows" in one}

    def measure(self, name: str, measure: Callable[[], Iterable[Row]]) -> None:
        """Measure unless it is there, or the time is over; an error is noted and ends nothing else."""
        if name in self.found:
            return
        started = time.monotonic()
        if started > self.until:
            self.found[name] = {"skipped": "no time was left: the same command goes on here"}
        else:
            try:
                self.found[name] = {"rows": list(measure()), "seconds": round(time.monotonic() - started, 1)}
            except Exception as error:
                traceback.print_exc()
                self.found[name] = {"skipped": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(f"{name}: {self.found[name].get('skipped') or str(self.found[name]['seconds']) + ' s'}", flush=True)
        self.write()

    def write(self) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".draft")
        content = {"settings": self.settings, "measurements": self.found}
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(draft, self.path)

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a measurement.

        Raises:
            LookupError: it was skipped.
        """
        if "rows" not in self.found.get(name, {}):
            raise LookupError(f"{name} was not measured")
        return self.found[name]["rows"]

    def all_rows(self) -> list[Row]:
        return [row for one in self.found.values() for row in one.get("rows", [])]

    def notes(self) -> list[str]:
        return [f"Skipped: {name} ({one['skipped']})." for name, one in self.found.items() if "skipped" in one]

"""`MapStore`: a folder of many attention maps, each of which is loaded when it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfviz import schema
from tfviz.files import atomic, expand_user, read_json
from tfviz.look.maps import AttentionMaps

INDEX_FILE = "index.json"
FORMAT = "tfviz.MapStore/1"
_ENTRY_SCHEMA = schema.object_of(
    {"file": schema.string(), "shape": schema.list_of(schema.integer(1), 4), "notes": schema.dict_of(schema.json_value)}
)
_INDEX_SCHEMA = schema.object_of({"format": schema.enum(FORMAT), "maps": schema.dict_of(_ENTRY_SCHEMA)})


class MapStore(Mapping[str, AttentionMaps]):
    """A mapping from names to attention maps in a folder, with an index of their shapes and notes.

    Args:
        folder: the path of the folder, which `add` creates if it does not exist.

    Raises:
        ValueError: the folder holds other files, or a damaged index.

    >>> import tempfile, torch
    >>> store = MapStore(tempfile.mkdtemp())
    >>> store.add("text 0", AttentionMaps(torch.eye(3).expand(2, 4, 3, 3)), source="a test")
    >>> store["text 0"], store.notes["text 0"]
    (AttentionMaps: 2 layers x 4 heads x 3 queries x 3 keys, {'source': 'a test'})
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = expand_user(folder)
        self._entries: dict[str, dict[str, Any]] = {}
        if (self.folder / INDEX_FILE).exists():
            index = read_json(self.folder / INDEX_FILE)
            with schema.prefix_errors(self.folder / INDEX_FILE):
                _INDEX_SCHEMA(index, "index")
            self._entries = index["maps"]
        elif self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; give a folder")
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ValueError(f"{self.folder} holds other files and no {INDEX_FILE}; give an empty folder, or a store's")

    def add(self, name: str, maps: AttentionMaps, **notes: Any) -> None:
        """Write maps under a name; earlier maps of that name are replaced.

        Args:
            name: the name in the store.
            maps: the attention maps.
            **notes: values that JSON can represent, such as `label=1`.

        Raises:
            ValueError: JSON cannot represent the notes.
        """
        schema.json_value(notes, "notes")
        known = self._entries.get(name)
        file = Path(known["file"]).name if known else f"{len(self._entries):06d}.safetensors"
        maps.save(self.folder / file)
        self._entries[name] = {"file": file, "shape": list(maps.shape), "notes": notes}
        with atomic(self.folder / INDEX_FILE) as draft:
            draft.write_text(json.dumps({"format": FORMAT, "maps": self._entries}), encoding="utf-8", newline="\n")

    def __getitem__(self, name: str) -> AttentionMaps:
        if name not in self._entries:
            raise KeyError(f"there are no maps {name!r}; there are {len(self)}: {', '.join(list(self)[:10])}")
        return AttentionMaps.load(self.folder / Path(self._entries[name]["file"]).name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> the shape of its maps: layers, heads, queries and keys."""
        return {name: tuple(entry["shape"]) for name, entry in self._entries.items()}

    @property
    def notes(self) -> dict[str, dict[str, Any]]:
        """Name -> the notes passed to `add`."""
        return {name: entry["notes"] for name, entry in self._entries.items()}

    def __repr__(self) -> str:
        return f"MapStore of {len(self)} maps in {self.folder}"

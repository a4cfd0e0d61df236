"""Maps of one capture that fit together: an encoder's, a decoder's, those of one stage of a vision model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tfviz.look import join
from tfviz.look.capture import Seen
from tfviz.look.maps import AttentionMaps

CROSS = re.compile(r"cross|encoder_attn|encdec|encoder_decoder|src_attn", re.IGNORECASE)  # of one text to another
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")  # of a layer: a part of a path by itself
Words = Sequence[str] | Mapping[str, Sequence[str]]


def groups(
    seen: Seen, rows: Words | None = None, cols: Words | None = None, *, batch: int = 0, firings: str | None = None
) -> dict[str, AttentionMaps]:
    """All patterns of a capture, those of one kind and shape together, by a name such as `encoder.layer.*.attention`.

    `view.sources(**look.groups(seen))` shows them all.

    Args:
        rows, cols: words of the axes, for the groups whose maps have so many; or by glob of a group's name. Without
            `cols`, cross-attention's are those that `rows` has for another group: in an encoder-decoder,
            `{"encoder*": source, "decoder*": target}` says it all.
        batch, firings: as in `AttentionMaps.of`.

    Raises:
        LookupError: no pattern was captured.
    """
    found: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for site in join.patterns(seen, "*"):
        windows = seen.windows(site)
        heads, *cells = seen.shapes[site][1:]
        cells = [windows.cells] * 2 if windows else cells
        found.setdefault((NUMBER.sub("*", site), (heads, *cells)), []).append(site)
    made = {}
    for (_, (_, queries, keys)), sites in found.items():
        name = _name(sites)
        words = [_words(given, name, count) for given, count in ((rows, queries), (cols, keys))]
        if cols is None and isinstance(rows, Mapping) and CROSS.search(name):
            words[1] = next(
                (some for glob, some in rows.items() if not fnmatchcase(name, glob) and len(some) == keys), None
            )
        made[name] = AttentionMaps.of(seen, *words, sites=sites, batch=batch, firings=firings)
    return made


def _name(sites: Sequence[str]) -> str:
    """What their paths share; a star for each number that is not the same."""
    paths = [site.removesuffix("pattern").removesuffix(".").split(".") for site in sites]
    shared = [parts[0] if len(set(parts)) == 1 else "*" for parts in zip(*paths)]
    return ".".join(shared) or "attention"


def _words(given: Words | None, name: str, count: int) -> Sequence[str] | None:
    if isinstance(given, Mapping):
        return next((words for glob, words in given.items() if fnmatchcase(name, glob)), None)
    return given if given is not None and len(given) == count else None

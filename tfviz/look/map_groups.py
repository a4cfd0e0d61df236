"""Groups the patterns of a capture whose maps fit together: an encoder's, a decoder's, a stage's of a vision model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tfviz.checks import one_of
from tfviz.look import join
from tfviz.look.join import NUMBERED
from tfviz.look.maps import AttentionMaps
from tfviz.look.recorder import Firing
from tfviz.look.result import Capture
from tfviz.validation import describe

CROSS = re.compile(r"cross|encoder_attn|encdec|encoder_decoder|src_attn", re.IGNORECASE)  # of one text to another
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")  # of a layer: a part of a path by itself
Words = Sequence[str] | Mapping[str, Sequence[str]]
Shape = tuple[int, ...]


def groups(
    seen: Capture, rows: Words | None = None, cols: Words | None = None, *, batch: int = 0, firings: str | None = None
) -> dict[str, AttentionMaps]:
    """Return all patterns of a capture, those of one kind and shape together, by names as `encoder.layer.*.attention`.

    `view.sources(**look.groups(seen))` shows them all.

    Args:
        rows, cols: words of the axes, for the groups whose maps have so many; or by glob of a group's name, from
            its beginning or from a part of its path on: "encoder*" is "model.encoder...", too. Without
            `cols`, cross-attention's are those that `rows` has for another group: in an encoder-decoder,
            `{"encoder*": source, "decoder*": target}` says it all.
        batch: as in `AttentionMaps.of`.
        firings: as in `AttentionMaps.of`. Firings of several shapes are groups of their own, such as
            `visual.blocks.*.attn, 1 of 2`; with None, too, where each looks at itself alone, as several pictures do.

    Raises:
        LookupError: no pattern was captured; a glob matches no group: lists them.
        ValueError: `batch` is not there.
    """
    for axis, words in {"rows": rows, "cols": cols}.items():
        for glob, own in words.items() if isinstance(words, Mapping) else ():
            if not isinstance(glob, str) or not isinstance(own, Sequence):
                raise TypeError(f"{axis} is by a group's name, {{'encoder*': words}}; {glob!r} has {describe(own)}")
    if firings is not None:
        one_of(("last", "layers"), firings=firings)
    every = {site: seen.assembled(site, batch) for site in join.patterns(seen, "*")}
    pictures = {site: some for site, some in every.items() if firings is None and _are_pictures(some)}
    others = join.choose_firings({site: some for site, some in every.items() if site not in pictures}, firings)
    found: dict[tuple[str, Shape], dict[str, Sequence[Firing]]] = {}
    for label, some in {**join.choose_firings(pictures, "layers"), **others}.items():
        site = NUMBERED.sub("", label)
        kind = (NUMBER.sub("*", site), tuple(some[0][0].shape[1:]))
        found.setdefault(kind, {})[label] = some
    named: dict[str, dict[str, Sequence[Firing]]] = {}
    for (_, (heads, queries, keys)), members in found.items():
        name = _name(list(members))
        named[f"{name} ({heads} x {queries} x {keys})" if name in named else name] = members
    _check_globs(list(named), rows=rows, cols=cols)
    _check_counts(named, rows, 2, "rows")
    _check_counts(named, cols, 3, "cols")
    return {
        name: AttentionMaps._from_firings(seen, members, *_words_of_both_axes(rows, cols, name, members), batch=batch)
        for name, members in named.items()
    }


def _are_pictures(some: Sequence[Firing]) -> bool:
    """Return whether firings have several sizes and each looks at itself alone: they are no steps in time."""
    shapes = {tuple(weights.shape[2:]) for weights, _ in some}
    return len(shapes) > 1 and all(queries == keys > 1 for queries, keys in shapes)


def _match_start(name: str, glob: str) -> int | None:
    """Return from which part of its path on a name matches a glob; `encoder_attn` of a decoder is no encoder."""
    parts = name.split(".")
    starts = [0, *(at for at in range(1, len(parts)) if not CROSS.search(parts[at]))]
    return next((at for at in starts if fnmatchcase(".".join(parts[at:]), glob)), None)


def _best_glob(words: Mapping[str, Sequence[str]], name: str) -> str | None:
    """Return the glob that means a group: the one that matches from the earliest part on, the first of several."""
    found = [(at, glob) for glob in words if (at := _match_start(name, glob)) is not None]
    return min(found, key=lambda one: one[0])[1] if found else None


def _check_globs(names: Sequence[str], **labels: Words | None) -> None:
    for axis, words in labels.items():
        for glob in words if isinstance(words, Mapping) else ():
            if all(_match_start(name, glob) is None for name in names):
                raise LookupError(f"{axis}: no group matches {glob!r}; there are: {', '.join(dict.fromkeys(names))}")


def _check_counts(
    named: Mapping[str, Mapping[str, Sequence[Firing]]], words: Words | None, axis: int, name: str
) -> None:
    """Raise a ValueError if words for every group fit none of them."""
    if words is None or isinstance(words, Mapping):
        return
    counts = {group: next(iter(members.values()))[0][0].shape[axis] for group, members in named.items()}
    if len(words) not in counts.values():
        raise ValueError(
            f"{name} has {len(words)} words, and no group has so many: "
            + ", ".join(f"{group} has {count}" for group, count in counts.items())
        )


def _name(labels: Sequence[str]) -> str:
    """Return what the paths of labels share, a star for what differs; and which firings, if these are not all."""
    sites = list(dict.fromkeys(NUMBERED.sub("", label) for label in labels))
    paths = [site.removesuffix("pattern").removesuffix(".").split(".") for site in sites]
    shared = [parts[0] if len(set(parts)) == 1 else "*" for parts in zip(*paths)]
    numbers = [(int(found[1]), int(found[2])) for label in labels if (found := NUMBERED.search(label))]
    name, chosen = ".".join(shared) or "attention", sorted({number for number, _ in numbers})
    if not numbers or chosen == list(range(1, numbers[0][1] + 1)):
        return name
    return f"{name}, {', '.join(map(str, chosen))} of {numbers[0][1]}"


def _words_of_both_axes(
    rows: Words | None, cols: Words | None, name: str, members: Mapping[str, Sequence[Firing]]
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Return the words of a group's rows and columns."""
    _, queries, keys = next(iter(members.values()))[0][0].shape[1:]
    if cols is None and isinstance(rows, Mapping) and CROSS.search(name):
        own = _best_glob(rows, name)
        others = (some for glob, some in rows.items() if glob != own and len(some) == keys)
        return _words(rows, name, queries), next(others, None)
    return _words(rows, name, queries), _words(cols, name, keys)


def _words(words: Words | None, name: str, count: int) -> Sequence[str] | None:
    if isinstance(words, Mapping):
        glob = _best_glob(words, name)
        return None if glob is None else words[glob]
    return words if words is not None and len(words) == count else None

"""Maps of one capture that fit together: an encoder's, a decoder's, those of one stage of a vision model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tfviz.bounds import one_of
from tfviz.doors import what
from tfviz.look import join
from tfviz.look.capture import Seen
from tfviz.look.join import FIRING, Kept
from tfviz.look.maps import AttentionMaps

CROSS = re.compile(r"cross|encoder_attn|encdec|encoder_decoder|src_attn", re.IGNORECASE)  # of one text to another
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")  # of a layer: a part of a path by itself
Words = Sequence[str] | Mapping[str, Sequence[str]]
Shape = tuple[int, ...]


def groups(
    seen: Seen, rows: Words | None = None, cols: Words | None = None, *, batch: int = 0, firings: str | None = None
) -> dict[str, AttentionMaps]:
    """All patterns of a capture, those of one kind and shape together, by a name such as `encoder.layer.*.attention`.

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
                raise TypeError(f"{axis} is by a group's name, {{'encoder*': words}}; {glob!r} has {what(own)}")
    if firings is not None:
        one_of(("last", "layers"), firings=firings)
    every = {site: seen.as_whole(site, batch) for site in join.patterns(seen, "*")}
    apart = {site: some for site, some in every.items() if firings is None and _pictures(some)}
    alone = join.chosen({site: some for site, some in every.items() if site not in apart}, firings)
    found: dict[tuple[str, Shape], dict[str, Sequence[Kept]]] = {}
    for label, some in {**join.chosen(apart, "layers"), **alone}.items():
        site = FIRING.sub("", label)
        kind = (NUMBER.sub("*", site), tuple(some[0][0].shape[1:]))
        found.setdefault(kind, {})[label] = some
    named: dict[str, dict[str, Sequence[Kept]]] = {}
    for (_, (heads, queries, keys)), members in found.items():
        name = _name(list(members))
        named[f"{name} ({heads} x {queries} x {keys})" if name in named else name] = members
    _check_globs(list(named), rows=rows, cols=cols)
    _check_counts(named, rows, 2, "rows")
    _check_counts(named, cols, 3, "cols")
    return {
        name: AttentionMaps.joined(seen, members, *_both(rows, cols, name, members), batch=batch)
        for name, members in named.items()
    }


def _pictures(some: Sequence[Kept]) -> bool:
    """Whether firings are of several sizes and each looks at itself alone: they are no steps in time."""
    shapes = {tuple(made.shape[2:]) for made, _ in some}
    return len(shapes) > 1 and all(queries == keys > 1 for queries, keys in shapes)


def _begins(name: str, glob: str) -> int | None:
    """From which part of its path on a name is meant by a glob; `encoder_attn` of a decoder is no encoder."""
    parts = name.split(".")
    starts = [0, *(at for at in range(1, len(parts)) if not CROSS.search(parts[at]))]
    return next((at for at in starts if fnmatchcase(".".join(parts[at:]), glob)), None)


def _meant(given: Mapping[str, Sequence[str]], name: str) -> str | None:
    """The glob that means a group: the one that matches from the earliest part on, the first of several."""
    found = [(at, glob) for glob in given if (at := _begins(name, glob)) is not None]
    return min(found, key=lambda one: one[0])[1] if found else None


def _check_globs(names: Sequence[str], **given: Words | None) -> None:
    for axis, words in given.items():
        for glob in words if isinstance(words, Mapping) else ():
            if all(_begins(name, glob) is None for name in names):
                raise LookupError(f"{axis}: no group matches {glob!r}; there are: {', '.join(dict.fromkeys(names))}")


def _check_counts(named: Mapping[str, Mapping[str, Sequence[Kept]]], words: Words | None, axis: int, name: str) -> None:
    """Words that are given for every group fit one of them."""
    if words is None or isinstance(words, Mapping):
        return
    counts = {group: next(iter(members.values()))[0][0].shape[axis] for group, members in named.items()}
    if len(words) not in counts.values():
        raise ValueError(
            f"{name} has {len(words)} words, and no group has so many: "
            + ", ".join(f"{group} has {count}" for group, count in counts.items())
        )


def _name(labels: Sequence[str]) -> str:
    """What their paths share, a star for each number that is not the same; and which firings, if these are not all."""
    sites = list(dict.fromkeys(FIRING.sub("", label) for label in labels))
    paths = [site.removesuffix("pattern").removesuffix(".").split(".") for site in sites]
    shared = [parts[0] if len(set(parts)) == 1 else "*" for parts in zip(*paths)]
    numbers = [(int(found[1]), int(found[2])) for label in labels if (found := FIRING.search(label))]
    name, chosen = ".".join(shared) or "attention", sorted({number for number, _ in numbers})
    if not numbers or chosen == list(range(1, numbers[0][1] + 1)):
        return name
    return f"{name}, {', '.join(map(str, chosen))} of {numbers[0][1]}"


def _both(
    rows: Words | None, cols: Words | None, name: str, members: Mapping[str, Sequence[Kept]]
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """The words of a group's rows and columns."""
    _, queries, keys = next(iter(members.values()))[0][0].shape[1:]
    if cols is None and isinstance(rows, Mapping) and CROSS.search(name):
        own = _meant(rows, name)
        others = (some for glob, some in rows.items() if glob != own and len(some) == keys)
        return _words(rows, name, queries), next(others, None)
    return _words(rows, name, queries), _words(cols, name, keys)


def _words(given: Words | None, name: str, count: int) -> Sequence[str] | None:
    if isinstance(given, Mapping):
        glob = _meant(given, name)
        return None if glob is None else given[glob]
    return given if given is not None and len(given) == count else None
